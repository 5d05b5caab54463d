"""The processes: a store, the proxy before it, gateways behind that, and commands such as `heatsink adopt`.

Everything that a `heatsink` is started with stands here. Not here: what is done with them.
"""

import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fence.network import Network
from fence.stores import ENVIRONMENT, EmbeddedStore, OwnStore, Store, end, free_port

REGISTRY = "heatsink.registry"
DIRECTORY = "heatsink.buckets"
GATEWAYS = 4
# For how many seconds a gateway may fail to start.
START = 30


@dataclass(frozen=True)
class Bounds:
    """What the fence is told to count on, in seconds."""

    lease: float
    heartbeat: float
    poll: float
    straggler: float

    def text(self):
        fields = {"lease": self.lease, "heartbeat": self.heartbeat, "poll": self.poll, "straggler": self.straggler}
        return "[fence]\n" + "".join(f'{name} = "{duration(value)}"\n' for name, value in fields.items()) + "\n"

    @property
    def short_lease(self):
        """For how long a gateway that stands still can hold up a key that is about to move."""
        return max(self.lease / 30, self.poll)

    @property
    def step(self):
        """The longest that one step of a layout change takes: a gateway that does not answer."""
        return self.lease + self.straggler + 2 * self.poll

    @property
    def late(self):
        """How late a request may be kept back: within what the fence counts on, and before a gateway gives its answer up."""
        return min(14.0, 0.8 * self.straggler)


# The defaults of the fence, and what fits into a minute.
FULL = Bounds(lease=60, heartbeat=10, poll=2, straggler=30)
SHORT = Bounds(lease=4, heartbeat=1, poll=0.5, straggler=3)
# A build without a fence trusts what it knows for 10 s, whatever is configured; the delays are those that its faults were found with.
UNFENCED = Bounds(lease=10, heartbeat=10, poll=5, straggler=17.5)


class Gateway:
    """One `heatsink serve` on an address that it keeps, through restarts."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.name = cluster, number, f"g{number}"
        self.process, self.rules = None, ""
        self.port = cluster.store.port if cluster.is_own else free_port()
        self.log = open(cluster.scratch / f"{self.name}.log", "ab")

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self, rules=None):
        """Starts it, under new rules or the ones that it had."""
        self.rules = self.rules if rules is None else rules
        command = self.cluster.serve_command(self)
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env=ENVIRONMENT)
            if self.process.stdout.readline():
                return
            # A network that loses answers, or a store that was killed, can keep it from reading what is on record.
            self.process.wait()
            self.process = None
            time.sleep(0.3)
        raise RuntimeError(f"{self.name} did not start: see {self.log.name}")

    def stop(self):
        """Ends it as an operator does, draining."""
        if self.process:
            self.resume()
            end(self.process)
            self.process = None

    def kill(self):
        """Ends it in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


