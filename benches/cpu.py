"""Processor time of the server for one request, as ratios: forwarded against nginx, a top 100 over ten shards, and over ten ranges, against one of one key."""

from machinery import GAME, fill, items, ratio
from throughput import gets, puts


def top100(bench, table):
    query = {
        "TableName": table, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": GAME}},
        "ScanIndexForward": False, "Limit": 100,
    }
    return bench.bodies(f"top100-{table}", [query])


def line(what, target, rates, over, under):
    middle, low, high = ratio([rate.cpu for rate in rates[over]], [rate.cpu for rate in rates[under]])
    figures = "; ".join(f"{name} {sorted(rate.cpu for rate in each)[len(each) // 2]:.1f} µs" for name, each in rates.items())
    return what, target, f"{middle:.2f} ({low:.2f} to {high:.2f})", figures


def run(bench):
    rows = list(items())
    engine = bench.engine()
    behind = bench.heatsink_serve("--only-gateway", "--upstream", f"http://127.0.0.1:{engine}", rules=True)
    own = bench.heatsink_serve("--partitions", "off", rules=True)
    nginx = bench.nginx(engine)
    for port in (behind, own):
        for table in ("Plain", "Sharded", "Ranges"):
            fill(bench, port, table, rows)
    for operation, make, target in (("GetItem", gets, "≤ 1.15"), ("PutItem", puts, "≤ 1.2")):
        bodies = make(bench, "Plain", rows, f"cpu-{operation}")
        rates = bench.rates({"nginx": (nginx, operation, bodies), "heatsink": (behind, operation, bodies)})
        yield line(f"forwarded {operation} ÷ nginx, processor time", target, rates, "heatsink", "nginx")
    for store, port, target in (("upstream: gateway's", behind, "≤ 4"), ("embedded: server's", own, "≤ 2")):
        rates = bench.rates({
            name: (port, "Query", top100(bench, table))
            for name, table in (("one key", "Plain"), ("ten shards", "Sharded"), ("ten ranges", "Ranges"))
        })
        yield line(f"top 100 over N = 10 ÷ of one key, {store} processor time", target, rates, "ten shards", "one key")
        yield line(f"top 100 over ten ranges ÷ of one key, {store} processor time", "≤ 1.3", rates, "ten ranges", "one key")
