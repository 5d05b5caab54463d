"""The registry cannot be reached for half a lease. Tables that gateways know are served all the while."""

from fence.clients import create
from fence.cluster import REGISTRY

RULES = """
[[rule]]
table = "Known"
strategy = "calculated"
shards = 4
"""
TABLE, CLIENTS = "Known", 4


def run(stage):
    stage.begin(RULES)
    clients, outage = stage.clients, stage.cluster.bounds.lease / 2
    stage.insist(lambda: create(clients.at[0], TABLE), "ResourceInUse")
    count = iter(range(1 << 40))

    def work(rng):
        number = next(count)
        gateway = rng.randrange(len(clients.at))
        clients.put(gateway, TABLE, "k", f"{number % 50:02}-{number}", f"{number}")
        clients.get(gateway, TABLE, "k", f"{number % 50:02}-{number}")
        clients.rest(0.02)

    for name in range(CLIENTS):
        clients.until_stopped(stage.random(name), work)
    # Each gateway has just looked when the registry goes.
    stage.more(100, "writes before the outage")
    pulse = stage.oracle.pulse(TABLE)
    pulse.watch()
    with stage.network.hold([gateway.name for gateway in stage.cluster.gateways], None, REGISTRY, seconds=outage):
        clients.rest(outage)
        pulse.rest()
    if pulse.longest > 0.75 * outage:
        stage.fault("refused", f"all writes for {pulse.longest:.1f} s of the registry's {outage:.1f} s away")
    stage.more(100, "writes after the outage")
    stage.settle()
