"""A Scan begins before an adoption and goes on after it; the stream of a table is read after the table was dropped."""

import boto3

from fence.clients import FAILURES, create
from fence.oracle import PHYSICAL

RULES = """
[[rule]]
table = "Book"
strategy = "calculated"
shards = 6
"""
BOOK, STREAMED, ITEMS = "Book", "Book-streamed", 200


def run(stage):
    scan_over_an_adoption(stage)
    stream_of_a_dropped_table(stage)
    stage.settle()


def scan_over_an_adoption(stage):
    stage.begin()
    create(stage.raw, BOOK)
    for number in range(ITEMS):
        stage.surely(lambda: stage.clients.put(stage.any(), BOOK, f"k{number % 8}", f"{number:03}", f"{number}"))
    at, request, seen = stage.clients.at[1], {"TableName": BOOK, "Limit": 20, "ConsistentRead": True}, []
    for _ in range(5):
        page, _ = stage.insist(lambda: at.scan(**request))
        seen += [item["sk"]["S"] for item in page["Items"]]
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    stage.adopt(BOOK, RULES)
    rest = []

    def read_on():
        while True:
            page = at.scan(**request)
            rest.extend(item["sk"]["S"] for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                return True
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    # A cursor whose meaning has passed is refused by name; it is not followed wrongly.
    _, refusal = stage.insist(read_on)
    if refusal:
        stage.notes.append("the cursor is refused: " + refusal.partition(": ")[2][:100])
        if "Begin the Scan" not in refusal:
            stage.oracle.fault("refused", BOOK, "Scan", "", f"in other words: {refusal}")
        read_again(stage, at)
        return
    every = seen + rest
    missing, twice = ITEMS - len(set(every)), len(every) - len(set(every))
    for kind, number in (("lost", missing), ("doubled", twice)):
        for at_ in range(number):
            stage.oracle.fault(kind, BOOK, "Scan", f"{at_}", f"{number} of {ITEMS} items of a Scan that began before an adoption")


def read_again(stage, at):
    """From its start, every item comes once."""
    def whole():
        return [item["sk"]["S"] for page in at.get_paginator("scan").paginate(TableName=BOOK, Limit=20) for item in page["Items"]]

    found, refusal = stage.insist(whole)
    if refusal or sorted(found) != [f"{number:03}" for number in range(ITEMS)]:
        stage.oracle.fault("lost", BOOK, "Scan", "", refusal or f"{len(set(found))} of {ITEMS} items in a Scan that was begun again, {len(found)} rows")


def stream_of_a_dropped_table(stage):
    clients, rules = stage.clients, RULES.replace('"Book"', f'"{STREAMED}"')
    for gateway in stage.cluster.gateways:
        gateway.stop()
        gateway.start(rules)
    streams = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    stage.insist(lambda: create(clients.at[0], STREAMED, StreamSpecification=streams), "ResourceInUse")
    stream = stage.raw.describe_table(TableName=STREAMED)["Table"].get("LatestStreamArn")
    if not stream:
        stage.notes.append("the store has no streams")
        return
    for number in range(60):
        stage.surely(lambda: clients.put(stage.any(), STREAMED, "hot", f"{number:05}", "x"))
    stage.insist(lambda: clients.at[0].delete_table(TableName=STREAMED), "ResourceNotFound")
    stage.oracle.tables.pop(STREAMED)
    records = 0
    for number, gateway in enumerate(stage.cluster.gateways):
        gateway.stop()
        gateway.start(rules)
        try:
            found = list(records_of(gateway.endpoint, stream))
        except FAILURES as error:
            stage.notes.append(f"the stream of a dropped table is refused: {str(error)[:90]}")
            continue
        records += len(found)
        for record in found:
            pk = record["dynamodb"]["Keys"]["pk"]["S"]
            if PHYSICAL.search(pk):
                stage.oracle.fault("shown", STREAMED, pk, record["dynamodb"]["Keys"]["sk"]["S"], f"GetRecords at g{number} showed {pk!r}")
    stage.notes.append(f"{records} records of a dropped table's stream")


def records_of(endpoint, stream):
    """All records of a stream, by the API of streams on the same endpoint."""
    streams = boto3.client(
        "dynamodbstreams", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local", aws_secret_access_key="local"
    )
    for shard in streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(StreamArn=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")
        page = {"NextShardIterator": iterator["ShardIterator"]}
        for _ in range(5):
            if not page.get("NextShardIterator"):
                break
            page = streams.get_records(ShardIterator=page["NextShardIterator"])
            yield from page["Records"]
