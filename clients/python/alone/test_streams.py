"""Streams that are read past Heatsink: what `logical.py` makes of the store's records is what Heatsink shows of them.

HEATSINK_BEHIND names the store: an endpoint on this machine, of its own for each run.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import boto3
import pytest

from stage import KEYS, connect, serving

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "logical/python"))
from logical import BUCKETS, MOVED, SUFFIX, Table, logical, record, recorded  # noqa: E402

BEHIND = os.environ["HEATSINK_BEHIND"]
RULES = """
[[rule]]
table      = "stream-scores"
keys       = "vote_*"
strategy   = "counter"
attributes = ["votes"]
shards     = 4

[[rule]]
table    = "stream-scores"
strategy = "calculated"
shards   = 8

[[rule]]
table    = "stream-scores"
index    = "by-status"
strategy = "calculated"
shards   = 4

[[rule]]
table    = "stream-binary"
strategy = "calculated"
shards   = 8

[[rule]]
table    = "stream-numbers"
strategy = "calculated"
shards   = 8

[[rule]]
table    = "stream-days"
strategy = "bucket"
bucket   = "day"
shards   = 3
"""
CHANGED = Table("pk", SUFFIX, {"status": SUFFIX}, is_counter=lambda key: key.startswith("vote_"))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    rules = tmp_path_factory.mktemp("rules") / "heatsink.toml"
    rules.write_text(RULES)
    with serving(rules, upstream=BEHIND) as endpoint:
        yield endpoint


def create(client, name, kind="S", status=False):
    keys = {"pk": kind, "sk": "S", **({"status": "S"} if status else {})}
    index = [{"IndexName": "by-status", "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}]
    asked = dict(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": of} for name, of in keys.items()],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        **({"GlobalSecondaryIndexes": index} if status else {}),
    )
    # A registry that is new is waited for: 40 s.
    end = time.monotonic() + 120
    while True:
        try:
            return client.create_table(**asked)
        except client.exceptions.ClientError as error:
            if "is new" not in str(error) or time.monotonic() > end:
                raise


def records(endpoint, name):
    """All records of the table's stream, without their sizes: those count suffixes at the store."""
    streams = boto3.client("dynamodbstreams", endpoint_url=endpoint, **KEYS)
    arn, found = streams.list_streams(TableName=name)["Streams"][0]["StreamArn"], []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        asked = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = streams.get_shard_iterator(**asked)["ShardIterator"]
        while iterator and (page := streams.get_records(ShardIterator=iterator))["Records"]:
            found += page["Records"]
            iterator = page.get("NextShardIterator")
    for one in found:
        del one["dynamodb"]["SizeBytes"]
    return found


def agree(gateway, name, table):
    """Compares the two; gives the store's records. Heatsink's GetRecords leaves out what is of the old copy of an item that moved."""
    stored, shown = records(BEHIND, name), records(gateway, name)
    of_old_copy = lambda one: any(MOVED in one["dynamodb"].get(image, {}) for image in ("NewImage", "OldImage"))  # noqa: E731
    assert not any(map(of_old_copy, shown))
    assert all(record(one, table) is None for one in stored if of_old_copy(one))
    clients = [one for one in stored if not of_old_copy(one)]
    read = [record(one, table) for one in clients]
    assert len(shown) == len(clients)
    assert [one for one in read if one] == [its for its, one in zip(shown, read) if one]
    assert any(one != its for one, its in zip(clients, read)), "nothing was sharded"
    return stored


def test_keys_counters_and_index_values(gateway):
    client = connect(gateway, boto3.client)
    create(client, "stream-scores", status=True)
    for key in ("game_x", "game#~1", "Zoë#~0", "x#~3#~0"):
        for at in range(6):
            item = {"pk": {"S": key}, "sk": {"S": str(at)}, "status": {"S": "open" if at % 2 else "done#~1"}}
            client.put_item(TableName="stream-scores", Item=item)
    client.delete_item(TableName="stream-scores", Key={"pk": {"S": "game_x"}, "sk": {"S": "3"}})
    vote = {"pk": {"S": "vote_7"}, "sk": {"S": "a"}}
    for _ in range(8):
        client.update_item(TableName="stream-scores", Key=vote, UpdateExpression="ADD votes :n", ExpressionAttributeValues={":n": {"N": "2"}})
    stored = agree(gateway, "stream-scores", CHANGED)
    votes = [one["dynamodb"] for one in stored if logical(one["dynamodb"]["Keys"]["pk"]).value == vote["pk"]]
    fragments = {one["Keys"]["pk"]["S"] for one in votes}
    assert fragments == {"vote_7", "vote_7#~1", "vote_7#~2", "vote_7#~3"}
    number = lambda one, image: int(one.get(image, {}).get("votes", {"N": "0"})["N"])  # noqa: E731
    assert sum(number(one, "NewImage") - number(one, "OldImage") for one in votes) == 16


@pytest.mark.parametrize(("kind", "name", "keys", "table"), [
    ("B", "stream-binary", [b"\xff\x00", b"\xc3#~1"], Table("pk")),
    ("N", "stream-numbers", ["12.50", "1E2", "-7", "99999999999999999999.999999", "1e30"], Table("pk")),
    ("S", "stream-days", ["LOG", "a#~2026-06-22"], Table("pk", BUCKETS)),
])
def test_kinds_of_keys(gateway, kind, name, keys, table):
    client = connect(gateway, boto3.client)
    create(client, name, kind)
    for key in keys:
        for sort in ["META"] + [f"2026-06-2{day}T01" for day in range(6)]:
            client.put_item(TableName=name, Item={"pk": {kind: key}, "sk": {"S": sort}})
    agree(gateway, name, table)


def test_a_key_that_moves(gateway):
    name, client = "stream-moves", connect(gateway, boto3.client)
    create(client, name)
    put = lambda key, sorts: [client.put_item(TableName=name, Item={"pk": {"S": key}, "sk": {"S": str(at)}}) for at in sorts]  # noqa: E731
    put("hot", range(12))
    put("cold#~3", range(1))
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1"}

    def reshard(*arguments):
        command = [os.environ["HEATSINK_BIN"], "reshard", *arguments, "--upstream", BEHIND, "--output", "json"]
        done = subprocess.run(command, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    reshard("start", name, "hot", "--shards", "4", "--confirm-streams", "--yes", "--wait")
    put("hot", range(12, 16))
    reserved = {one["key"]: one["reserved"] for one in reshard("status", name)["keys"]}
    stored = agree(gateway, name, Table("pk", recorded(reserved.get)))
    events = [(one["eventName"], one["dynamodb"]["Keys"]["pk"]["S"]) for one in stored]
    moved = sum(event == ("REMOVE", "hot") for event in events)
    marked = [one for one in stored if any(MOVED in one["dynamodb"].get(image, {}) for image in ("NewImage", "OldImage"))]
    assert [one["eventName"] for one in marked].count("REMOVE") == moved and len(marked) == 2 * moved
    assert moved > 0 and sum(event == "INSERT" and key.startswith("hot#~") for event, key in events) >= moved
