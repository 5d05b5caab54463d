"""A table is dropped and made again through one gateway, while others write to it and read from it."""

from fence.clients import create

RULES = """
[[rule]]
table = "Log"
strategy = "bucket"
bucket = "day"
shards = 2
"""
TABLE, CLIENTS, DAYS, KEYS = "Log", 4, 5, 6


def run(stage):
    stage.begin(RULES)
    clients, oracle = stage.clients, stage.oracle
    stage.insist(lambda: create(clients.at[0], TABLE), "ResourceInUse")
    oracle.pulse(TABLE).watch()
    for name in range(CLIENTS):
        clients.until_stopped(stage.random(name), writer(stage, name))
    rounds = 0
    while rounds < 2 or stage.left() > 0:
        stage.more(40, "writes before the table is dropped")
        oracle.dropping(TABLE)
        stage.insist(lambda: clients.at[0].delete_table(TableName=TABLE), "ResourceNotFound")
        stage.insist(lambda: create(clients.at[0], TABLE), "ResourceInUse")
        oracle.made_again(TABLE)
        stage.more(40, "writes after the table was made again")
        rounds += 1
    stage.notes.append(f"made again {rounds} times")
    stage.settle()
    # What was learned of buckets goes with a restart; what is on record stays.
    for gateway in stage.cluster.gateways:
        gateway.stop()
        gateway.start()
    stage.settle()


def writer(stage, name):
    """Puts ever new items of a few days, under names that an earlier table of this name never had."""
    clients, count = stage.clients, iter(range(1 << 40))

    def work(rng):
        number, age = next(count), stage.oracle.age(TABLE)
        sk = f"2026-06-0{1 + rng.randrange(DAYS)}T00:00:00Z#{age}-{name}-{number}"
        # Not through the gateway that drops and makes the table: it knows at once.
        clients.put(rng.randrange(1, len(clients.at)), TABLE, f"log{number % KEYS}", sk, f"{age}-{name}-{number}")
        if number % 20 == 0:
            clients.query(rng.randrange(len(clients.at)), TABLE, f"log{rng.randrange(KEYS)}", rng.choice([None, 11]))
        clients.rest(0.02)

    return work
