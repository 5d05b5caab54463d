"""The top 100 over ten shards, and over ten ranges: latency against an unsharded Query and against scatter by hand; capacity units.

Four tables in one embedded server, partitions off: `Plain` (unsharded), `Sharded` and `Ranges` (by rule) and `Hand`, which the application
shards itself under keys game_x#0 to game_x#9.
"""

import json
import subprocess
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from heapq import merge
from itertools import islice
from statistics import median

from machinery import ENVIRONMENT, GAME, ITEMS, ROOT, SHARDS, fill, items, say

TOP = {"KeyConditionExpression": "pk = :g", "ScanIndexForward": False, "Limit": 100}
READS = 200


def top(table, game=GAME, limit=100):
    return {"TableName": table, **TOP, "Limit": limit, "ExpressionAttributeValues": {":g": {"S": game}}}


def connect(port):
    import boto3
    from botocore.config import Config

    return boto3.client(
        "dynamodb", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1", aws_access_key_id="local",
        aws_secret_access_key="local", config=Config(max_pool_connections=32, retries={"max_attempts": 1}))


def timed(calls):
    """Interleaves the calls; name -> median milliseconds."""
    found = {name: [] for name in calls}
    for turn in range(READS):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if turn >= READS // 10:  # the first tenth warms up
                found[name].append((time.perf_counter() - begin) * 1e3)
    return {name: median(each) for name, each in found.items()}


def by_hand(client, pool):
    """What an application does itself: 100 from each shard in parallel, merged."""
    shards = pool.map(lambda n: client.query(**top("Hand", f"{GAME}#{n}"))["Items"], range(SHARDS))
    return list(islice(merge(*shards, key=lambda item: item["sk"]["S"], reverse=True), 100))


def row(what, target, over, under, unit="ms"):
    return what, target, f"{over / under:.2f}", f"{over:,.4g} {unit} ÷ {under:,.4g} {unit}"


def prepare(bench):
    port = bench.heatsink_serve("--partitions", "off", rules=True)
    rows = list(items())
    fill(bench, port, "Plain", rows)
    fill(bench, port, "Sharded", rows)
    fill(bench, port, "Ranges", rows)
    fill(bench, port, "Hand", [{**r, "pk": f"{GAME}#{zlib.crc32(r['sk'].encode()) % SHARDS}"} for r in rows])
    return port


def run(bench):
    port = prepare(bench)
    client = connect(port)
    pool = ThreadPoolExecutor(SHARDS)
    names = [[item["sk"]["S"] for item in got] for got in (
        *(client.query(**top(table))["Items"] for table in ("Plain", "Sharded", "Ranges")), by_hand(client, pool))]
    if any(one != names[0] for one in names) or len(names[0]) != 100:
        raise SystemExit("the top hundreds differ: nothing to compare")

    say("  top 100 by boto3")
    boto = timed({
        "plain": lambda: client.query(**top("Plain")), "sharded": lambda: client.query(**top("Sharded")),
        "hand": lambda: by_hand(client, pool),
    })
    yield row("top 100, boto3: p50 ÷ unsharded", "≤ 2.5", boto["sharded"], boto["plain"])
    yield row("top 100: p50 ÷ by hand, boto3 with threads", "≤ 0.25", boto["sharded"], boto["hand"])

    say("  top 100 by JavaScript")
    done = subprocess.run(
        ["node", str(ROOT / "benches/top100.mjs"), str(port), str(READS)], capture_output=True, text=True,
        env={**ENVIRONMENT, "NODE_NO_WARNINGS": "1"})
    if done.returncode:
        raise SystemExit(done.stderr)
    js = json.loads(done.stdout)
    yield row("top 100: p50 ÷ by hand, JavaScript with Promise.all", "≤ 0.25", js["sharded"], js["hand"])

    say("  top 100 by the thin client")
    thin = thin_client(bench, port)
    yield row("top 100, thin Rust client: p50 ÷ unsharded", "≤ 4", thin["Sharded", 100], thin["Plain", 100])
    yield row("top 100 over ten ranges, thin Rust client: p50 ÷ unsharded", "≤ 1.2", thin["Ranges", 100], thin["Plain", 100])
    share = SHARDS * thin["Hand", 19]
    yield row("of which ten Queries of 19 items, one after another, on one shard each", "stated", share, thin["Plain", 100])
    for limit in (1, 20):
        yield row(f"Limit {limit}, thin Rust client: p50 ÷ unsharded", "stated", thin["Sharded", limit], thin["Plain", limit])
    yield from capacity(client)


def thin_client(bench, port):
    """p50 in ms by (table, limit), one connection, the median of interleaved rounds."""
    asked = [(table, limit) for table in ("Plain", "Sharded") for limit in (100, 20, 1)] + [("Ranges", 100), ("Hand", 19)]
    found = {each: [] for each in asked}
    for _ in range(bench.rounds):
        for table, limit in asked:
            games = [f"{GAME}#{n}" for n in range(SHARDS)] if table == "Hand" else [GAME]
            bodies = bench.bodies(f"top-{table}-{limit}", [top(table, game, limit) for game in games])
            report = bench.load(port, "Query", bodies, "--connections", 1, "--seconds", 1)
            found[table, limit].append(report["service"]["p50_ms"])
    return {each: median(values) for each, values in found.items()}


def capacity(client):
    def units(table, limit):
        """Capacity units and items of one page, or of every page when there is no limit."""
        request = {**top(table), "ReturnConsumedCapacity": "TOTAL"}
        request.pop("Limit")
        if limit:
            request["Limit"] = limit
        spent, seen, pages = 0.0, 0, 0
        while True:
            page = client.query(**request)
            spent += page["ConsumedCapacity"]["CapacityUnits"]
            seen += page["Count"]
            pages += 1
            if limit or "LastEvaluatedKey" not in page:
                return spent, seen, pages
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    for what, table, limit, target in (
        ("top 100", "Sharded", 100, "≤ 3"), ("full paged read of 20,000 items", "Sharded", None, "≤ 1.3"),
        ("Limit 20", "Sharded", 20, "stated"), ("Limit 1", "Sharded", 1, "stated"),
        ("top 100 over ranges", "Ranges", 100, "≤ 1.05"), ("full paged read over ranges", "Ranges", None, "stated"),
    ):
        (over, seen, pages), (under, plain_seen, plain_pages) = units(table, limit), units("Plain", limit)
        if not seen == plain_seen == (limit or ITEMS):
            raise SystemExit(f"{what}: {seen} items sharded, {plain_seen} unsharded")
        shown = row("", "", over, under, "RCU")
        yield f"capacity units, {what}: ÷ unsharded", target, shown[2], f"{shown[3]}; {pages} and {plain_pages} pages"


