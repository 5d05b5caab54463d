"""The client with the AWS SDK for Rust (clients/rust/examples/reshard), which owns items of the key that moves and keeps an oracle of its own.

It is told what to do by one line, tells its faults as they are found, and at the end what must lie where: that is judged with everything else.
"""

import json
import re
import subprocess
import threading

from fence.clients import PATIENCE
from fence.oracle import ACKED, REFUSED, UNKNOWN, Register

# The sort keys of its items.
FOREIGN = re.compile(r"^\d\d-r\d+-")


class RustClient:
    def __init__(self, binary, oracle, table, wanted, log=None):
        self.oracle, self.table, self.report, self.faults = oracle, table, None, 0
        oracle.tables[table].foreign = FOREIGN
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)
        self.process.stdin.write(json.dumps({**wanted, "table": table}) + "\n")
        self.listening = threading.Thread(target=self._listen, daemon=True)
        self.listening.start()

    def _listen(self):
        for line in self.process.stdout:
            told = json.loads(line)
            self.report = told.get("report")
            if "fault" in told:
                self.faults += 1
                self.oracle.fault(told["fault"], self.table, told["pk"], told["sk"], f"the Rust client: {told['text']}")

    def end(self):
        """Tells it to stop, and waits."""
        self.process.stdin.close()
        try:
            code = self.process.wait(PATIENCE + 10)
        finally:
            self.process.kill()
        self.listening.join()
        if self.report is None or code != (1 if self.faults else 0):
            self.oracle.fault("failed", self.table, "", "", f"the Rust client: exit {code} after {self.faults} faults, report: {bool(self.report)}")

    def hand_over(self):
        """Takes over what it knows of its items, when nobody reads them any more: what earlier reads have shown is not to be judged by it."""
        if self.report is None:
            return
        known = self.oracle.tables[self.table]
        for pk, sk, holds, perhaps in self.report["items"]:
            register = known.registers[pk].setdefault(sk, Register())
            for value, outcome in [(holds, ACKED), *((value, UNKNOWN) for value in perhaps)]:
                register.end(register.begin(value), outcome)
        known.foreign = None
        for outcome, name in ((ACKED, "acknowledged"), (REFUSED, "refused"), (UNKNOWN, "unknown")):
            self.oracle.counts[outcome] += self.report[name]

    @property
    def calls(self):
        return self.report["calls"] if self.report else {}

    @property
    def seconds(self):
        return self.report["seconds"] if self.report else {}

    def lines(self):
        if self.report:
            counted = lambda counts: ", ".join(f"{times} {name}" for name, times in counts.items()) or "none"  # noqa: E731
            yield f"the Rust client: longest wait for a success {self.report['longest']:.1f} s; {counted(self.report['calls'])}; " \
                  f"errors: {counted(self.report['errors'])}"
