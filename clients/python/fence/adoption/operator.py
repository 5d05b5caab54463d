"""An operator who gives a whole table other shards by `heatsink adopt`, and whose commands are killed, stand still, and are turned round.

Beside that, at random: status, dry runs, `verify`, the list of gateways. It is a fault if a command fails otherwise than its documentation says, if the
table does not come to rest within what the bounds of the fence need, or if a physical key is left when it is whole.
"""

import time
from collections import Counter

from fence.clients import FAILURES
from fence.oracle import PHYSICAL
from fence.resharding.operator import CODES, document
from fence.resharding.schedule import standing_still

COUNTS = (8, 3, 1)
# How often the commands of one adoption are killed or stand still.
TROUBLES = 3
# How often `verify` is run where a gateway that stands still, or a store that was killed, may be in its way.
TRIES = 20


class TableOperator:
    def __init__(self, stage, table, keys):
        self.stage, self.table, self.rng = stage, table, stage.random("operator")
        self.gateways = []
        self.done, self.commands, self.refusals = [], Counter(), Counter()
        self.shards, self.moving, self.changes = 1, False, [0.0]
        # Seconds that one adoption may take.
        self.most = 60 * stage.cluster.bounds.step + keys + (240 if stage.cluster.is_store_killed else 120)
        self.log = open(stage.cluster.scratch / "operator.log", "a", buffering=1)

    def changed(self, begin, end):
        """Whether the table, or a key of it, moved between these moments."""
        return self.moving or any(begin - 5 < at < end + 5 for at in self.changes[-20:])

    def work(self):
        """Round after round, until most of the time is over and the table is whole."""
        number = 0
        while not self.stage.clients.stopping.is_set() and (number < len(COUNTS) or self.stage.left() > min(20, self.stage.seconds / 4)):
            self.adopt(COUNTS[number % len(COUNTS)])
            number += 1
            # Scans of this time are judged for doubles too.
            self.stage.clients.rest(self.rng.choice([1, 8]))
        if self.shards != 1:
            self.adopt(1)

    # One adoption.

    def adopt(self, target):
        begun, before, wanted, troubles, is_done = time.monotonic(), self.shards, target, 0, False
        self.changes.append(begun)
        self.moving = True
        if target == 1:
            self.give("")
        is_part = self.rng.random() < 0.2 and target != 1
        while True:
            if time.monotonic() - begun > self.most:
                self.stage.fault("refused", f"{before} -> {target} shards was not done in {self.most:.0f} s")
                break
            code, complaint, befell = self.run(target, is_part, troubles < TROUBLES)
            troubles += befell
            if code == 0 and not is_part or code == 64 and target == 1 and troubles and "nothing to bring back" in complaint:
                is_done = True
                break
            if code == 64:
                if not self.is_waiting(complaint):
                    self.stage.fault("failed", f"adopt: {complaint[-300:]}")
                    break
                self.stage.clients.rest(1)
            is_part = is_part and code != 0
            if befell and target == wanted and self.rng.random() < 0.2:
                # Back to where the keys came from: another way it cannot be turned round.
                target, is_part = before, False
                if target == 1:
                    self.give("")
            self.stage.clients.rest(0.3)
        self.shards = target
        took = time.monotonic() - begun
        self.changes.append(time.monotonic())
        self.moving = False
        self.done.append((before, wanted, target, took))
        self.note(f"has {target} shards: {took:.1f} s; faults so far: {dict(self.stage.oracle.faults)}")
        if target == 1 and is_done:
            self.whole()
        elif is_done:
            self.give(self.rules(target))
            self.verify(True)

    def rules(self, shards):
        return f'[[rule]]\ntable = "{self.table}"\nstrategy = "calculated"\nshards = {shards}\n' if shards > 1 else ""

    def give(self, rules):
        """Gives all gateways a rule, or takes it from them: they read their files again by themselves, at the latest when they run again."""
        if any(gateway.rules != rules for gateway in self.gateways):
            for gateway in self.gateways:
                gateway.rules = rules
                self.stage.cluster.rules_file(gateway.name, rules)
            self.stage.clients.rest(6)

    def run(self, target, is_part, may_befall):
        """Runs the command once. Its exit code, None where it was killed; its complaint; whether anything befell it."""
        rng, cluster = self.rng, self.stage.cluster
        more = (["--up-to", str(rng.choice([10, 50]))] if is_part else []) + (["--here"] if rng.random() < 0.1 else [])
        command = [*cluster.adopt_command(self.table, self.rules(target), target == 1), *more]
        running, name = cluster.start_tool(command), "adopt --back" if target == 1 else "adopt"
        self.commands[" ".join([name, *(word for word in more if word.startswith("--"))])] += 1
        befalls = rng.choice(["nothing", "kill", "kill", "stand still"]) if may_befall else "nothing"
        self.note(f"{name} {target} {' '.join(more)}; {befalls}")
        befell = befalls != "nothing" and not running.ends_within(rng.uniform(0, rng.choice([0.5, 3, 10, 30])))
        if befell:
            self.commands[f"{befalls} of {name}"] += 1
            if befalls == "kill":
                running.kill()
                self.note("killed")
                return None, "", True
            running.pause()
            self.stage.clients.rest(standing_still(rng, cluster.bounds))
            running.resume()
        begun = time.monotonic()
        while not running.ends_within(2) and time.monotonic() - begun < self.most:
            if rng.random() < 0.25:
                rng.choice([self.verify, self.status, self.dry_run, self.list_gateways])()
        code, out, complaint = running.wait(1)
        self.note(f"{name}: exit {code} {out[-200:]} {complaint[-300:]}")
        self.judge(name, code, complaint)
        return code, complaint, befell

    def is_waiting(self, complaint):
        """Whether that ends by itself: a gateway that stood still, or was away, has yet to read that it has no rule for the table any more, or keys
        are still on their way by a run that was turned round."""
        return "Rules of gateways are for table" in complaint or "are asked for already" in complaint

    # Beside it.

    def verify(self, is_at_rest=False):
        """Counts every item, also on the way. What it finds misplaced is a fault; at rest so is it if it never comes to its end."""
        for _ in range(TRIES):
            code, found = self.tool("verify", self.table)
            if not is_at_rest or code == 0 or found.get("wrong"):
                break
            self.stage.clients.rest(1)
        if found.get("wrong") or is_at_rest and code != 0:
            self.stage.fault("lost", f"verify: exit {code}: {found}")

    def status(self):
        self.command("status", self.stage.cluster.reshard("status", self.table))

    def dry_run(self):
        rules = self.rules(self.rng.choice([2, 5]))
        command = [*self.stage.cluster.tool("adopt", self.table), "--dry-run"]
        # With a file of its own: the command that runs reads the other one.
        command[command.index("--rules") + 1] = str(self.stage.cluster.rules_file("dry", rules))
        self.command("adopt --dry-run", command)

    def list_gateways(self):
        self.tool("gateways")

    def tool(self, *arguments):
        return self.command(arguments[0], self.stage.cluster.tool(*arguments))

    def command(self, name, command):
        code, out, complaint = self.stage.cluster.start_tool(command).wait(120)
        self.commands[name] += 1
        self.judge(name, code, complaint)
        return code, document(out)

    def judge(self, name, code, complaint):
        if code != 0:
            told = document(complaint)
            text = (told.get("error") or told).get("message", complaint) if isinstance(told.get("error") or told, dict) else complaint
            self.refusals[f"{name} {code}: {' '.join(str(text).split()[:12])}"] += 1
            self.note(f"{name}: exit {code}: {complaint[-600:]}")
        if code not in CODES or "panicked" in complaint:
            self.stage.fault("failed", f"{name}: exit {code}: {complaint[-300:]}")

    def whole(self):
        """No physical key is left in the store, past the network."""
        left = None
        while left is None and not self.stage.clients.stopping.is_set():
            try:
                pages = self.stage.raw.get_paginator("scan").paginate(
                    TableName=self.table, ConsistentRead=True, ProjectionExpression="pk, sk")
                left = [(item["pk"]["S"], item["sk"]["S"]) for page in pages for item in page["Items"] if PHYSICAL.search(item["pk"]["S"])]
            except FAILURES:
                self.stage.clients.rest(0.5)
        for pk, sk in left or []:
            self.stage.oracle.fault("shown", self.table, pk, sk, "the table is whole, and the store holds this")

    def note(self, text):
        """For whom a fault is to be explained: what was asked, and when."""
        self.log.write(f"{time.monotonic() - self.stage.begun:8.2f} {text}\n")

    def lines(self):
        yield "adoptions: " + ", ".join(
            f"{a} -> {b}{'' if b == c else f', turned round to {c}'} {s:.1f} s" for a, b, c, s in self.done)
        yield "commands: " + ", ".join(f"{times} {name}" for name, times in self.commands.most_common())
        yield "refused: " + (", ".join(f"{times} × {name}" for name, times in self.refusals.most_common()) or "none")
