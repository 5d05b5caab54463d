"""Runs the fenced blocks of a page as a reader would, one after another, in one folder.

| block | what is done |
|---|---|
| `sh` | each line is run by bash as it stands and must exit with 0; `export` holds for what follows |
| a line that starts the server | runs until it answers, stays for the blocks that follow, and is stopped with Ctrl-C before the next
  `cargo` command: it must exit with 0 and let go of its port |
| `python`, `js` | run against the server that was started last |
| `toml` | rules must pass `config check`, a scenario runs in `heatsink-lab simulate`, dependencies must be what cargo finds |
| `output` | what the block before it printed |
| `text` | a drawing: nothing |

Any other block is a failure: nobody would know whether it works.
"""

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path

from . import blocks

SERVERS = (["cargo", "run", "--release"], ["cargo", "run", "--release", "--", "serve"])
RULES = "cargo run --quiet --release -- config check --rules {}"
# The tables that a rules file may have, as the binary itself writes them.
SCHEMA_OF_RULES = Path(__file__).resolve().parents[2] / "docs/heatsink.schema.json"
SCENARIO = "cargo run --quiet --release --bin heatsink-lab -- simulate {}"
# Of a package that depends so. Whether it builds the crates' own tests say.
MANIFEST = "cargo tree --quiet --offline --manifest-path {} >/dev/null"
PACKAGE = '[workspace]\n[package]\nname = "program"\nversion = "0.0.0"\nedition = "2024"\n'


class Failed(Exception):
    """A block that does not do what the page promises."""


class Server:
    """A server in the foreground of a terminal of its own: Ctrl-C reaches the whole process group."""

    def __init__(self, command, folder, environment, port, patience):
        self.command, self.port = command, port
        if listening(port):
            raise Failed(f"port {port} is taken by another program; {command!r} cannot be shown to answer there")
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT, start_new_session=True)
        try:
            self.wait(time.monotonic() + patience)
        except BaseException:
            self.kill()
            raise

    def wait(self, end):
        while not answers(self.port):
            if self.process.poll() is not None:
                raise Failed(f"{self.command!r} ended with {self.process.returncode} and never answered\n{self.said()}")
            if time.monotonic() > end:
                raise Failed(f"{self.command!r} did not answer on port {self.port} in time\n{self.said()}")
            time.sleep(0.1)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def interrupt(self):
        """Ctrl-C."""
        try:
            self.end()
        finally:
            self.kill()

    def end(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.command!r} ended by itself with {self.process.returncode}\n{self.said()}")
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.command!r} was still there 30 s after Ctrl-C\n{self.said()}") from None
        if code != 0:
            raise Failed(f"{self.command!r} exited with {code} after Ctrl-C\n{self.said()}")
        if listening(self.port):
            raise Failed(f"{self.command!r} exited, but something still listens on port {self.port}")

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()


class Page:
    """A page whose blocks are run in `folder`. Use as a context manager: no server outlives it."""

    def __init__(self, markdown, folder, environment, *, port=8000, patience=3_000, short=None, elsewhere=(), only=None):
        """`short`: flags by command, for what takes long as it stands; the page must name them itself.
        `elsewhere`: commands that CI runs as steps of their own. `only`: the one kind of block that is run."""
        found, self.prose = blocks.split(markdown)
        self.blocks = [block for block in found if only in (None, block.language)]
        self.folder, self.environment, self.port, self.patience = Path(folder), dict(environment), port, patience
        self.short, self.elsewhere = short or {}, elsewhere
        self.server, self.printed, self.times = None, None, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server:
            self.server.kill()

    def prove(self):
        """Runs every block; what took how long is in `times`. Raises `Failed` at the first that fails."""
        for block in self.blocks:
            prove = {
                "sh": self.shell, "python": self.python, "js": self.javascript, "toml": self.toml, "output": self.output,
                "text": lambda _: None,
            }.get(block.language)
            try:
                if prove is None:
                    raise Failed(f"no one knows how to prove a block of {block.language or 'no language'!r}")
                prove(block)
            except Failed as failed:
                raise Failed(f"line {block.line}: {failed}") from None
        self.stop()

    def shell(self, block):
        for line in block.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if not words:
                continue
            if words[0] == "export":
                self.environment.update(word.split("=", 1) for word in words[1:])
            elif shlex.join(words) in self.elsewhere:
                self.times.append((0, f"{line} (a step of its own)"))
            elif words in SERVERS or words[:5] == SERVERS[1]:
                self.stop()
                begin = time.monotonic()
                self.server = Server(line, self.folder, self.environment, self.port, self.patience)
                self.times.append((time.monotonic() - begin, line))
            else:
                if words[0] == "cargo":
                    self.stop()
                self.run(self.shortened(words, line))

    def shortened(self, words, line):
        flags = self.short.get(shlex.join(words))
        if flags is None:
            return line
        if f"`{flags}`" not in self.prose:
            raise Failed(f"{line!r} takes long, and the page no longer names its short form `{flags}`")
        return f"{shlex.join(words)} {flags}"

    def python(self, block):
        self.snippet(block, "snippet.py", "python3")

    def javascript(self, block):
        self.snippet(block, "snippet.mjs", "node")

    def snippet(self, block, name, program):
        if self.server is None:
            raise Failed("no server runs here: a snippet needs one to talk to")
        (self.folder / name).write_text(block.text)
        self.run(f"{program} {name}")

    def toml(self, block):
        self.stop()
        if set(tomllib.loads(block.text)) <= {"dependencies", "dev-dependencies"}:
            return self.dependencies(block)
        (self.folder / "block.toml").write_text(block.text)
        self.run((RULES if of_rules(block.text) else SCENARIO).format("block.toml"))

    def dependencies(self, block):
        """In a package that lies beside a clone with the name `heatsink`, with the versions that are in force there."""
        beside = self.folder / "target" / "beside"
        program = beside / "program"
        (program / "src").mkdir(parents=True, exist_ok=True)
        (program / "src/lib.rs").touch()
        (program / "Cargo.toml").write_text(PACKAGE + block.text)
        if (self.folder / "Cargo.lock").exists():
            shutil.copy(self.folder / "Cargo.lock", program)
        if not (beside / "heatsink").is_symlink():
            (beside / "heatsink").symlink_to(self.folder)
        self.run(MANIFEST.format(program / "Cargo.toml"))

    def output(self, block):
        if self.printed is None or self.printed.strip() != block.text.strip():
            raise Failed(f"the page shows\n{block.text}but this was printed\n{self.printed}")

    def run(self, command):
        begin = time.monotonic()
        try:
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=self.patience, check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"{command!r} took longer than {self.patience} s") from None
        if done.returncode != 0:
            raise Failed(f"{command!r} exited with {done.returncode}\n{done.stdout}{done.stderr}")
        self.printed = done.stdout
        self.times.append((time.monotonic() - begin, command))

    def stop(self):
        if self.server:
            server, self.server = self.server, None
            server.interrupt()


def of_rules(toml):
    """Whether this is a rules file and not a scenario. A scenario needs tables that no rules file has."""
    return set(tomllib.loads(toml)) <= set(json.loads(SCHEMA_OF_RULES.read_text())["properties"])


def listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(port):
    """Whether an HTTP server answers there, whatever it says."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def steps(script):
    """The commands that `.ci/run` runs as steps of their own, and those that it names steps by which do the same."""
    return tuple(part for found in re.findall(r'^step "([^"]*)" (.*)$', script, re.MULTILINE) for part in found)