class Cluster:
    """The store, the network before it and the gateways behind that."""

    def __init__(self, binary, rust, jar, seed, short=False, store="local", keys=60):
        self.binary, self.rust, self.seed, self.short, self.keys = binary, rust, seed, short, keys
        self.is_local, self.is_own, self.is_store_killed = store == "local", store == "own", store == "embedded"
        # DynamoDB Local of 2020 has no PartiQL, and numbers the records of all streams by one clock: it fails where two are equal.
        self.has_partiql = self.has_streams = not self.is_local
        self.scratch = Path(tempfile.mkdtemp(prefix="heatsink-fence-"))
        self.fenced = self._knows_fence()
        self.bounds = UNFENCED if not self.fenced else SHORT if short else FULL
        self.store = self.network = None
        self.gateways = []
        try:
            log = open(self.scratch / "store.log", "wb")
            if self.is_own:
                self.store = OwnStore(self.scratch)
            elif store == "embedded":
                self.store = EmbeddedStore(binary, self.scratch, log)
            else:
                self.store = Store(jar, log)
            paths = [f"g{number}" for number in range(GATEWAYS)] + ["adopt"]
            rename = [f"{DIRECTORY}={DIRECTORY.replace('.', '-')}"] if self.is_store_killed else []
            self.network = Network(self.store.port, paths, seed, rename)
            self.gateways = [Gateway(self, number) for number in range(1 if self.is_own else GATEWAYS)]
        except BaseException:
            self.stop()
            raise

    def serve_command(self, gateway):
        """Every argument of a gateway."""
        at = ["--data", str(self.store.file)] if self.is_own else ["--upstream", self.network.endpoint(gateway.name)]
        return [
            self.binary, "serve", "--listen", f"127.0.0.1:{gateway.port}", *at, "--rules",
            str(self.rules_file(gateway.name, gateway.rules)), "--output", "json",
        ]

    def adopt_command(self, table, rules, back):
        """Every argument of an adoption, or of the way back."""
        command = [self.binary, "adopt", table, "--upstream", self.network.endpoint("adopt"), "--yes", "--output", "json"]
        command += ["--rules", str(self.rules_file("adopt", rules))]
        return command + (["--back"] if back else [])

    def reshard(self, what, *arguments):
        """Every argument of `heatsink reshard`."""
        at = ["--server", f"127.0.0.1:{self.store.port}"] if self.is_own else ["--upstream", self.network.endpoint("adopt")]
        return [self.binary, "reshard", what, *arguments, *at, "--rules", str(self.rules_file("adopt", "")), "--output", "json"]

    def tool(self, *arguments):
        """Every argument of another command that works on the store, past the network. On a file only while no gateway has it open."""
        at = ["--data", str(self.store.file)] if self.is_own else ["--upstream", self.store.endpoint]
        return [self.binary, *arguments, *at, "--rules", str(self.rules_file("adopt", "")), "--output", "json"]

    def rules_file(self, name, rules):
        file, text = self.scratch / f"{name}.toml", (self.bounds.text() if self.fenced else "") + rules
        # Not written again while a command may be reading it.
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        return file

    def adopt(self, table, rules, back=False):
        """Starts an adoption. The caller waits for it or kills it."""
        return self.start_tool(self.adopt_command(table, rules, back))

    def start_tool(self, command):
        """Starts a command. The caller waits for it or kills it."""
        return Running(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True))

    def begin(self, rules="", keep_registry=True, gateways=GATEWAYS):
        """A store without tables but, if it is to be kept, the registry; and so many gateways freshly started under these rules."""
        from fence.clients import connect  # boto3 takes a while to load; the processes start meanwhile

        self.network.weather()
        for gateway in self.gateways:
            gateway.stop()
        raw = connect(self.store.endpoint)
        if self.is_own:
            self.gateways[0].start(rules)
            return raw
        for page in raw.get_paginator("list_tables").paginate():
            for name in page["TableNames"]:
                if not (keep_registry and name == REGISTRY):
                    raw.delete_table(TableName=name)
        for gateway in self.gateways[:gateways]:
            gateway.start(rules)
        return raw

    def stop(self):
        for gateway in self.gateways:
            if gateway.process:
                gateway.resume()
                gateway.process.terminate()
        for gateway in self.gateways:
            gateway.stop()
        if self.network:
            self.network.stop()
        if self.store:
            self.store.stop()

    def forget_logs(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _knows_fence(self):
        """Whether this build has a fence whose bounds can be configured."""
        file = self.scratch / "probe.toml"
        file.write_text(SHORT.text())
        checked = subprocess.run([self.binary, "config", "check", "--rules", str(file)], capture_output=True, text=True)
        if checked.returncode != 0 and "unknown field `fence`" not in checked.stderr:
            raise RuntimeError(f"the bounds of the fence are not taken: {checked.stderr}")
        return checked.returncode == 0


class Running:
    """A running command."""

    def __init__(self, process):
        self.process, self.begun = process, time.monotonic()

    def wait(self, timeout):
        """Its exit code, what it printed and what it complained of."""
        try:
            out, complaint = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return None, "", f"not done after {timeout:.0f} s"
        return self.process.returncode, out.strip(), complaint.strip()

    def ends_within(self, seconds):
        try:
            self.process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


def duration(seconds):
    """As a configuration has it: `4s`, `500ms`."""
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{1000 * seconds:.0f}ms"
