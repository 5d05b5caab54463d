"""The chat rooms that the library tests read: their messages, and the pages that any unsharded DynamoDB cuts them into.

One room holds nearly everything, so sharded it lies under several physical keys. Index sort keys do not repeat within an index
key, so every order is exact. The expected answers are computed from a plain list. Nothing here knows about shards.
"""

from decimal import Decimal

LOBBY = "lobby"
ATTIC = "attic"
AUTHORS = ("ann", "bob", "cyd")
KEY = ("room", "id")

# Index name (None is the table): its partition key, its sort key, a value of the first that has many messages.
ORDERS = {
    None: ("room", "id", LOBBY),
    "by_topic": ("room", "topic", LOBBY),    # local
    "by_rank": ("room", "rank", LOBBY),      # global, with the table's partition key
    "by_author": ("author", "rank", "bob"),  # global, with a partition key of its own
}


def messages():
    """70 messages in the lobby, 6 in the attic."""
    made = []
    for number in range(76):
        made.append({
            "room": LOBBY if number < 70 else ATTIC,
            "id": f"{number:04d}",
            "author": AUTHORS[number % 3],
            "rank": Decimal(number * 37 % 101 - 50),
            "topic": f"{number * 17 % 101:02x}",
            "text": f"message {number}",
        })
    return made


def ordered(index, forward=True, keep=lambda message: True):
    """The messages that a Query of `index` gives, in its order."""
    name, sort, value = ORDERS[index]
    found = [message for message in messages() if message[name] == value and keep(message)]
    return sorted(found, key=lambda message: message[sort], reverse=not forward)


def cut(found, size):
    """The pages of `size` that DynamoDB makes: a page that is full has a cursor, so an empty page can follow."""
    return [found[start : start + size] for start in range(0, len(found) + 1, size)]


def cursor(message, index=None):
    """The LastEvaluatedKey of a page that ends with `message`."""
    names = dict.fromkeys(KEY + ORDERS[index][:2])
    return {name: message[name] for name in names}


def schema(name, units=1000):
    """CreateTable's parameters."""
    def keys(partition, sort):
        return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]

    def index(index_name):
        partition, sort, _ = ORDERS[index_name]
        return {"IndexName": index_name, "KeySchema": keys(partition, sort), "Projection": {"ProjectionType": "ALL"}}

    throughput = {"ReadCapacityUnits": units, "WriteCapacityUnits": units}
    types = {"room": "S", "id": "S", "topic": "S", "author": "S", "rank": "N"}
    return {
        "TableName": name,
        "KeySchema": keys(*KEY),
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
        "ProvisionedThroughput": throughput,
        "LocalSecondaryIndexes": [index("by_topic")],
        "GlobalSecondaryIndexes": [{**index(n), "ProvisionedThroughput": throughput} for n in ("by_rank", "by_author")],
    }
