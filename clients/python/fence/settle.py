"""The end of a scenario: when nobody writes any more, everything is read through every gateway and in the store itself, and compared.

Not here: what is expected, which the oracle knows.
"""

import random
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from fence.oracle import ABSENT, PHYSICAL, status_of, value_of

AT_ONCE = 12
MANY = 100


def settle(stage):
    """Reads and compares. What a gateway refuses is asked for again, for as long as a few steps take."""
    clients, oracle, bounds = stage.clients, stage.oracle, stage.cluster.bounds
    # What every gateway is told by now, nobody needs to find out during the reading.
    time.sleep(2 * bounds.poll)
    deadline = time.monotonic() + 3 * bounds.step
    reads = []
    for table, known in oracle.tables.items():
        for gateway in range(len(clients.at)):
            if not known.numbers:
                reads.append((f"Scan {table}", lambda g=gateway, t=table: clients.scan(g, t)))
            for number, (pk, rows) in enumerate(known.registers.items()):
                # Of many keys each is read through one of them.
                if not rows or len(known.registers) > MANY and number % len(clients.at) != gateway:
                    continue
                reads.append((f"Query {table}", lambda g=gateway, t=table, k=pk: clients.query(g, t, k)))
                reads.append((f"Query {table}", lambda g=gateway, t=table, k=pk: clients.query(g, t, k, 7)))
                # In a short run each item is read through one of them.
                some = [sk for at, sk in enumerate(rows) if not stage.cluster.short or at % len(clients.at) == gateway]
                reads += [(f"GetItem {table}", lambda g=gateway, t=table, k=pk, s=sk: clients.get(g, t, k, s)) for sk in some]
            for pk, sk in known.numbers:
                reads.append((f"GetItem {table}", lambda g=gateway, t=table, k=pk, s=sk: clients.sum(g, t, k, s)))
            if table in stage.indexed:
                for status in statuses(known):
                    for limit in (None, 3, 5):
                        for forward in (True, False):
                            reads.append((f"Query {table}.by-status", lambda g=gateway, t=table, s=status, n=limit, f=forward:
                                          clients.tasks(g, t, s, n, f)))
    random.Random(stage.cluster.seed).shuffle(reads)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for what, answered in pool.map(lambda read: (read[0], patiently(read[1], deadline)), reads):
            if not answered:
                oracle.fault("refused", what, "", "", f"still refused {3 * bounds.step:.0f} s after everything was quiet")
    for table in oracle.tables:
        in_the_store(stage, table)


def patiently(read, deadline):
    while read() is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.25)
    return True


def in_the_store(stage, table):
    """Compares what the store holds, under whichever keys, with what must be there. Says of lost items whether they are there."""
    known, oracle = stage.oracle.tables[table], stage.oracle
    found = defaultdict(list)
    pages = stage.raw.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    for item in (item for page in pages for item in page["Items"]):
        pk, sk = PHYSICAL.sub("", item["pk"]["S"]), item["sk"]["S"]
        found[pk, sk].append(value_of(item))
    now = time.monotonic()
    for pk, rows in known.registers.items():
        for sk, register in rows.items():
            copies = found.get((pk, sk), [])
            if "lost" in register.reported and register.known() in copies:
                stage.unreachable += 1
            if len(copies) > 1:
                oracle.fault("doubled", table, pk, sk, f"the store holds {len(copies)} copies: {copies}", register)
            elif (copies or [ABSENT])[0] not in register.allowed(now, now):
                oracle.fault("lost", table, pk, sk, f"the store holds {copies}, not {register.known()!r}", register)
    for pk, sk in found.keys() - {(pk, sk) for pk, rows in known.registers.items() for sk in rows} - known.numbers.keys():
        if sk not in known.former.get(pk, {}):
            oracle.fault("phantom", table, pk, sk, f"the store holds {found[pk, sk]}, which nobody wrote")


def statuses(known):
    """Every status that an item of the table has or had."""
    return sorted({
        status_of(attempt.value) for rows in known.registers.values() for register in rows.values()
        for attempt in register.tries if attempt.value is not ABSENT
    })


