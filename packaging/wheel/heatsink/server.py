"""A server for one program or test: started on a free port, and ended with it for certain."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path
from types import TracebackType
from typing import Dict, List, Optional, Type, Union

from heatsink.binary import find

FilePath = Union[str, "os.PathLike[str]"]

# Settings of the caller that would lead a local server or its clients elsewhere.
_NOT_PASSED_ON = ("AWS_", "HEATSINK_", "LISTEN_", "NOTIFY_SOCKET", "OTEL_", "RUST_LOG")
# The most of the log that an error shows, in characters.
_SHOWN = 4000


class NotStarted(RuntimeError):
    """The server did not start. The message has what it logged."""


class Local:
    """A server with an empty store. `local()` starts one, and returns once it answers; `with` or `stop()` ends it.

    It also ends when this process does, however that ends: the server reads a pipe that only this process holds open.

    partitions: whether it throttles as DynamoDB's partitions do.
    rules: a file of rules, or the rules themselves as TOML text of several lines. Without it no key is spread.
    data: a file that keeps the data. Without it data is in memory.
    port: on 127.0.0.1; 0 is a free one.
    region: the server's region.
    arguments: more arguments of `heatsink serve`.
    timeout: how many seconds it may take to start.

    Raises NotStarted with the server's log, or MissingBinary.
    """

    #: The URL that clients take as `endpoint_url`.
    endpoint: str
    #: The port on 127.0.0.1.
    port: int
    #: The region that the server is of.
    region: str

    def __init__(
        self,
        *,
        partitions: bool = True,
        rules: Optional[FilePath] = None,
        data: Optional[FilePath] = None,
        port: int = 0,
        region: str = "us-east-1",
        arguments: "tuple[str, ...]" = (),
        timeout: float = 10.0,
    ) -> None:
        # Without a name: nothing is left behind by a process that is killed.
        self._log = tempfile.TemporaryFile(prefix="heatsink-")
        self._written: Optional[Path] = None
        self._stopping = threading.Lock()
        self._owner = os.getpid()
        command: List[str] = [str(find()), "serve", "--listen", f"127.0.0.1:{port}", "--output", "json", "--end-with-stdin"]
        command += ["--partitions", "on" if partitions else "off"]
        command += ["--rules", self._rules(rules)]
        if data is not None:
            command += ["--data", os.path.abspath(data)]
        command += arguments
        try:
            self._process = self._spawn(command, region)
        except OSError as error:
            self._forget_rules()
            raise NotStarted(f"{command[0]} does not run here: {error}. {_platform_hint()}") from error
        _running.add(self)
        self._read_start(timeout)
        self.region = region

    def _rules(self, rules: Optional[FilePath]) -> str:
        if rules is None:
            # Not the heatsink.toml of whatever folder the tests run in.
            return os.devnull
        if isinstance(rules, str) and "\n" in rules:
            # It stays as long as the server: rules are read again when they change.
            descriptor, name = tempfile.mkstemp(prefix="heatsink-", suffix=".toml")
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(rules)
            self._written = Path(name)
            return name
        return os.path.abspath(rules)

    def _forget_rules(self) -> None:
        if self._written is not None:
            self._written.unlink(missing_ok=True)

    def _spawn(self, command: List[str], region: str) -> "subprocess.Popen[bytes]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_PASSED_ON)}
        environment["AWS_REGION"] = region
        # A session of its own: Ctrl-C at the terminal is for the tests, which then end the server.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, cwd="/", env=environment,
            start_new_session=True)

    def _read_start(self, timeout: float) -> None:
        process = self._process
        assert process.stdout is not None
        # What does not start in time is killed, which ends its output.
        killer = threading.Timer(timeout, process.kill)
        killer.daemon = True
        killer.start()
        line = process.stdout.readline()
        killer.cancel()
        try:
            self.endpoint = json.loads(line)["endpoint"]
        except (ValueError, KeyError):
            code = process.wait()
            log, said = self.log(), f"exit code {code}"
            self.stop()
            if code == -signal.SIGKILL:
                said = f"no answer within {timeout:g} s, or killed"
            raise NotStarted(f"the server did not start ({said}):\n{_told(line) or log[-_SHOWN:].strip()}") from None
        self.port = int(self.endpoint.rpartition(":")[2])

    @property
    def url(self) -> str:
        """The same as `endpoint`."""
        return self.endpoint

    @property
    def pid(self) -> int:
        """The process of the server."""
        return self._process.pid

    def environ(self) -> Dict[str, str]:
        """Environment variables by which every AWS SDK finds this server, with made-up credentials."""
        return {
            "AWS_ENDPOINT_URL_DYNAMODB": self.endpoint,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
        }

    def log(self) -> str:
        """What the server has logged so far."""
        # The server writes at the same offset of the same open file, so it must not be moved.
        descriptor = self._log.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace")

    def stop(self, timeout: float = 5.0) -> None:
        """Ends the server, and waits for its end. Kills it after `timeout` seconds. Can be called again."""
        if os.getpid() != self._owner:
            return
        with self._stopping:
            process = self._process
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            self._forget_rules()
            _running.discard(self)

    def __enter__(self) -> "Local":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<heatsink.Local {self.endpoint}>"


#: What programs call: `with heatsink.local() as server`.
local = Local

_running: "weakref.WeakSet[Local]" = weakref.WeakSet()


def _release_in_child() -> None:
    """A forked child must not hold the pipe open: the server would outlive its owner."""
    for server in list(_running):
        stdin = server._process.stdin
        if stdin is not None and not stdin.closed:
            stdin.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


def _told(line: bytes) -> str:
    """The message of an error that the server printed as JSON."""
    try:
        return str(json.loads(line)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""


def _platform_hint() -> str:
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        return ""
    return "The wheel holds a binary for Linux on x86-64; elsewhere build it with cargo, and name it in HEATSINK_BINARY."
