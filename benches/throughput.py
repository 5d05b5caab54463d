"""Requests per second: forwarded against nginx, sharded against forwarded, embedded against the engine's own server."""

import random
import statistics

from machinery import create, fill, items, key, ratio, wire


def gets(bench, table, rows, name):
    chosen = random.Random(3).sample(rows, 2000)
    return bench.bodies(name, [{"TableName": table, "Key": key(row)} for row in chosen])


def puts(bench, table, rows, name):
    chosen = random.Random(4).sample(rows, 2000)
    return bench.bodies(name, [{"TableName": table, "Item": wire(row)} for row in chosen])


def many(bench, operation, table, rows):
    """Bodies that name 25 items (batches) or 10 (transactions) each, all of one logical key over all its shards."""
    chosen = random.Random(5).sample(rows, 5000)
    write = operation in ("BatchWriteItem", "TransactWriteItems")
    if operation.startswith("Batch"):
        groups = [chosen[at:at + 25] for at in range(0, len(chosen), 25)]
        body = (lambda group: [{"PutRequest": {"Item": wire(row)}} for row in group]) if write else (
            lambda group: {"Keys": [key(row) for row in group]})
        bodies = [{"RequestItems": {table: body(group)}} for group in groups]
    else:
        groups = [chosen[at:at + 10] for at in range(0, len(chosen), 10)]
        action = (lambda row: {"Put": {"TableName": table, "Item": wire(row)}}) if write else (
            lambda row: {"Get": {"TableName": table, "Key": key(row)}})
        bodies = [{"TransactItems": [action(row) for row in group]} for group in groups]
    return bench.bodies(f"{operation}-{table}", bodies)


def sets(bench):
    rows = list(items())
    own = bench.heatsink_serve("--partitions", "off", rules=True)
    for table in ("Plain", "Sharded"):
        fill(bench, own, table, rows)
    for operation in ("BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"):
        rates = bench.rates({
            table.lower(): (own, operation, many(bench, operation, table, rows)) for table in ("Plain", "Sharded")
        })
        yield line(f"unsharded {operation} ÷ sharded, embedded store", "≤ 1.3", rates, "plain", "sharded")


def line(what, target, rates, over, under):
    middle, low, high = ratio(rates[over], rates[under])

    def shown(name, each):
        cpu = statistics.median(rate.cpu for rate in each)
        return f"{name} {statistics.median(each):,.0f}/s, {cpu:.1f} µs of CPU"

    figures = "; ".join(shown(name, each) for name, each in rates.items())
    return what, target, f"{middle:.2f} ({low:.2f} to {high:.2f})", figures


def forwarded(bench):
    rows = list(items())
    engine = bench.engine()
    fill(bench, engine, "Plain", rows)
    bodies = gets(bench, "Plain", rows, "get-forwarded")
    through = {
        "direct": engine, "nginx": bench.nginx(engine),
        "heatsink": bench.heatsink_serve("--only-gateway", "--upstream", f"http://127.0.0.1:{engine}"),
    }
    rates = bench.rates({name: (port, "GetItem", bodies) for name, port in through.items()})
    yield line("forwarded GetItem ÷ nginx", "≥ 0.8", rates, "heatsink", "nginx")


def sharded(bench):
    rows = list(items())
    engine = bench.engine()
    behind = bench.heatsink_serve("--only-gateway", "--upstream", f"http://127.0.0.1:{engine}", rules=True)
    own = bench.heatsink_serve("--partitions", "off", rules=True)
    for store, port in (("upstream", behind), ("embedded", own)):
        for table in ("Plain", "Sharded"):
            fill(bench, port, table, rows)
        for operation, make in (("GetItem", gets), ("PutItem", puts)):
            rates = bench.rates({
                table.lower(): (port, operation, make(bench, table, rows, f"{operation}-{table}"))
                for table in ("Plain", "Sharded")
            })
            yield line(f"sharded {operation} ÷ forwarded, {store} store", "≥ 0.9", rates, "sharded", "plain")


def embedded(bench):
    rows = list(items())
    engine, own = bench.engine(), bench.heatsink_serve("--partitions", "off")
    for port in (engine, own):
        fill(bench, port, "Plain", rows)
    bodies = gets(bench, "Plain", rows, "get-embedded")
    rates = bench.rates({"dynoxide": (engine, "GetItem", bodies), "heatsink": (own, "GetItem", bodies)})
    yield line("embedded GetItem ÷ dynoxide's own HTTP server", "≥ 1.0", rates, "heatsink", "dynoxide")


def file(bench):
    rows = list(items())
    ports = {
        mode: bench.heatsink_serve("--partitions", "off", "--data", bench.scratch / f"{mode}.db", "--synchronous", mode)
        for mode in ("full", "normal")
    }
    for port in ports.values():
        create(bench, port, "Plain")
    bodies = puts(bench, "Plain", rows, "put-file")
    rates = bench.rates({mode: (port, "PutItem", bodies) for mode, port in ports.items()})
    yield line("PutItem in a data file, --synchronous normal ÷ full", "stated", rates, "normal", "full")
