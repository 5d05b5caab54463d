"""Gateways are restarted one by one from no rules to rules, while a table that others made is touched first and written."""

from fence.clients import create
from fence.oracle import ACKED

RULES = """
[[rule]]
table = "Board"
strategy = "calculated"
shards = 10
"""
TABLE, CLIENTS, ITEMS = "Board", 8, 25


def run(stage):
    # A store in which no gateway has ever recorded anything.
    stage.begin(keep_registry=False)
    clients, gateways = stage.clients, stage.cluster.gateways
    create(stage.raw, TABLE)
    for number in range(len(gateways)):
        clients.get(number, TABLE, "board", "nobody")
    gateways[0].stop()
    gateways[0].start(RULES)
    clients.get(0, TABLE, "board", "nobody")
    stage.oracle.pulse(TABLE).watch()
    for name in range(CLIENTS):
        clients.run(write, stage, name)
    stage.more(CLIENTS * ITEMS // 2, "writes during the rollout")
    for gateway in gateways[1:]:
        gateway.stop()
        gateway.start(RULES)
        stage.more(20, "writes during the rollout")
    # Every item is there by now and has been written over.
    stage.more(CLIENTS * ITEMS, "writes after the rollout")
    stage.settle()


def write(stage, name):
    """First puts each of its items, then writes over them."""
    clients, number = stage.clients, 0
    rng = stage.random(name)
    missing = [f"{name}-{item}" for item in range(ITEMS)]
    there = []
    while not clients.stopping.is_set():
        number += 1
        gateway = rng.randrange(len(clients.at))
        if missing:
            if clients.put(gateway, TABLE, "board", missing[0], f"{number}") == ACKED:
                there.append(missing.pop(0))
        else:
            clients.put(gateway, TABLE, "board", rng.choice(there), f"{number}")
        if there and number % 5 == 0:
            clients.get(rng.randrange(len(clients.at)), TABLE, "board", rng.choice(there))
        if number % 40 == 0:
            clients.query(rng.randrange(len(clients.at)), TABLE, "board", rng.choice([None, 9]))
        clients.rest(0.01)
