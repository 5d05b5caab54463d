"""An adoption is killed in the middle and turned round, while some of its writes are still on their way; a gateway is killed beside it."""

from fence.clients import create

OWN = """
[[rule]]
table = "Bank"
strategy = "calculated"
shards = 6
"""
INDEX = """
[[rule]]
table = "Jobs"
index = "by-status"
strategy = "calculated"
shards = 6
"""
ITEMS, LATE = 160, 6


def run(stage):
    stage.begin()
    clients = stage.clients
    create(stage.raw, "Bank")
    create(stage.raw, "Jobs", indexes=["status"])
    stage.indexed.add("Jobs")
    for number in range(ITEMS):
        stage.surely(lambda: clients.put(stage.any(), "Bank", f"b{number % 4}", f"{number:03}", f"{number}"))
        stage.surely(lambda: clients.put_task(stage.any(), "Jobs", f"j{number % 4}", f"{number:03}", f"open:{number}"))
    for table, value in (("Bank", "{}"), ("Jobs", "done:{}")):
        stage.oracle.pulse(table).watch()
        clients.until_stopped(stage.random(table), writer(stage, table, value))
    # Of the table's own keys, an adoption copies and deletes; of an index's, it updates in place.
    with clients.nobody():
        kill_and_turn_round(stage, "Bank", OWN, ["PutItem", "DeleteItem", "TransactWriteItems"])
    stage.more(20, "writes after an adoption was killed")
    kill_and_turn_round(stage, "Jobs", INDEX, ["UpdateItem", "TransactWriteItems"])
    stage.settle()


def kill_and_turn_round(stage, table, rules, operations):
    holds = [stage.network.hold(["adopt"], [operation], table, count=LATE) for operation in operations]
    adoption = stage.cluster.adopt(table, rules)
    begun = stage.until(
        lambda: sum(hold.held for hold in holds) >= LATE or adoption.process.poll() is not None, 4 * stage.cluster.bounds.step
    )
    if not begun or adoption.process.poll() is not None:
        stage.notes.append(f"adopt {table} was not caught in the middle")
    # What it has sent by then is late; what it has not sent goes with it.
    stage.clients.rest(0.3)
    adoption.kill()
    victim = stage.cluster.gateways[stage.any()]
    victim.kill()
    late = sum(hold.held for hold in holds)
    # The rest of what the killed one would have sent is not kept back for the one that takes over.
    for hold in holds:
        hold.stop_taking()
    stage.notes.append(f"killed with {late} writes on their way")
    victim.start()
    stage.adopt(table, rules, back=True)
    for hold in holds:
        hold.release()
        hold.wait_passed(10)


def writer(stage, table, value):
    """Writes over every tenth item, one after the other; the others are left to the adoption."""
    own, count, clients = list(range(0, ITEMS, 10)), iter(range(1 << 40)), stage.clients

    def work(rng):
        number, said = rng.choice(own), value.format(f"w{next(count)}")
        gateway, pk = rng.randrange(len(clients.at)), f"{table[0].lower()}{number % 4}"
        if table == "Jobs":
            clients.move_task(gateway, table, pk, f"{number:03}", said)
        else:
            clients.put(gateway, table, pk, f"{number:03}", said)
        clients.rest(0.05)

    return work
