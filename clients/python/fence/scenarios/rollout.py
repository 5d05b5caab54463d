"""Gateways are restarted one by one into a rule, while a table that others made is touched first and written: first in a store where nothing
was ever recorded, then in one that has a registry.

A table that clients have written to before all gateways knew of the rule holds items and may be refused: then it is adopted, as the refusal says.
"""

from itertools import count

from fence.clients import create, key
from fence.oracle import ACKED

RULE = """
[[rule]]
table = "{}"
strategy = "calculated"
shards = 10
"""
CLIENTS, ITEMS = 8, 25


def run(stage):
    stage.begin(keep_registry=False)
    roll(stage, "Board", "", RULE.format("Board"))
    roll(stage, "Score", RULE.format("Board"), RULE.format("Board") + RULE.format("Score"))
    stage.settle()


def roll(stage, table, before, after):
    """Restarts every gateway, from the rules `before` to those `after`."""
    clients, (first, *others) = stage.clients, stage.cluster.gateways
    create(stage.raw, table)
    for number in range(len(stage.cluster.gateways)):
        clients.get(number, table, "board", "nobody")
    first.stop()
    first.start(after)
    clients.get(0, table, "board", "nobody")
    stage.oracle.pulse(table).watch()
    for name in range(CLIENTS):
        clients.until_stopped(stage.random(table, name), writer(stage, table, name))
    stage.more(CLIENTS * ITEMS // 2, f"writes to {table} as the rollout begins")
    for gateway in others:
        gateway.stop()
        gateway.start(after)
        clients.rest(1)
    _, refusal = stage.insist(lambda: clients.at[0].get_item(TableName=table, Key=key("board", "nobody")))
    if refusal and "heatsink adopt" in refusal:
        stage.notes.append(f"{table} is refused")
        with clients.nobody():
            stage.adopt(table, after)
    # Every item is there by now, and is written over.
    stage.more(CLIENTS * ITEMS, f"writes to {table} after the rollout")
    clients.join()
    stage.oracle.pulse(table).rest()


def writer(stage, table, name):
    """First puts each of its items, then writes over them."""
    clients, numbers = stage.clients, count(1)
    missing, there = [f"{name}-{item}" for item in range(ITEMS)], []

    def work(rng):
        number, gateway = next(numbers), rng.randrange(len(clients.at))
        if not missing:
            clients.put(gateway, table, "board", rng.choice(there), f"{number}")
        elif clients.put(gateway, table, "board", missing[0], f"{number}") == ACKED:
            there.append(missing.pop(0))
        if there and number % 5 == 0:
            clients.get(rng.randrange(len(clients.at)), table, "board", rng.choice(there))
        if number % 40 == 0:
            clients.query(rng.randrange(len(clients.at)), table, "board", rng.choice([None, 9]))
        clients.rest(0.01)

    return work
