"""The key of an index is adopted, and brought back, while clients write and read; some puts, and on the way back updates, arrive late."""

from fence.clients import create
from fence.oracle import ABSENT

RULES = """
[[rule]]
table = "Tasks"
index = "by-status"
strategy = "calculated"
shards = 8
"""
TABLE, ITEMS, CLIENTS = "Tasks", 40, 3
LATE_A_STEP, MOST_LATE = 16, 96
STATUSES = ("open", "done", "held")


def run(stage):
    stage.begin()
    clients = stage.clients
    create(stage.raw, TABLE, indexes=["status"])
    stage.indexed.add(TABLE)
    for number in range(ITEMS):
        # All of one status and one sort key: the order among them is Heatsink's own.
        stage.surely(lambda: clients.put_task(stage.any(), TABLE, f"p{number % 4}", f"{number:03}", f"open:{number}"))
    stage.oracle.pulse(TABLE).watch()
    for name in range(CLIENTS):
        clients.until_stopped(stage.random(name), writer(stage, name))
        clients.until_stopped(stage.random("reader", name), lambda rng: read(stage, rng))
    turn(stage, False, late_put)
    turn(stage, True, late_update)
    stage.settle()


def turn(stage, back, late):
    """An adoption. At each of its steps, while gateways have yet to notice, writes are sent that arrive late."""
    clients, gateways, seconds = stage.clients, [gateway.name for gateway in stage.cluster.gateways], stage.cluster.bounds.late
    with stage.network.hold(gateways, ["PutItem", "UpdateItem"], TABLE, ["late-"], seconds=seconds) as hold:
        adopting = clients.run(stage.adopt, TABLE, RULES, back)
        version, sent = stage.version(TABLE), []
        while adopting.is_alive() and len(sent) < MOST_LATE:
            if stage.version(TABLE) == version:
                clients.rest(0.05)
                continue
            version = stage.version(TABLE)
            for _ in range(LATE_A_STEP):
                sent.append(clients.run(late, stage, len(sent)))
                clients.rest(stage.cluster.bounds.poll * 0.9 / LATE_A_STEP)
        adopting.join()
        for thread in sent:
            thread.join()
        stage.notes.append(f"{hold.held} writes {seconds:.1f} s late")


def late_put(stage, number):
    stage.clients.put_task(number % len(stage.clients.at), TABLE, f"p{number % 4}", f"late-{number:03}", f"open:late{number}")


def late_update(stage, number):
    """Gives one of the items that were put late another status; each once."""
    register = stage.oracle.tables[TABLE].registers[f"p{number % 4}"].get(f"late-{number:03}")
    if register is None or register.known() is ABSENT:
        return
    stage.clients.move_task(number % len(stage.clients.at), TABLE, f"p{number % 4}", f"late-{number:03}", f"done:late{number}")


def writer(stage, name):
    """Gives its own items one status after the other."""
    own, clients = [number for number in range(ITEMS) if number % CLIENTS == name][: ITEMS // (2 * CLIENTS)], stage.clients
    count = iter(range(1, 1 << 40))

    def work(rng):
        number = rng.choice(own)
        value = f"{rng.choice(STATUSES)}:{name}-{next(count)}"
        clients.move_task(rng.randrange(len(clients.at)), TABLE, f"p{number % 4}", f"{number:03}", value)
        clients.rest(0.03)

    return work


def read(stage, rng):
    clients = stage.clients
    gateway, status = rng.randrange(len(clients.at)), rng.choice(STATUSES)
    clients.tasks(gateway, TABLE, status, rng.choice([None, 1, 2, 5]), rng.random() < 0.5)
    number = rng.randrange(ITEMS)
    clients.get(gateway, TABLE, f"p{number % 4}", f"{number:03}")
    clients.rest(0.05)
