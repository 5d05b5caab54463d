"""A key goes from 1 to 4, 16, 7 and 1 shards, again and again, while clients of two SDKs use it and another one, readers page through keys, indexes,
Scans and the stream, and gateways, commands and a store that can be killed are killed and stand still."""

import time

from fence.clients import FAILURES, connect, create
from fence.resharding.indexes import IndexReader, definitions
from fence.resharding.items import Client, group_of
from fence.resharding.measures import Measures
from fence.resharding.operator import Operator
from fence.resharding.phases import Phases
from fence.resharding.readers import Reader
from fence.resharding.rust import RustClient
from fence.resharding.scans import SegmentReader
from fence.resharding.schedule import Troubles
from fence.resharding.streams import StreamReader

TABLE, HOT, CALM = "Moves", "hot", "calm"
GATEWAYS, CLIENTS = 3, 4
READERS = (Reader, Reader, IndexReader, SegmentReader)
# Workers of the Rust client, and write units that they ask of the key in a second: near the 1,000 of its partition, where the store has partitions.
# DynamoDB Local has none.
WORKERS, UNITS, UNITS_OF_LOCAL = 6, 800, 300
# Items that nobody writes: what has to be moved, and must be in every read.
OLD = 250
# Some clients hang up after so many seconds: what they sent may be done long after.
HASTY = 2.5


def run(stage):
    cluster, clients = stage.cluster, stage.clients
    stage.begin(gateways=GATEWAYS)
    gateways = cluster.gateways[:GATEWAYS]
    create(stage.raw if not cluster.is_own else clients.at[0], TABLE, **definitions(cluster.has_streams))
    fill(stage)
    operator = Operator(stage, TABLE, HOT)
    troubles = Troubles(stage, gateways, cluster.store if cluster.is_store_killed else None, lambda: operator.moving)
    measures, phases = Measures(troubles), Phases(stage, HOT)
    clients.until_stopped(None, phases.act)
    stage.oracle.pulse(TABLE).watch()
    readers = []
    for number in range(CLIENTS + len(READERS)):
        at = [measures.of(connect(gateway.endpoint, HASTY if number % 3 == 2 else 120), gateway.number) for gateway in gateways]
        if number < CLIENTS:
            one = Client(stage, TABLE, number, at, [HOT, CALM], partiql=cluster.has_partiql)
        else:
            one = READERS[number - CLIENTS](stage, TABLE, number, at, [HOT, CALM], operator.changed)
            readers.append(one)
        clients.until_stopped(stage.random(number), one.act)
    stream = None
    if cluster.has_streams:
        stream = StreamReader(stage, TABLE, [connect(gateway.endpoint, HASTY, "dynamodbstreams") for gateway in gateways])
        clients.until_stopped(stage.random("stream"), stream.act)
    wanted = {
        "gateways": [gateway.endpoint for gateway in gateways], "key": HOT, "seed": cluster.seed, "workers": WORKERS, "queries": 1,
        "units_per_second": UNITS_OF_LOCAL if cluster.is_local else UNITS,
    }
    rust = RustClient(cluster.rust, stage.oracle, TABLE, wanted, open(cluster.scratch / "rust.log", "wb"))
    try:
        if not cluster.is_own:
            stage.network.weather(delayed=0.02, longest=0.2, lost=0.001)
        stage.begun = time.monotonic()
        troubles.begin()
        operating = clients.run(operator.work)
        # When the time is over, what is under way is brought to its end in peace.
        operating.join(max(0, stage.left()))
        troubles.end()
        operating.join()
        took = time.monotonic() - stage.begun
        stage.network.weather()
    finally:
        rust.end()
    # What hung up or was given up is still on its way for so long.
    clients.rest(cluster.bounds.straggler)
    clients.join()
    rust.hand_over()
    stage.settle()
    if stream:
        stream.finish(stage.random("stream"))
    verify(stage)
    calls = sum(measures.calls.values()) + sum(rust.calls.values())
    stage.notes += [f"{len(operator.done)} reshards in {took:.0f} s, {calls / took:.0f} calls/s", troubles.text()]
    for line in [*measures.lines(), *rust.lines(), *phases.lines(rust.seconds), *operator.lines()]:
        stage.tell(line)
    for reader in readers[2:]:
        stage.tell(", ".join(f"{times} {what}" for what, times in reader.counts.most_common()))
    if stream:
        stage.tell(stream.line())


def fill(stage):
    """Items of nobody, put in batches past the gateways: no key is on record yet. Some ten have the same value."""
    oracle, raw = stage.oracle, stage.raw
    for pk in (HOT, CALM):
        for begin in range(0, OLD, 25):
            rows = [f"{number % 100:02}-old-{number}" for number in range(begin, begin + 25)]
            begun, items = [], []
            for number, sk in enumerate(rows):
                value = f"old-{(begin + number) % 40:02}"
                begun.append(oracle.begin(TABLE, pk, sk, value))
                items.append({"pk": {"S": pk}, "sk": {"S": sk}, "v": {"S": value}, **group_of(sk), "pad": {"S": "x" * 300}})
            left = {TABLE: [{"PutRequest": {"Item": item}} for item in items]}
            while left:
                try:
                    left = raw.batch_write_item(RequestItems=left).get("UnprocessedItems")
                except FAILURES:
                    time.sleep(0.2)  # a new table has no more capacity for so many
            for one in begun:
                oracle.end(TABLE, one, "acked")


def verify(stage):
    """`heatsink verify` finds every item where the record puts it."""
    cluster = stage.cluster
    if cluster.is_own:
        cluster.gateways[0].stop()
    code, out, complaint = cluster.start_tool(cluster.tool("verify", TABLE)).wait(120)
    # A table whose key is whole again may be on record no more.
    if code != 0 and "not on record" not in complaint:
        stage.fault("lost", f"verify: exit {code}: {out} {complaint}")
