"""Clients with ElectroDB and OneTable (clients/js/fence/mappers.js): every write and read goes through the mapper's own methods and pagers.

The Node program only makes calls. What must come of each is known here, as for `resharding.items`.
"""

import json
import subprocess
import threading
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from fence.clients import PATIENCE, PAUSE
from fence.oracle import ABSENT, ACKED, PHYSICAL, REFUSED, UNKNOWN

SCRIPT = Path(__file__).parents[3] / "js" / "fence" / "mappers.js"
# The keys that each mapper makes of a team and an id.
KEYS = {"ElectroDB": ("$storm#team_{}", "$task_1#id_{}"), "OneTable": ("team#{}", "task#{}")}
# What a mapper writes into each item beside its attributes.
MARKS = {"ElectroDB": {"__edb_e__": {"S": "task"}, "__edb_v__": {"S": "1"}}, "OneTable": {"_type": {"S": "Task"}}}
SLOTS = 4
# The share of a client's calls that make a new key: some ten in a minute, all together.
BIRTHS = 0.004


class Failed(Exception):
    """A call that did not succeed."""

    def __init__(self, error):
        self.status, self.refused, self.name, self.message = (error[name] for name in ("status", "refused", "name", "message"))
        super().__init__(f"{self.name} {self.status}: {self.message}")

    @property
    def outcome(self):
        return REFUSED if self.refused or self.status and 400 <= self.status < 500 else UNKNOWN

    @property
    def begins_anew(self):
        return "the statement again" in self.message

    @property
    def kind(self):
        """As measures name it."""
        return self.name if self.outcome == REFUSED else f"{self.status} {self.name} “{' '.join(self.message.split()[:9])}”"


class Mappers:
    """The Node program, which makes calls for several clients at once."""

    def __init__(self, table, endpoints, log):
        self.process = subprocess.Popen(
            ["node", "--no-warnings", str(SCRIPT), table, *endpoints], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
        )
        self._numbers, self._waiting, self._lock = count(1), {}, threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def call(self, **request):
        """The rows that a call showed, or None where it shows none. Raises `Failed`."""
        number, done = next(self._numbers), threading.Event()
        waits = self._waiting[number] = [done, None]
        with self._lock:
            self.process.stdin.write(json.dumps({"number": number, **request}) + "\n")
            self.process.stdin.flush()
        if not done.wait(PATIENCE + 30):
            raise RuntimeError(f"the mappers do not answer: {request}")
        if "error" in waits[1]:
            raise Failed(waits[1]["error"])
        return waits[1]["rows"]

    def _listen(self):
        for line in self.process.stdout:
            told = json.loads(line)
            waits = self._waiting.pop(told["number"])
            waits[1] = told
            waits[0].set()

    def end(self):
        self.process.kill()
        self.process.wait()


@dataclass
class Task:
    """What lies there: None, or its value and its number, either of them None."""

    team: str
    id: str
    holds: tuple | None = None

    @property
    def key(self):
        return {"team": self.team, "id": self.id}


