"""Reads that are made of several: the newest rows of a key with daily buckets, a counter over its rows, a spread index key.

Each beside the same read unsharded, in one embedded server, partitions off, one connection: p50 of a thin client, the median of
alternating rounds.
"""

from statistics import median

from machinery import items, post, say, wire
from top100 import connect, row, timed

DAYS, ROWS, COUNTER_SHARDS, INDEX_SHARDS = 7, 2_000, 10, 4
RULES = f"""
[[rule]]
table = "Days"
strategy = "bucket"
bucket = "day"

[[rule]]
table = "Votes"
strategy = "counter"
attributes = ["votes"]
shards = {COUNTER_SHARDS}

[[rule]]
table = "Spread"
index = "by-game"
strategy = "calculated"
shards = {INDEX_SHARDS}
"""


def create(bench, port, table, index=False):
    attribute = lambda name: {"AttributeName": name, "AttributeType": "S"}
    key = lambda *names: [{"AttributeName": n, "KeyType": k} for n, k in zip(names, ("HASH", "RANGE"))]
    request = {
        "TableName": table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": key("pk", "sk"),
        "AttributeDefinitions": [attribute("pk"), attribute("sk")],
    }
    if index:
        request["AttributeDefinitions"] += [attribute("game"), attribute("score")]
        request["GlobalSecondaryIndexes"] = [
            {"IndexName": "by-game", "KeySchema": key("game", "score"), "Projection": {"ProjectionType": "ALL"}}]
    post(port, "CreateTable", request)


def fill(bench, port, table, rows):
    puts = [{"PutRequest": {"Item": wire(each)}} for each in rows]
    batches = [{"RequestItems": {table: puts[at : at + 25]}} for at in range(0, len(puts), 25)]
    bench.load(port, "BatchWriteItem", bench.bodies(f"fill-{table}", batches), "--requests", len(batches),
               "--seconds", 300, "--connections", 4)


def p50(bench, port, contenders):
    """contenders: name -> (operation, request). p50 in ms by name."""
    found = {name: [] for name in contenders}
    for _ in range(bench.rounds):
        for name, (operation, request) in contenders.items():
            bodies = bench.bodies(f"read-{name}", [request])
            report = bench.load(port, operation, bodies, "--connections", 1, "--seconds", 1)
            found[name].append(report["service"]["p50_ms"])
    return {name: median(values) for name, values in found.items()}


def newest(table, pk):
    return {"TableName": table, "KeyConditionExpression": "pk = :k", "ScanIndexForward": False, "Limit": 50,
            "ExpressionAttributeValues": {":k": {"S": pk}}}


def top(table, limit=100):
    return {"TableName": table, "IndexName": "by-game", "KeyConditionExpression": "game = :k", "ScanIndexForward": False,
            "Limit": limit, "ExpressionAttributeValues": {":k": {"S": "game_x"}}}


def run(bench):
    port = bench.heatsink_serve("--partitions", "off", rules=RULES)
    say("  filling")
    for table in ("Days", "Day"):
        create(bench, port, table)
    note = "x" * 330
    times = [(day, f"2026-06-{day:02}T{at // 100:02}:{at % 60:02}:{at % 50:02}Z#{at:05}") for day in range(1, DAYS + 1) for at in range(ROWS)]
    fill(bench, port, "Days", ({"pk": "OPS", "sk": sk, "note": note} for _, sk in times))
    fill(bench, port, "Day", ({"pk": f"OPS#{day}", "sk": sk, "note": note} for day, sk in times))
    for table in ("Votes", "Vote"):
        create(bench, port, table)
        add = {"TableName": table, "Key": wire({"pk": "candidate", "sk": "total"}), "UpdateExpression": "ADD votes :one",
               "ExpressionAttributeValues": {":one": {"N": "1"}}}
        bench.load(port, "UpdateItem", bench.bodies("add", [add]), "--requests", 500, "--connections", 1)
    for table in ("Spread", "Whole"):
        create(bench, port, table, index=True)
        fill(bench, port, table, ({"pk": f"p{at}", "sk": "s", "game": "game_x", "score": each["sk"], "note": each["note"]}
                                  for at, each in enumerate(items())))

    ten = [{"pk": f"row#{at}", "sk": "total", "votes": "50"} for at in range(COUNTER_SHARDS)]
    fill(bench, port, "Vote", ten)
    batch = {"RequestItems": {"Vote": {"Keys": [wire({"pk": each["pk"], "sk": each["sk"]}) for each in ten]}}}

    pages = [[item["sk"] for item in post(port, "Query", newest(*each))["Items"]] for each in (("Days", "OPS"), ("Day", f"OPS#{DAYS}"))]
    tops = [[item["score"] for item in post(port, "Query", top(table))["Items"]] for table in ("Spread", "Whole")]
    vote = lambda table: {"TableName": table, "Key": wire({"pk": "candidate", "sk": "total"})}
    votes = [post(port, "GetItem", vote(table))["Item"]["votes"] for table in ("Votes", "Vote")]
    if not (pages[0] == pages[1] and len(pages[0]) == 50 and tops[0] == tops[1] and len(tops[0]) == 100 and votes == [{"N": "500"}] * 2):
        raise SystemExit("the answers differ: nothing to compare")

    say("  reading")
    found = p50(bench, port, {
        "days": ("Query", newest("Days", "OPS")), "day": ("Query", newest("Day", f"OPS#{DAYS}")),
        "votes": ("GetItem", vote("Votes")), "vote": ("GetItem", vote("Vote")), "ten": ("BatchGetItem", batch),
        "spread": ("Query", top("Spread")), "whole": ("Query", top("Whole")),
    })
    yield row(f"newest 50 of {DAYS} daily buckets, thin Rust client: p50 ÷ one bucket's Query", "≤ 1.5", found["days"], found["day"])
    yield row(f"counter over N = {COUNTER_SHARDS}: p50 ÷ GetItem", "≤ 3", found["votes"], found["vote"])
    yield row(f"of which a BatchGetItem of {COUNTER_SHARDS} items, unsharded", "stated", found["ten"], found["vote"])
    yield row(f"index Query of 100 over N = {INDEX_SHARDS}, thin Rust client: p50 ÷ unsharded", "≤ 4", found["spread"], found["whole"])
    client = connect(port)
    boto = timed({
        "days": lambda: client.query(**newest("Days", "OPS")), "day": lambda: client.query(**newest("Day", f"OPS#{DAYS}")),
        "votes": lambda: client.get_item(**vote("Votes")), "vote": lambda: client.get_item(**vote("Vote")),
        "spread": lambda: client.query(**top("Spread")), "whole": lambda: client.query(**top("Whole")),
    })
    yield row("newest 50 of daily buckets, boto3", "≤ 1.5", boto["days"], boto["day"])
    yield row("counter, boto3", "≤ 3", boto["votes"], boto["vote"])
    yield row("index Query of 100, boto3", "≤ 2.5", boto["spread"], boto["whole"])
    for what, target, over, under in (
        ("newest 50 of daily buckets", "stated", ("Query", newest("Days", "OPS")), ("Query", newest("Day", f"OPS#{DAYS}"))),
        ("counter", "stated", ("GetItem", vote("Votes")), ("GetItem", vote("Vote"))),
        ("index Query of 100", "≤ 3", ("Query", top("Spread")), ("Query", top("Whole"))),
    ):
        units = [post(port, operation, {**request, "ReturnConsumedCapacity": "TOTAL"})["ConsumedCapacity"]["CapacityUnits"]
                 for operation, request in (over, under)]
        yield row(f"capacity units, {what}: ÷ unsharded", target, *units, "RCU")
