"""Everything at random: tables of every strategy under load, while gateways restart, die and stand still, tables are dropped and made again,
layouts change, and the network delays, keeps back and loses."""

import time
from itertools import count

from fence.clients import create

RULES = """
[[rule]]
table = "Mix-board"
strategy = "calculated"
shards = 6

[[rule]]
table = "Mix-log"
strategy = "bucket"
bucket = "day"
shards = 2

[[rule]]
table = "Mix-votes"
strategy = "counter"
attributes = ["n"]
shards = 4

[[rule]]
table = "Mix-new-*"
strategy = "calculated"
shards = 3
"""
# What adoptions go by; the gateways have no such rules and take what is on record.
ADOPTED = {
    "Mix-tasks": '[[rule]]\ntable = "Mix-tasks"\nindex = "by-status"\nstrategy = "calculated"\nshards = 4\n',
    "Mix-book": '[[rule]]\ntable = "Mix-book"\nstrategy = "calculated"\nshards = 5\n',
}
CLIENTS, STATUSES = 8, ("open", "done", "held")
# How many events there are, however short the time is.
AT_LEAST = 4
# How often an adoption is run until it must be through.
TURNS = 5


def run(stage):
    play(stage, lambda mixture: mixture.troubles + mixture.changes)


def play(stage, events_of):
    """Clients at work in every table, and one event after the other of those that `events_of` picks."""
    stage.begin(RULES)
    for table in ("Mix-board", "Mix-log", "Mix-votes", "Mix-book"):
        stage.insist(lambda: create(stage.clients.at[0], table), "ResourceInUse")
    stage.insist(lambda: create(stage.clients.at[0], "Mix-tasks", indexes=["status"]), "ResourceInUse")
    stage.indexed.add("Mix-tasks")
    for table in ("Mix-board", "Mix-log", "Mix-votes", "Mix-book", "Mix-tasks"):
        stage.oracle.pulse(table).watch()
    for gateway in range(len(stage.clients.at)):
        for table in ("Mix-board", "Mix-log", "Mix-votes", "Mix-book", "Mix-tasks"):
            stage.until(lambda: stage.clients.get(gateway, table, "nobody", "nobody") is not None, 2 * stage.cluster.bounds.step)
    mixture = Mixture(stage)
    events = events_of(mixture)
    for name in range(CLIENTS):
        stage.clients.until_stopped(stage.random(name), mixture.client(name))
    stage.network.weather(delayed=0.1, longest=0.2, lost=0.003)
    # What the scenario needs to begin is not counted.
    played, stage.begun = 0, time.monotonic()
    while (stage.left() > 0 or played < AT_LEAST) and not stage.clients.stopping.is_set():
        stage.rng.choice(events)()
        stage.clients.rest(stage.rng.random())
        played += 1
    stage.more(100, "writes after the last event")
    if mixture.turning:
        mixture.turning.join()
    stage.network.weather()
    for table, adopted in mixture.adopted.items():
        stage.notes.append(f"{table} {'adopted' if adopted else 'as it was'}")
    stage.notes.append(", ".join(f"{name} {times}" for name, times in mixture.happened.items()))
    stage.settle()


