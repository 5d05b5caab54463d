"""A table of many keys goes from whole to 8 shards, 3 and whole, again and again, by `adopt`, while clients with boto3, ElectroDB and OneTable write
keys of their own and make new ones, readers page through keys and Scans, and gateways, commands and a store that can be killed are killed and stand
still."""

import time

import boto3
from botocore.config import Config

from fence.adoption.mappers import KEYS, MARKS, MapperClient, Mappers
from fence.adoption.operator import TableOperator
from fence.adoption.readers import TableReader, Writer, counted
from fence.clients import FAILURES, connect, create
from fence.oracle import ACKED
from fence.resharding.items import group_of
from fence.resharding.measures import Measures
from fence.resharding.schedule import Troubles

TABLE, GATEWAYS = "Town", 3
# Who writes which part of the keys: each but its name is a library.
WRITERS = ("boto3", "boto3", "boto3", "ElectroDB", "ElectroDB", "OneTable", "OneTable")
READERS = 2
# Items of each key that nobody writes.
OLD = 3
# Some clients hang up after so many seconds.
HASTY = 2.5


def run(stage):
    cluster, clients = stage.cluster, stage.clients
    stage.begin(gateways=GATEWAYS)
    gateways = cluster.gateways[:GATEWAYS]
    create(stage.raw, TABLE)
    keys = max(cluster.keys, 3 * len(WRITERS))
    parts = fill(stage, keys)
    operator = TableOperator(stage, TABLE, keys)
    operator.gateways = gateways
    troubles = Troubles(stage, gateways, cluster.store if cluster.is_store_killed else None, lambda: operator.moving, rarely=True)
    measures = Measures(troubles)
    stage.oracle.pulse(TABLE).watch()
    endpoints = [gateway.endpoint for gateway in gateways]
    mappers = Mappers(TABLE, endpoints, open(cluster.scratch / "mappers.log", "wb"))
    readers, tellers = [], []
    for number in range(READERS):
        sdk = [connect(endpoint, HASTY if number else 120) for endpoint in endpoints]
        at = [measures.of(client, gateway.number) for client, gateway in zip(sdk, gateways)]
        readers.append(TableReader(stage, TABLE, f"r{number}", at, operator.changed, sdk, [resource(endpoint) for endpoint in endpoints]))
    for number, library in enumerate(WRITERS):
        if library == "boto3":
            at = [measures.of(connect(gateway.endpoint, HASTY if number == 2 else 120), gateway.number) for gateway in gateways]
            one = Writer(stage, TABLE, number, at, parts[number], cluster.has_partiql, readers)
        else:
            one = MapperClient(stage, TABLE, number, library, mappers, measures, GATEWAYS, parts[number], operator.changed)
            tellers.append(one)
        clients.until_stopped(stage.random(number), one.act)
    for reader in readers:
        clients.until_stopped(stage.random(reader.name), reader.act)
    try:
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
        clients.join()
    finally:
        mappers.end()
    stage.settle()
    operator.whole()
    operator.verify()
    calls = sum(measures.calls.values())
    born = sum(len(rows) > 0 for rows in stage.oracle.tables[TABLE].registers.values()) - keys
    stage.notes += [f"{keys} keys and {born} new ones, {len(operator.done)} adoptions in {took:.0f} s, {calls / took:.0f} calls/s",
                    troubles.text()]
    for line in [*measures.lines(), *operator.lines()]:
        stage.tell(line)
    stage.tell(f"boto3's readers: {counted(readers)}")
    for one in tellers:
        stage.tell(f"{one.mapper}: {one.written} values, {one.read} keys and Scans read, {one.given_up} given up, {one.anew} begun again, "
                   f"{len(one.teams)} teams")


def resource(endpoint):
    return boto3.resource(
        "dynamodb", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local", aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1, "mode": "standard"}, read_timeout=120, connect_timeout=5, max_pool_connections=64),
    ).Table(TABLE)


def fill(stage, keys):
    """The keys, each with items of nobody, put in batches past the gateways: no table is on record yet. Returns each writer's names of its keys."""
    oracle, parts, puts = stage.oracle, [[] for _ in WRITERS], []
    for number in range(keys):
        at = number % len(WRITERS)
        library, name = WRITERS[at], f"k{number:04}"
        parts[at].append(name)
        for old in range(OLD):
            if library == "boto3":
                pk, sk, more = name, f"{old * 31:02}-old-{old}", group_of(str(old * 31))
            else:
                pk, sk = (form.format(text) for form, text in zip(KEYS[library], (name, f"{old * 310:03}-old-{old}")))
                more = {**MARKS[library], "team": {"S": name}, "id": {"S": f"{old * 310:03}-old-{old}"}}
            value = f"old-{number}-{old}"
            item = {"pk": {"S": pk}, "sk": {"S": sk}, "v": {"S": value}, **more}
            puts.append((oracle.begin(TABLE, pk, sk, value), {"PutRequest": {"Item": item}}))
    for begin in range(0, len(puts), 25):
        left = {TABLE: [put for _, put in puts[begin:begin + 25]]}
        while left:
            try:
                left = stage.raw.batch_write_item(RequestItems=left).get("UnprocessedItems")
            except FAILURES:
                time.sleep(0.2)
        for one, _ in puts[begin:begin + 25]:
            oracle.end(TABLE, one, ACKED)
    return parts
