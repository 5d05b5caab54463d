"""Programs that keep their state in DynamoDB: idempotency of AWS Lambda Powertools, results of Celery, and a stream that workers read in the manner of
the Kinesis Client Library: one worker holds a lease, keeps its position in it, and another goes on from there.
"""

import time
from threading import Event, Thread
from types import SimpleNamespace
from urllib.parse import urlparse

import boto3
import pytest
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyAlreadyInProgressError, IdempotencyValidationError
from celery import Celery, chord
from celery.contrib.testing.worker import start_worker
from celery.result import AsyncResult

from conftest import ENDPOINT, connect, make_table


# Powertools.


@pytest.fixture
def orders(client, table):
    """A function that is done once for each order, under one partition key; and how often it ran."""
    layer = DynamoDBPersistenceLayer(
        table_name=table.name, key_attr="pk", sort_key_attr="sk", static_pk_value="orders", boto3_client=client)
    ran = []

    def make(action=lambda order: None, **config):
        @idempotent_function(
            data_keyword_argument="order", persistence_store=layer,
            config=IdempotencyConfig(event_key_jmespath="id", raise_on_no_idempotency_key=True, **config))
        def handle(order):
            ran.append(order["id"])
            action(order)
            return {"order": order["id"], "number": len(ran)}
        return handle

    return SimpleNamespace(make=make, ran=ran, table=table)


def test_an_idempotent_function_runs_once_for_each_order(orders):
    handle = orders.make()
    first = [handle(order={"id": f"o{number}"}) for number in range(30)]
    assert [handle(order={"id": f"o{number}"}) for number in range(30)] == first
    assert len(orders.ran) == 30
    stored = orders.table.query(KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": "orders"})["Items"]
    assert [item["status"] for item in stored] == ["COMPLETED"] * 30


def test_a_call_beside_an_unfinished_one_is_refused(orders):
    begun, go_on = Event(), Event()
    handle = orders.make(lambda order: (begun.set(), go_on.wait(30)))
    beside = Thread(target=handle, kwargs={"order": {"id": "slow"}})
    beside.start()
    assert begun.wait(10)
    with pytest.raises(IdempotencyAlreadyInProgressError):
        handle(order={"id": "slow"})
    go_on.set()
    beside.join()
    assert handle(order={"id": "slow"}) == {"order": "slow", "number": 1}


def test_a_call_that_failed_runs_again(orders):
    with pytest.raises(ZeroDivisionError):
        orders.make(lambda order: 1 / 0)(order={"id": "bad"})
    assert orders.make()(order={"id": "bad"}) == {"order": "bad", "number": 2}


def test_the_same_order_with_another_payload_is_refused(orders):
    handle = orders.make(payload_validation_jmespath="amount")
    handle(order={"id": "o", "amount": 1})
    with pytest.raises(IdempotencyValidationError):
        handle(order={"id": "o", "amount": 2})
    assert orders.ran == ["o"]


# Celery.


@pytest.fixture
def application(client):
    """An application that makes its table itself: without a sort key, so it is never sharded."""
    at = urlparse(ENDPOINT)
    name = "Celery_results"
    made = Celery("tests", backend=f"dynamodb://local:local@127.0.0.1:{at.port}/{name}?read=100&write=100", broker="memory://")
    yield made
    client.delete_table(TableName=name)


def test_results_of_tasks_are_kept(application):
    backend = application.backend
    for number in range(20):
        backend.store_result(f"task-{number}", {"sum": number}, "SUCCESS")
    backend.store_result("task-x", ValueError("no"), "FAILURE")
    assert [AsyncResult(f"task-{number}", app=application).get(timeout=5) for number in range(20)] == [{"sum": number} for number in range(20)]
    with pytest.raises(ValueError, match="no"):
        AsyncResult("task-x", app=application).get(timeout=5)
    AsyncResult("task-1", app=application).forget()
    assert AsyncResult("task-1", app=application).state == "PENDING"


def test_a_chord_ends_once_all_its_parts_have(application):
    """A worker of Celery runs it. The parts count themselves in an item of the table."""
    @application.task
    def double(number):
        return 2 * number

    @application.task
    def total(numbers):
        return sum(numbers)

    with start_worker(application, perform_ping_check=False, pool="solo"):
        assert chord([double.s(number) for number in range(12)])(total.s()).get(timeout=30) == 132


# A stream, as the Kinesis Client Library reads one.


class Worker:
    """Reads a shard of a stream while it holds the lease, which it renews with each page, and keeps its position there."""

    def __init__(self, name, streams, leases, arn, shard):
        self.name, self.streams, self.leases, self.arn, self.shard = name, streams, leases, arn, shard
        self.counter = None

    def take(self, former):
        """Takes the lease from its holder, if that has not renewed it since it was read."""
        self.leases.update_item(
            Key={"pk": "leases", "sk": self.shard}, UpdateExpression="SET leaseOwner = :me ADD leaseCounter :one",
            ConditionExpression="attribute_not_exists(leaseCounter)" if former is None else "leaseCounter = :former",
            ExpressionAttributeValues={":me": self.name, ":one": 1, **({} if former is None else {":former": former})})
        lease = self.lease()
        self.counter = lease["leaseCounter"]
        last = lease.get("checkpoint")
        place = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last} if last else {"ShardIteratorType": "TRIM_HORIZON"}
        self.iterator = self.streams.get_shard_iterator(StreamArn=self.arn, ShardId=self.shard, **place)["ShardIterator"]

    def lease(self):
        return self.leases.get_item(Key={"pk": "leases", "sk": self.shard}, ConsistentRead=True)["Item"]

    def page(self, limit):
        """A page of records, and its position in the lease, if that is still this worker's."""
        answer = self.streams.get_records(ShardIterator=self.iterator, Limit=limit)
        self.iterator = answer.get("NextShardIterator")
        if answer["Records"]:
            self.leases.update_item(
                Key={"pk": "leases", "sk": self.shard}, UpdateExpression="SET checkpoint = :at ADD leaseCounter :one",
                ConditionExpression="leaseOwner = :me AND leaseCounter = :counter",
                ExpressionAttributeValues={
                    ":at": answer["Records"][-1]["dynamodb"]["SequenceNumber"], ":one": 1, ":me": self.name, ":counter": self.counter})
            self.counter += 1
        return answer["Records"]


def test_a_stream_is_read_on_by_another_worker(client, resource, table):
    name = "Streamed"
    make_table(client, name, ("pk", "sk"), {"pk": "S", "sk": "S"}, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    try:
        streams = connect(lambda _, **more: boto3.client("dynamodbstreams", **more))
        arn = streams.list_streams(TableName=name)["Streams"][0]["StreamArn"]
        shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        for number in range(60):
            resource.Table(name).put_item(Item={"pk": "hot", "sk": f"{number:02d}"})
        first, second = (Worker(who, streams, table, arn, shard) for who in ("first", "second"))
        first.take(None)
        seen = first.page(10) + first.page(10)
        # The first one stands still; the second one takes the lease, and the first one's position is not kept any more.
        second.take(second.lease()["leaseCounter"])
        with pytest.raises(client.exceptions.ConditionalCheckFailedException):
            first.page(10)
        deadline = time.monotonic() + 20
        while len(seen) < 60 and time.monotonic() < deadline:
            seen += second.page(25)
        assert [record["dynamodb"]["Keys"] for record in seen] == [{"pk": {"S": "hot"}, "sk": {"S": f"{number:02d}"}} for number in range(60)]
    finally:
        client.delete_table(TableName=name)
