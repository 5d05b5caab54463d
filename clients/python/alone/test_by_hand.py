"""Tables that code sharded by hand, and that code beside Heatsink: one writes to the store directly, the other through Heatsink, and each
reads what the other wrote. HEATSINK_BEHIND names the store: an endpoint on this machine, of its own for each run.

The code below names its keys itself, as it is commonly written.
"""

import hashlib
import os
import subprocess
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from boto3.dynamodb.conditions import Key

from stage import KEYS, connect, serving, table

BEHIND = os.environ["HEATSINK_BEHIND"]
RULES = """
[[rule]]
table    = "user-events"
keys     = "user-*"
strategy = "template"
template = "{pk}#{shard}"
hash     = "md5"
shards   = 10

[[rule]]
table    = "user-days"
keys     = "user-*"
strategy = "template"
template = "{pk}#{bucket}"
bucket   = "day"

[[rule]]
table    = "tenant-events"
keys     = "tenant-*"
strategy = "template"
template = "{pk}#{bucket:%Y%m%d}#{shard}"
bucket   = "day"
hash     = "sha256"
shards   = 5
"""

EVENTS = [f"event-{number:05}" for number in range(120)]
JANUARY = datetime(2024, 1, 1, tzinfo=timezone.utc)
TIMES = [int((JANUARY + timedelta(hours=5 * number)).timestamp()) for number in range(60)]
CLOSE_TIMES = [int(JANUARY.timestamp()) + 6_000 * number for number in range(60)]


def digest_key(user, event):
    return f"{user}#{int(hashlib.md5(event.encode()).hexdigest(), 16) % 10}"


def day_key(user, when):
    return f"{user}#{datetime.fromtimestamp(when, timezone.utc).strftime('%Y-%m-%d')}"


def both_key(tenant, when):
    digest = int.from_bytes(hashlib.sha256(str(when).encode()).digest(), "big")
    return f"{tenant}#{datetime.fromtimestamp(when, timezone.utc).strftime('%Y%m%d')}#{digest % 5}"