class Mixture:
    def __init__(self, stage):
        self.stage, self.clients, self.rng = stage, stage.clients, stage.rng
        self.adopted = dict.fromkeys(ADOPTED, False)
        self.late, self.happened, self.tables = None, {}, ["Mix-board"]
        # What befalls processes and networks, and what changes layouts.
        self.troubles = [self.restart, self.kill, self.stand_still, self.keep_back]
        self.changes = [self.make_again, self.make_new, self.begin_turn, self.begin_turn]
        self.turning, self.turns = None, stage.random("turns")

    # Events.

    def note(self, event):
        self.happened[event] = self.happened.get(event, 0) + 1

    def gateway(self):
        return self.rng.choice(self.stage.cluster.gateways)

    def restart(self):
        gateway = self.gateway()
        gateway.stop()
        gateway.start()
        self.note("restarts")

    def kill(self):
        gateway = self.gateway()
        gateway.kill()
        self.clients.rest(self.rng.random())
        gateway.start()
        self.note("kills")

    def stand_still(self):
        gateway = self.gateway()
        gateway.pause()
        self.clients.rest(min(20, self.rng.uniform(0.2, 1.5) * self.stage.cluster.bounds.lease))
        gateway.resume()
        self.note("pauses")

    def keep_back(self):
        """A few writes of one gateway are as late as a network may make them; the next event does not wait for them."""
        gateway, seconds = self.gateway(), self.stage.cluster.bounds.late
        # Each keeps a client waiting; most of them have to go on.
        if self.late is None or self.late.wait_passed(0):
            self.late = self.stage.network.hold([gateway.name], ["PutItem", "UpdateItem", "TransactWriteItems"], seconds=seconds, count=3)
            self.note("late writes")

    def make_again(self):
        table, at = "Mix-log", self.clients.at[self.gateway().number]
        self.stage.oracle.dropping(table)
        self.stage.insist(lambda: at.delete_table(TableName=table), "ResourceNotFound")
        self.stage.insist(lambda: create(at, table), "ResourceInUse")
        self.stage.oracle.made_again(table)
        self.note("re-creations")

    def make_new(self):
        table, at = f"Mix-new-{len(self.tables)}", self.clients.at[self.gateway().number]
        if len(self.tables) > 20:
            return
        self.tables.append(table)  # clients begin to put at once
        self.clients.rest(0.2)
        self.stage.insist(lambda: create(at, table), "ResourceInUse")
        self.note("new tables")

    def begin_turn(self):
        """An adoption there or back, beside the events that follow. One at a time."""
        if self.turning is None or not self.turning.is_alive():
            self.turning = self.clients.run(self.turn, self.turns.choice(list(ADOPTED)))

    def turn(self, table):
        if table == "Mix-tasks":
            return self.turn_of(table)
        with self.clients.nobody():
            return self.turn_of(table)

    def turn_of(self, table):
        """Every third is killed on the way. It is run again until it is through."""
        back = self.adopted[table]
        adoption = self.stage.cluster.adopt(table, ADOPTED[table], back)
        if self.turns.random() < 0.34:
            self.clients.rest(self.turns.uniform(0, 1.2) * self.stage.cluster.bounds.step)
            adoption.kill()
            self.note("killed adoptions")
        for run in range(1, TURNS + 1):
            code, _, complaint = adoption.wait(6 * self.stage.cluster.bounds.step + 30)
            if code == 0:
                break
            if run == TURNS:
                self.stage.fault("failed", f"adopt {table}, back {back}: exit {code}: {complaint[-300:]}")
                return
            adoption = self.stage.cluster.adopt(table, ADOPTED[table], back)
        self.adopted[table] = not back
        self.note("adoptions back" if back else "adoptions")

    # Clients.

    def client(self, name):
        """Writes its own items in every table, and reads everybody's."""
        clients, numbers, stage = self.clients, count(), self.stage

        def any_gateway(rng):
            # Two of them: while one gateway stands still, half of the clients go on.
            return (name + rng.randrange(2)) % len(clients.at)

        def work(rng):
            number, gateway = next(numbers), any_gateway(rng)
            value, pk, sk = f"{name}-{number}", f"k{rng.randrange(2)}", f"{name}-{rng.randrange(40):02}"
            kind = rng.randrange(10)
            if kind < 3:
                table = rng.choice([*self.tables[-3:], "Mix-board", "Mix-book"])
                rng.choice([clients.put, clients.put, clients.update])(gateway, table, pk, sk, value)
            elif kind == 3:
                clients.delete(gateway, rng.choice(["Mix-board", "Mix-book"]), pk, sk)
            elif kind == 4:
                day, age = 1 + rng.randrange(9), stage.oracle.age("Mix-log")
                clients.put(gateway, "Mix-log", f"log{rng.randrange(6)}", f"2026-06-0{day}T00:00:00Z#{age}-{value}", value)
            elif kind == 5:
                clients.add(gateway, "Mix-votes", "hot", f"{rng.randrange(3)}", rng.randrange(1, 9))
            elif kind == 6:
                clients.put_task(gateway, "Mix-tasks", pk, sk, f"{rng.choice(STATUSES)}:{value}")
            elif kind == 7:
                clients.tasks(gateway, "Mix-tasks", rng.choice(STATUSES), rng.choice([None, 2, 5]), rng.random() < 0.5)
            elif kind == 8:
                clients.sum(gateway, "Mix-votes", "hot", f"{rng.randrange(3)}")
            elif number % 4 == 0:
                clients.query(gateway, "Mix-log", f"log{rng.randrange(6)}", rng.choice([None, 9]))
            else:
                table = rng.choice(["Mix-board", "Mix-book"])
                clients.query(gateway, table, pk, rng.choice([None, 5]))
                clients.get(gateway, table, pk, sk)

        return work
