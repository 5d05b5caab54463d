"""An operator who gives a key other shards by `heatsink reshard`, again and again, and whose commands are killed and stopped.

Beside that, at random: pause and resume, cancel, status, dry runs, `verify`, reshards that a command carries out itself. It is a fault if a
command fails otherwise than its documentation says, or if a key does not come to rest within what the bounds of the fence need.
"""

import json
import time
from collections import Counter

from fence.resharding.schedule import standing_still

COUNTS = (4, 16, 7, 1)
# What a command may end with: done, stopped or to be tried again, refused, no answer. Anything else is a fault: 70 is one inside Heatsink.
CODES = (0, 1, 64, 69)


class Operator:
    def __init__(self, stage, table, pk):
        self.stage, self.table, self.pk, self.rng = stage, table, pk, stage.random("operator")
        # Readers of the stream see each item that moves.
        self.confirmed = ["--confirm-streams"] if stage.cluster.has_streams else []
        self.done, self.commands, self.refusals = [], Counter(), Counter()
        self.shards, self.moving, self.moved = 1, False, 0
        # Seconds that one reshard may take. A store that is killed makes every mover begin its walk anew, after 10 s.
        self.most = 12 * stage.cluster.bounds.step + 120 + (120 if stage.cluster.is_store_killed else 0)
        self.log = open(stage.cluster.scratch / "operator.log", "a", buffering=1)
        self.changes = [0.0]  # when a move may have begun or ended

    def changed(self, begin, end):
        """Whether the key moved, or began or ended a move, between these moments."""
        return self.moving or any(begin - 5 < at < end + 5 for at in self.changes[-20:])

    def work(self):
        """Until most of the time is over, and the reshard of then is done."""
        number = 0
        while not self.stage.clients.stopping.is_set() and self.stage.left() > min(20, self.stage.seconds / 4):
            self.reshard(COUNTS[number % len(COUNTS)])
            number += 1
            self.stage.clients.rest(self.rng.choice([0, 0, 0.5, 2]))

    # One reshard.

    def reshard(self, target):
        begun, most = time.monotonic(), self.most
        before, rng, self.moved = self.shards, self.rng, 0
        self.moving = True
        self.changes.append(begun)
        asked = False
        while True:
            if time.monotonic() - begun > most:
                self.stage.fault("refused", f"{before} -> {target} shards was not done in {most:.0f} s: {self.status()}")
                break
            if not asked:
                self.ask(target)
                asked = True
            told = self.status()
            if any(one["key"] == self.pk for one in told.get("unasked", [])):
                # Each command asks on record before it moves anything: so gateways go on where it is killed.
                self.stage.fault("abandoned", f"the key moves, and nobody asks for that: {told}")
                break
            mine = next((key for key in told.get("keys", []) if key["key"] == self.pk), None)
            intent = next((one for one in told.get("reshards", []) if one["key"] == self.pk), None)
            is_open = intent is not None and intent["ended"] is None
            self.moved = max(self.moved, intent["items_moved"] if intent else 0)
            if told and not is_open and (mine is None and target == 1 or mine and mine["shards"] == target and mine["moves"] is None):
                break
            if told and not is_open:
                # It was cancelled, or the command was killed before it had asked.
                asked = False
                continue
            if intent and intent["paused"]:
                self.stage.clients.rest(rng.choice([0.2, 1, 3]))
                self.command("resume", self.pk)
            elif rng.random() < 0.25:
                rng.choice([self.pause, self.cancel, self.back, self.dry_run, self.verify, self.gateways])()
            self.stage.clients.rest(0.3)
        self.shards = target
        self.changes.append(time.monotonic())
        self.moving = False
        self.done.append((before, target, time.monotonic() - begun, self.moved))
        self.note(f"has {target} shards: {time.monotonic() - begun:.1f} s, {self.moved} items")

    def note(self, text):
        """For whom a fault is to be explained: what was asked, and when."""
        self.log.write(f"{time.monotonic() - self.stage.begun:8.2f} {text}\n")

    def ask(self, target):
        rng = self.rng
        rate = ["--rate", str(rng.choice([1000, 1000, 100_000])), *self.confirmed]
        if target == 1 and rng.random() < 0.5:
            return self.command("back", self.pk, *rate)
        more = rng.choice([[], [], ["--wait"], ["--wait"], ["--here"]])
        return self.command("start", self.pk, "--shards", str(target), *rate, *more)

    def pause(self):
        self.command("pause", self.pk)

    def cancel(self):
        if self.rng.random() < 0.4:
            self.command("cancel", self.pk)

    def back(self):
        """Of a key that is on its way: refused, as other shards are asked for."""
        self.command("back", self.pk, "--dry-run", *self.confirmed)

    def dry_run(self):
        self.command("start", self.pk, "--shards", str(self.rng.randint(1, 20)), "--dry-run", *self.confirmed)

    def verify(self):
        """Counts every item, also on the way. What it finds misplaced is a fault."""
        if self.stage.cluster.is_own:
            return  # of a file it needs the server to be stopped
        command = self.stage.cluster.tool("verify", self.table, self.pk)
        code, out, complaint = self.stage.cluster.start_tool(command).wait(60)
        self.commands["verify"] += 1
        self.judge("verify", code, complaint)
        found = document(out)
        if found.get("wrong"):
            self.stage.fault("lost", f"verify in the middle: {out}")

    def gateways(self):
        if self.stage.cluster.is_own:
            return
        code, _, complaint = self.stage.cluster.start_tool(self.stage.cluster.tool("gateways")).wait(60)
        self.commands["gateways"] += 1
        self.judge("gateways", code, complaint)

    def status(self):
        """What is on record, as a document; empty where the store did not answer."""
        code, out, complaint = self.stage.cluster.start_tool(self.stage.cluster.reshard("status", self.table)).wait(60)
        self.commands["status"] += 1
        self.judge("status", code, complaint)
        return document(out) if code == 0 else {}

    def command(self, what, *arguments):
        """Runs one. Half of them are killed or stand still on the way; what the operator does not wait for, is left to itself."""
        running = self.stage.cluster.start_tool(self.stage.cluster.reshard(what, self.table, *arguments))
        name = " ".join([what, *(word for word in arguments if word.startswith("--") and word not in ("--rate", "--shards"))])
        self.commands[name] += 1
        befalls, after = self.rng.choice(["nothing", "nothing", "kill", "stand still"]), self.rng.choice([0.01, 0.1, 1, 4])
        length = standing_still(self.rng, self.stage.cluster.bounds)
        self.note(f"{' '.join([what, *arguments])}; {befalls}")
        if befalls != "nothing" and not running.ends_within(self.rng.uniform(0, after)):
            self.commands[f"{befalls} of {name}"] += 1
            if befalls == "kill":
                running.kill()
                return None
            running.pause()
            self.stage.clients.rest(length)
            running.resume()
        code, out, complaint = running.wait(self.most)
        self.judge(name, code, complaint)
        moved = document(out).get("moved")
        self.moved = max(self.moved, moved if isinstance(moved, int) else 0)
        self.note(f"{what}: exit {code} {complaint[-200:]}")
        return code

    def judge(self, name, code, complaint):
        if code != 0:
            told = document(complaint)
            text = (told.get("error") or told).get("message", complaint) if isinstance(told.get("error") or told, dict) else complaint
            self.refusals[f"{name} {code}: {' '.join(str(text).split()[:9])}"] += 1
        if code not in CODES or "panicked" in complaint:
            self.stage.fault("failed", f"{name}: exit {code}: {complaint[-300:]}")

    def lines(self):
        yield "reshards: " + ", ".join(f"{a} -> {b} {s:.1f} s ({n} items)" for a, b, s, n in self.done)
        yield "commands: " + ", ".join(f"{times} {name}" for name, times in self.commands.most_common())
        yield "refused: " + (", ".join(f"{times} × {name}" for name, times in self.refusals.most_common()) or "none")


def document(text):
    """The JSON document in the last line of an output; empty where there is none."""
    try:
        told = json.loads(text) if text.startswith("{") else json.loads(text.splitlines()[-1])
    except (ValueError, IndexError):
        return {}
    return told if isinstance(told, dict) else {}
