"""A key goes from 1 to 4, 16, 7 and 1 shards, again and again, while clients use it and another one, and gateways and commands are killed and
stand still."""

import time

from fence.clients import connect, create
from fence.resharding.items import Client
from fence.resharding.measures import Measures
from fence.resharding.operator import Operator
from fence.resharding.readers import Reader
from fence.resharding.schedule import Troubles

TABLE, HOT, CALM = "Moves", "hot", "calm"
GATEWAYS, CLIENTS, READERS = 3, 6, 3
# Items that nobody writes: what has to be moved, and must be in every read.
OLD = 400
# Some clients hang up after so many seconds: what they sent may be done long after.
HASTY = 2.5


def run(stage):
    cluster, clients = stage.cluster, stage.clients
    stage.begin(gateways=GATEWAYS)
    gateways = cluster.gateways[:GATEWAYS]
    create(stage.raw if not cluster.is_own else clients.at[0], TABLE)
    fill(stage)
    troubles, operator = Troubles(stage, gateways), Operator(stage, TABLE, HOT)
    measures = Measures(troubles)
    stage.oracle.pulse(TABLE).watch()
    for number in range(CLIENTS + READERS):
        at = [measures.of(connect(gateway.endpoint, HASTY if number % 3 == 2 else 120), gateway.number) for gateway in gateways]
        if number < CLIENTS:
            one = Client(stage, TABLE, number, at, [HOT, CALM], partiql=cluster.has_partiql)
        else:
            one = Reader(stage, TABLE, number, at, [HOT, CALM], operator.changed)
        clients.until_stopped(stage.random(number), one.act)
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
    # What hung up or was given up is still on its way for so long.
    clients.rest(cluster.bounds.straggler)
    stage.settle()
    verify(stage)
    calls = sum(measures.calls.values())
    stage.notes += [f"{len(operator.done)} reshards in {took:.0f} s, {calls / took:.0f} calls/s", troubles.text()]
    for line in [*measures.lines(), *operator.lines()]:
        stage.tell(line)


def fill(stage):
    """Items of nobody, put in batches past the gateways: no key is on record yet."""
    oracle, raw = stage.oracle, stage.raw
    for pk in (HOT, CALM):
        for begin in range(0, OLD, 25):
            rows = [f"{number % 100:02}-old-{number}" for number in range(begin, begin + 25)]
            begun = [oracle.begin(TABLE, pk, sk, "old") for sk in rows]
            items = [{"pk": {"S": pk}, "sk": {"S": sk}, "v": {"S": "old"}, "pad": {"S": "x" * 300}} for sk in rows]
            raw.batch_write_item(RequestItems={TABLE: [{"PutRequest": {"Item": item}} for item in items]})
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
