"""What a scenario stands on: the processes, the clients, the oracle and the clock, and what it reports in one line."""

import random
import time

from botocore.exceptions import ClientError

from fence.clients import FAILURES, Clients, outcome_of
from fence.cluster import GATEWAYS, REGISTRY
from fence.oracle import ACKED, REFUSED, UNKNOWN, Oracle
from fence.settle import settle

# Every kind of fault, in the order of the summary.
KINDS = {
    "lost": "acknowledged, and not shown or not in the store",
    "doubled": "shown twice, or twice in the store",
    "disordered": "shown out of order",
    "shown": "shown under a physical key",
    "phantom": "shown, though nobody wrote it or it was refused",
    "accepted": "a request that must be refused was not",
    "refused": "refused for longer than every bound allows",
    "failed": "a command failed that must not",
    "abandoned": "a key that moves, and nobody goes on with it",
}


# How often an adoption that fails is run again.
RUNS = 3


class Stage:
    """One scenario's run."""

    def __init__(self, cluster, name, seconds):
        self.cluster, self.network, self.name, self.seconds = cluster, cluster.network, name, seconds
        self.oracle = Oracle()
        self.clients = Clients(cluster, self.oracle)
        self.raw = self.clients.raw
        self.rng = self.random()
        self.indexed = set()  # tables with an index by-status
        self.unreachable = 0
        self.notes, self.told = [], []
        self.begun = time.monotonic()

    def random(self, *names):
        """The random choices of one client, or of the scenario itself."""
        return random.Random("/".join(map(str, (self.cluster.seed, self.name, *names))))

    def begin(self, rules="", keep_registry=True, gateways=GATEWAYS):
        self.cluster.begin(rules, keep_registry, gateways)
        self.clients.at = self.clients.at[:gateways]
        self.begun = time.monotonic()

    def left(self):
        """Seconds that the scenario has yet, for what it repeats."""
        return self.begun + self.seconds - time.monotonic()

    def any(self):
        """Some gateway."""
        return self.rng.randrange(len(self.clients.at))

    def until(self, condition, timeout):
        """Waits for a condition. False when the time is up first, or a client broke."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline or self.clients.stopping.is_set():
                return False
            time.sleep(0.02)
        return True

    def surely(self, write):
        """Repeats a write until it is acknowledged. False, and a fault, where it never is."""
        if self.until(lambda: write() == ACKED, 3 * self.cluster.bounds.step):
            return True
        self.fault("refused", "a write that was repeated over and over")
        return False

    def insist(self, call, done=None):
        """Repeats a request until it is answered, or refused for good: a 4xx. Gives the answer and the refusal, one of them None. With
        `done`, a refusal in which that word stands is an answer too: the request was carried out before, and its answer was lost."""
        answer = refusal = None

        def answered():
            nonlocal answer, refusal
            try:
                answer, refusal = call(), None
                return True
            except FAILURES as error:
                refusal = str(error)
                self.clients.rest(0.1)
                return done in refusal if done else outcome_of(error) == REFUSED

        if not self.until(answered, 3 * self.cluster.bounds.step):
            self.fault("refused", f"a request that was repeated over and over: {refusal}")
        return answer, refusal

    def acked(self):
        return self.oracle.counts[ACKED]

    def more(self, writes, what, steps=3):
        """Waits until so many more writes were acknowledged. It is a fault if that takes longer than a few steps of a layout change."""
        least, timeout = self.acked() + writes, steps * self.cluster.bounds.step + 10
        if not self.until(lambda: self.acked() >= least, timeout):
            self.fault("refused", f"{what}: {self.acked() - least + writes} of {writes} writes in {timeout:.0f} s")

    def adopt(self, table, rules, back=False, steps=5):
        """Runs an adoption to its end. Returns its seconds. Where it fails that is a fault, and it is run again, as its message asks."""
        way = "adopt --back" if back else "adopt"
        for _ in range(RUNS):
            adoption = self.cluster.adopt(table, rules, back)
            code, _, complaint = adoption.wait(steps * self.cluster.bounds.step + 30)
            took = time.monotonic() - adoption.begun
            self.notes.append(f"{way} {took:.1f} s")
            if code == 0:
                break
            self.fault("failed", f"{way} {table}: exit {code}: {complaint[-300:]}")
        return took

    def version(self, table):
        """How often the record of a table was changed; 0 without one."""
        try:
            items = self.raw.scan(TableName=REGISTRY, ConsistentRead=True)["Items"]
        except ClientError:
            return 0
        versions = [item["version"]["N"] for item in items if item["sk"]["S"] == "table" and item["name"]["S"] == table]
        return max(map(int, versions), default=0)

    def fault(self, kind, text):
        self.oracle.fault(kind, self.name, "", "", text)

    def settle(self):
        self.clients.join()
        for pulse in self.oracle.pulses.values():
            pulse.rest()
        settle(self)

    def line(self):
        """What came out, in one line."""
        counts, faults = self.oracle.counts, self.oracle.faults
        stretch = max((pulse.longest for pulse in self.oracle.pulses.values()), default=0.0)
        fields = [f"{counts[ACKED]} acknowledged", f"{counts[UNKNOWN]} unknown", f"{counts[REFUSED]} refused"]
        fields += [f"{faults[kind]} {kind}" for kind in list(KINDS)[:5]]
        fields += [f"{faults[kind]} {kind}" for kind in list(KINDS)[5:] if faults[kind]]
        fields += [f"{self.unreachable} of the lost in the store"] if self.unreachable else []
        fields += [f"longest stretch without success {stretch:.1f} s", *self.notes]
        return f"{self.name:<12} {'FAULTS' if self.is_faulty() else 'ok':<6} {'; '.join(fields)}"

    def tell(self, line):
        """A further line about what happened, which is printed below the first."""
        self.told.append(line)

    def is_faulty(self):
        return sum(self.oracle.faults.values()) > 0
