"""Connects boto3 to the endpoint under test and sets the tables up once.

HEATSINK_ENDPOINT names the endpoint: any DynamoDB on this machine. HEATSINK_STORE says what is behind it, and
HEATSINK_CANNOT lists what that store itself lacks, as `file::test | reason`, for all tests whose names begin so (the lists are in clients/run).
"""

import os
from decimal import Decimal
from urllib.parse import urlparse

import boto3
import pytest
from botocore.config import Config

import board as model
import chat as rooms

ENDPOINT = os.environ.get("HEATSINK_ENDPOINT", "")
STORE = os.environ.get("HEATSINK_STORE", "embedded")
CANNOT = dict(line.split(" | ", 1) for line in os.environ.get("HEATSINK_CANNOT", "").splitlines() if " | " in line)


def pytest_collection_modifyitems(items):
    for item in items:
        reason = next((reason for name, reason in CANNOT.items() if f"{item.path.name}::{item.name}".startswith(name)), None)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def connect(kind):
    if urlparse(ENDPOINT).hostname not in ("127.0.0.1", "localhost"):
        raise pytest.UsageError("set HEATSINK_ENDPOINT to an endpoint on this machine, such as http://127.0.0.1:8000")
    return kind(
        "dynamodb",
        endpoint_url=ENDPOINT,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(retries={"max_attempts": 4, "mode": "standard"}, read_timeout=30, connect_timeout=5),
    )


@pytest.fixture(scope="session")
def client():
    return connect(boto3.client)


@pytest.fixture(scope="session")
def resource():
    return connect(boto3.resource)


def make_table(client, name, keys, types, units=1000, **more):
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": n, "KeyType": k} for n, k in zip(keys, ("HASH", "RANGE"))],
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
        ProvisionedThroughput={"ReadCapacityUnits": units, "WriteCapacityUnits": units},
        **more,
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})


def index(name, hash_key, range_key, **more):
    keys = [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]
    return {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}, **more}


@pytest.fixture
def table(client, resource, request):
    """An empty table of its own for one test: pk and sk are strings."""
    name = "T_" + request.node.name.replace("[", ".").replace("]", "")
    make_table(client, name, ("pk", "sk"), {"pk": "S", "sk": "S"})
    yield resource.Table(name)
    client.delete_table(TableName=name)


class Board:
    def __init__(self, table, rows):
        self.table = table
        self.name = table.name
        self.rows = rows

    def collection(self, game, forward=True, keep=lambda row: True):
        return model.collection(self.rows, game, forward, keep)


@pytest.fixture(scope="session")
def board(client, resource):
    """The leaderboard: 2,060 rows, a local index by region, a global one by player. Tests only read it."""
    throughput = {"ReadCapacityUnits": 10000, "WriteCapacityUnits": 10000}
    make_table(
        client, "Leaderboards", ("pk", "sk"),
        {"pk": "S", "sk": "S", "region": "S", "player": "S", "score": "N"}, units=10000,
        LocalSecondaryIndexes=[index("by_region", "pk", "region")],
        GlobalSecondaryIndexes=[index("by_player", "player", "score", ProvisionedThroughput=throughput)],
    )
    table = resource.Table("Leaderboards")
    made = model.rows()
    # The batch writer sends 25 at a time and sends what came back unprocessed again.
    with table.batch_writer() as batch:
        for row in made:
            batch.put_item(Item=row)
    yield Board(table, [{**row, "score": Decimal(row["score"])} for row in made])
    client.delete_table(TableName="Leaderboards")


@pytest.fixture(scope="session")
def chat(client, resource):
    """The chat rooms with their three indexes. Tests only read them."""
    table = resource.create_table(**rooms.schema("Chat"))
    client.get_waiter("table_exists").wait(TableName="Chat", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    with table.batch_writer() as batch:
        for message in rooms.messages():
            batch.put_item(Item=message)
    yield table
    client.delete_table(TableName="Chat")
