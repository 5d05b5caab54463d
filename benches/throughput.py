"""Requests per second: forwarded against nginx, sharded against forwarded, embedded against the engine's own server."""

import random

from machinery import fill, items, key, ratio, wire


def gets(bench, table, rows, name):
    chosen = random.Random(3).sample(rows, 2000)
    return bench.bodies(name, [{"TableName": table, "Key": key(row)} for row in chosen])


def puts(bench, table, rows, name):
    chosen = random.Random(4).sample(rows, 2000)
    return bench.bodies(name, [{"TableName": table, "Item": wire(row)} for row in chosen])


def line(what, target, rates, over, under):
    middle, low, high = ratio(rates[over], rates[under])
    shown = "; ".join(f"{name} {sorted(each)[len(each) // 2]:,.0f}/s" for name, each in rates.items())
    return what, target, f"{middle:.2f} ({low:.2f} to {high:.2f})", shown


def forwarded(bench):
    rows = list(items())
    engine = bench.engine()
    fill(bench, engine, "Plain", rows)
    bodies = gets(bench, "Plain", rows, "get-forwarded")
    through = {
        "direct": engine, "nginx": bench.nginx(engine),
        "heatsink": bench.heatsink_serve("--upstream", f"http://127.0.0.1:{engine}"),
    }
    rates = bench.rates({name: (port, "GetItem", bodies) for name, port in through.items()})
    yield line("forwarded GetItem ÷ nginx", "≥ 0.8", rates, "heatsink", "nginx")


def sharded(bench):
    rows = list(items())
    engine = bench.engine()
    behind = bench.heatsink_serve("--upstream", f"http://127.0.0.1:{engine}", rules=True)
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