class MapperClient:
    """One client of a mapper, and the teams that only it writes."""

    def __init__(self, stage, table, name, mapper, mappers, measures, gateways, teams, changed):
        self.stage, self.oracle, self.table, self.name, self.mapper = stage, stage.oracle, table, name, mapper
        self.mappers, self.measures, self.gateways, self.changed = mappers, measures, gateways, changed
        self.made = self.written = self.anew = self.given_up = self.read = 0
        self.teams, self.tasks = list(teams), [self.fresh(team) for team in teams for _ in range(SLOTS)]
        self.kinds = [self.put, self.put, self.create, self.create, self.update, self.update, self.add, self.add, self.delete, self.batch, self.get,
                      self.get, self.find, self.find, self.find]

    def fresh(self, team):
        self.made += 1
        return Task(team, f"{self.made * 37 % 1000:03}-{self.name}-{self.made}")

    def act(self, rng):
        chance = rng.random()
        act = self.born if chance < BIRTHS else self.scan if chance < BIRTHS + 0.02 else rng.choice(self.kinds)
        act(rng)
        self.stage.clients.rest(rng.random() * 0.1)

    def place(self, team, id):
        partition, sort = KEYS[self.mapper]
        return partition.format(team.lower()), sort.format(id.lower())

    # Writes.

    def next(self):
        self.written += 1
        return f"{self.name}.{self.written:07}"

    def put(self, rng):
        task = rng.choice(self.tasks)
        value = self.next()
        self.write(rng, "put", task, (value, None), item={**task.key, "v": value})

    def create(self, rng):
        task = rng.choice(self.tasks)
        value, there = self.next(), task.holds
        outcome, error = self.write(rng, "create", task, (value, None), item={**task.key, "v": value})
        if outcome == ACKED and there is not None:
            self.fault("accepted", task, f"create was acknowledged, and {there} was there")
        elif error and "ConditionalCheckFailed" in error.name and there is None:
            self.fault("lost", task, f"create was refused by its condition, and nothing was there: {error}")

    def update(self, rng):
        task = rng.choice(self.tasks)
        value = self.next()
        self.write(rng, "update", task, (value, (task.holds or (None, None))[1]), key=task.key, v=value)

    def add(self, rng):
        task = rng.choice(self.tasks)
        value, number = task.holds or (None, None)
        self.write(rng, "add", task, (value, (number or 0) + 1), key=task.key)

    def delete(self, rng):
        task = rng.choice(self.tasks)
        self.write(rng, "delete", task, None, key=task.key)

    def batch(self, rng):
        self.put_all(rng, rng.sample(self.tasks, rng.randint(2, 8)))

    def born(self, rng):
        """A key that nobody has written yet."""
        team = f"born-{self.name}-{len(self.teams)}"
        self.teams.append(team)
        tasks = [self.fresh(team) for _ in range(SLOTS)]
        self.tasks += tasks
        if rng.random() < 0.5:
            self.put_all(rng, list(tasks))
        else:
            value = self.next()
            self.write(rng, "put", tasks[0], (value, None), item={**tasks[0].key, "v": value})

    def put_all(self, rng, tasks):
        values = [(self.next(), None) for _ in tasks]
        begun = [self.begin(task, new) for task, new in zip(tasks, values)]
        error = self.call(rng, "batch", items=[{**task.key, "v": new[0]} for task, new in zip(tasks, values)])[1]
        for task, one, new in zip(tasks, begun, values):
            # A mapper that sends what was left out again does not say what was done.
            self.end(task, one, new, UNKNOWN if error else ACKED)

    def write(self, rng, what, task, after, **request):
        """Returns the outcome, and the error where there was one."""
        begun = self.begin(task, after)
        error = self.call(rng, what, **request)[1]
        outcome = error.outcome if error else ACKED
        self.end(task, begun, after, outcome)
        return outcome, error

    # Reads.

    def get(self, rng):
        task, begin = rng.choice(self.tasks), time.monotonic()
        rows, error = self.call(rng, "get", key=task.key)
        if not error:
            pk, sk = self.place(task.team, task.id)
            self.shown(pk, rows, begin, "get", [sk])

    def find(self, rng):
        """One team by the mapper's pager: in order, complete, without doubles."""
        team, order, limit = rng.choice(self.teams), rng.choice(["asc", "desc"]), rng.choice([1, 2, 3, 100])
        what, begin = rng.choice(["find", "find", "all"]), time.monotonic()
        rows, error = self.call(rng, what, team=team, order=order, limit=limit)
        if error:
            self.given_up += 1
            return
        self.read += 1
        pk, name = self.place(team, "")[0], f"{what} {order} by {limit}"
        sort_keys = [row[1] for row in rows]
        if sort_keys != sorted(sort_keys, reverse=order == "desc"):
            self.oracle.fault("disordered", self.table, pk, "", f"{self.mapper}'s {name} showed {sort_keys}")
        self.shown(pk, rows, begin, name)

    def scan(self, rng):
        """The whole table by the mapper's pager, which shows the mapper's own items."""
        begin = time.monotonic()
        rows, error = self.call(rng, "scan", limit=rng.choice([150, 400, 1000]))
        if error:
            self.anew, self.given_up = self.anew + error.begins_anew, self.given_up + (not error.begins_anew)
            return
        self.read += 1
        if self.changed(begin, time.monotonic()):
            rows = list({(row[0], row[1]): row for row in rows}.values())
        of = {}
        for row in rows:
            of.setdefault(row[0], []).append(row)
        own = {self.place(team, "")[0] for team in self.teams}
        for pk in own | {pk for pk in of if not PHYSICAL.search(pk)}:
            self.shown(pk, of.get(pk, []), begin, "scan")

    def shown(self, pk, rows, begin, what, asked=None):
        what = f"{self.mapper}'s {what}"
        for row in rows:
            if PHYSICAL.search(row[0]) or row[0] != pk:
                self.oracle.fault("shown", self.table, row[0], row[1], f"{what} of {pk} showed the key {row[0]!r}")
        self.oracle.shown(self.table, pk, [(row[1], text(row[2], row[3])) for row in rows], begin, time.monotonic(), 0, what, asked)

    # Bookkeeping.

    def call(self, rng, what, **request):
        """The rows and the error, one of them None."""
        gateway, begin, rows, failed = rng.randrange(self.gateways), time.monotonic(), None, None
        try:
            rows = self.mappers.call(mapper=self.mapper, call=what, gateway=gateway, **request)
        except Failed as error:
            failed = error
            self.stage.clients.rest(PAUSE)
        self.measures.note(f"{self.mapper} {what}", gateway, begin, failed)
        return rows, failed

    def begin(self, task, after):
        return self.oracle.begin(self.table, *self.place(task.team, task.id), ABSENT if after is None else text(*after))

    def end(self, task, begun, after, outcome):
        self.oracle.end(self.table, begun, outcome)
        if outcome == ACKED:
            task.holds = after
        elif outcome == UNKNOWN:
            self.tasks[self.tasks.index(task)] = self.fresh(task.team)

    def fault(self, kind, task, what):
        self.oracle.fault(kind, self.table, *self.place(task.team, task.id), f"{self.mapper}: {what}")


def text(value, number):
    """As `value_of` says an item."""
    return value if number is None else f"{value or ''}+{number}"
