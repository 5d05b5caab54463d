"""Clients put until the table exists, beside its CreateTable: through one gateway, and through four."""

from itertools import count

from fence.clients import create
from fence.cluster import GATEWAYS
from fence.oracle import ACKED

RULES = """
[[rule]]
table = "New-*"
strategy = "calculated"
shards = 5
"""
CLIENTS, ITEMS = 12, 3


def run(stage):
    stage.begin(RULES)
    # Some requests are a little late, as on any network, so that a request can pass a CreateTable on the way.
    stage.network.weather(delayed=0.5, longest=0.04)
    rounds, through = 0, {1: [], GATEWAYS: []}
    while rounds < 2 or stage.left() > 0:
        gateways = range([1, GATEWAYS][rounds % 2])
        one_round(stage, f"New-{rounds}", gateways)
        through[len(gateways)].append(f"New-{rounds}")
        rounds += 1
    stage.network.weather()
    stage.settle()
    for number, tables in through.items():
        lost = sum("lost" in register.reported for table in tables for register in stage.oracle.tables[table].registers["hot"].values())
        stage.notes.append(f"{lost} lost of {len(tables)} tables through {number} gateway{'s' * (number > 1)}")


def one_round(stage, table, gateways):
    clients, before = stage.clients, stage.acked()

    def put_until_there(name):
        rng = stage.random(table, name)
        numbers = count()
        for item in range(ITEMS):
            while not clients.stopping.is_set():
                if clients.put(rng.choice(gateways), table, "hot", f"{name}-{item}", f"{next(numbers)}") == ACKED:
                    break

    for name in range(CLIENTS):
        clients.run(put_until_there, f"c{name}")
    clients.rest(0.1 + 0.2 * stage.rng.random())
    made = stage.rng.choice(gateways)
    stage.insist(lambda: create(clients.at[made], table), "ResourceInUse")
    stage.oracle.pulse(table).watch()
    timeout = 3 * stage.cluster.bounds.step
    if not stage.until(lambda: stage.acked() - before >= CLIENTS * ITEMS, timeout):
        stage.fault("refused", f"puts to {table} {timeout:.0f} s after CreateTable")
    clients.join()
    stage.oracle.pulse(table).rest()