def adopt(name, rules):
    """`heatsink adopt`, under way; it waits ten seconds for gateways that there are not."""
    environment = {
        **os.environ, "AWS_ACCESS_KEY_ID": KEYS["aws_access_key_id"], "AWS_SECRET_ACCESS_KEY": KEYS["aws_secret_access_key"],
        "AWS_REGION": KEYS["region_name"],
    }
    command = [os.environ["HEATSINK_BIN"], "adopt", name, "--rules", rules, "--upstream", BEHIND, "--yes", "--offline"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


@pytest.fixture(scope="module")
def past():
    """The store itself, with what the code has written so far."""
    dynamodb = connect(BEHIND)
    table(BEHIND, "user-events", "userId", "eventId", writes=1_000)
    table(BEHIND, "user-days", "userId", "timestamp", sort_type="N", writes=1_000)
    table(BEHIND, "tenant-events", "tenantId", "timestamp", sort_type="N", writes=1_000)
    put(dynamodb.Table("user-events"), "userId", "eventId", [(digest_key("user-1", event), event) for event in EVENTS[:60]])
    put(dynamodb.Table("user-days"), "userId", "timestamp", [(day_key("user-1", when), when) for when in TIMES[:40]])
    put(dynamodb.Table("tenant-events"), "tenantId", "timestamp", [(both_key("tenant-4", when), when) for when in CLOSE_TIMES[::2]])
    return dynamodb


@pytest.fixture(scope="module")
def through(past, tmp_path_factory):
    """A gateway before it, once the tables are adopted."""
    rules = tmp_path_factory.mktemp("rules") / "heatsink.toml"
    # Under another digest than the code's, nothing is adopted.
    rules.write_text(RULES.replace("md5", "sha256"))
    wrong = adopt("user-events", rules)
    said = wrong.communicate()[1].decode()
    assert wrong.returncode == 1 and "by the rule it would be under user-1#" in said, said
    rules.write_text(RULES)
    adoptions = [adopt(name, rules) for name in ("user-events", "user-days", "tenant-events")]
    for adoption in adoptions:
        said = adoption.communicate()[1].decode()
        assert adoption.returncode == 0, said
    with serving(rules, upstream=BEHIND) as endpoint:
        yield connect(endpoint)


def put(where, partition, sort, rows):
    with where.batch_writer() as batch:
        for key, at in rows:
            batch.put_item(Item={partition: key, sort: at, "eventType": "page_view"})


def every(where, condition, sort, **more):
    """The sort keys of a Query, page by page."""
    query, found = {"KeyConditionExpression": condition, **more}, []
    while True:
        page = where.query(**query)
        found += [item[sort] for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return found
        query["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def test_a_digest_of_the_event_over_ten_keys(past, through):
    past, through = past.Table("user-events"), through.Table("user-events")
    user = Key("userId").eq("user-1")
    assert every(through, user, "eventId") == EVENTS[:60]
    # Half of the rest by each.
    put(through, "userId", "eventId", [("user-1", event) for event in EVENTS[60:90]])
    put(past, "userId", "eventId", [(digest_key("user-1", event), event) for event in EVENTS[90:]])
    assert every(through, user, "eventId", Limit=17) == EVENTS
    assert every(through, user, "eventId", ScanIndexForward=False) == EVENTS[::-1]
    for event in EVENTS:
        key = {"userId": digest_key("user-1", event), "eventId": event}
        assert past.get_item(Key=key)["Item"] == {**key, "eventType": "page_view"}
        key["userId"] = "user-1"
        assert through.get_item(Key=key)["Item"] == {**key, "eventType": "page_view"}
    # The code that asks ten keys and sorts finds what was written through the gateway, and each sees what the other deletes.
    scattered = [event for shard in range(10) for event in every(past, Key("userId").eq(f"user-1#{shard}"), "eventId")]
    assert sorted(scattered) == EVENTS
    past.delete_item(Key={"userId": digest_key("user-1", EVENTS[7]), "eventId": EVENTS[7]})
    through.delete_item(Key={"userId": "user-1", "eventId": EVENTS[70]})
    assert every(through, user, "eventId") == [event for event in EVENTS if event not in (EVENTS[7], EVENTS[70])]
    assert "Item" not in past.get_item(Key={"userId": digest_key("user-1", EVENTS[70]), "eventId": EVENTS[70]})


def test_a_key_for_each_day(past, through):
    past, through = past.Table("user-days"), through.Table("user-days")
    user = Key("userId").eq("user-1")
    assert every(through, user, "timestamp") == TIMES[:40]
    put(through, "userId", "timestamp", [("user-1", when) for when in TIMES[40:]])
    assert every(through, user, "timestamp", Limit=7) == TIMES
    three_days = user & Key("timestamp").between(TIMES[10], TIMES[24])
    assert every(through, three_days, "timestamp", ScanIndexForward=False) == TIMES[24:9:-1]
    for when in TIMES:
        key = {"userId": day_key("user-1", when), "timestamp": Decimal(when)}
        assert past.get_item(Key=key)["Item"]["eventType"] == "page_view"
    # A day of it is one key for the code as it was.
    day = [when for when in TIMES if day_key("user-1", when) == "user-1#2024-01-12"]
    assert day and every(past, Key("userId").eq("user-1#2024-01-12"), "timestamp") == day


def test_days_with_five_keys_each(past, through):
    past, through = past.Table("tenant-events"), through.Table("tenant-events")
    put(through, "tenantId", "timestamp", [("tenant-4", when) for when in CLOSE_TIMES[1::2]])
    tenant = Key("tenantId").eq("tenant-4")
    assert every(through, tenant, "timestamp") == CLOSE_TIMES
    assert every(through, tenant & Key("timestamp").gt(CLOSE_TIMES[20]), "timestamp", Limit=9) == CLOSE_TIMES[21:]
    keys = {both_key("tenant-4", when) for when in CLOSE_TIMES}
    assert len(keys) > 15
    found = [when for key in keys for when in every(past, Key("tenantId").eq(key), "timestamp")]
    assert sorted(found) == CLOSE_TIMES
