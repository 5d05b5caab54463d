"""A gateway stands still in the middle of its writes, past its lease, while the layout changes; then it goes on."""

from fence.clients import create
from fence.cluster import DIRECTORY

RULES = """
[[rule]]
table = "Events"
strategy = "bucket"
bucket = "day"
shards = 4
"""
TABLE, CLIENTS, LATE = "Events", 3, 8


def run(stage):
    stage.begin(RULES)
    clients, gateways = stage.clients, stage.cluster.gateways
    stage.insist(lambda: create(clients.at[0], TABLE), "ResourceInUse")
    for number in range(40):
        sk = f"2026-01-0{1 + number % 3}T00:00:00Z#{number:03}"
        stage.surely(lambda: clients.put(number % len(gateways), TABLE, "e", sk, f"{number}"))
    # From now on the record alone says how the table lies, so that it can be brought back under running gateways.
    for gateway in gateways:
        gateway.stop()
        gateway.start("")
    for number in range(len(gateways)):
        clients.query(number, TABLE, "e")
    for name in range(CLIENTS):
        clients.until_stopped(stage.random(name), writer(stage, name))
    stage.oracle.pulse(TABLE).watch()
    stage.more(20, "writes before a gateway stops")
    stopped, sent = gateways[-1], []
    with clients.nobody():
        # The first item of a day is two writes: the day's row in the directory, then the item. The gateway stops between them.
        with stage.network.hold([stopped.name], None, DIRECTORY, answer=True) as hold:
            for number in range(LATE):
                sk = f"2026-02-{10 + number}T00:00:00Z#late"
                sent.append(clients.run(clients.put, stopped.number, TABLE, "e", sk, f"late{number}"))
            if not hold.wait(10, LATE // 2):
                stage.notes.append(f"only {hold.held} writes were under way")
            stopped.pause()
        # And these lie in its socket while it stands still.
        for number in range(5):
            sent.append(clients.run(clients.put, stopped.number, TABLE, "e", f"2026-01-01T00:00:00Z#waits{number}", "w"))
        took = stage.adopt(TABLE, "", back=True)
        clients.rest(max(0, stage.cluster.bounds.lease - took))
        stopped.resume()
        for thread in sent:
            thread.join()
    stage.more(20, "writes after the gateway went on")
    stage.settle()


def writer(stage, name):
    count, clients = iter(range(1 << 40)), stage.clients

    def work(rng):
        number = next(count)
        sk = f"2026-01-0{1 + rng.randrange(3)}T00:00:00Z#{name}-{number}"
        clients.put(rng.randrange(len(clients.at) - 1), TABLE, "e", sk, f"{name}-{number}")
        if number % 20 == 0:
            clients.query(rng.randrange(len(clients.at) - 1), TABLE, "e", rng.choice([None, 6]))
        clients.rest(0.03)

    return work
