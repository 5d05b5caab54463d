"""Clients: calls through gateways whose outcome is told to the oracle.

boto3 sends each request once, so that every outcome is the gateway's own. Not here: which calls are made, and when.
"""

import threading
import time
from collections import defaultdict
from contextlib import contextmanager

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, HTTPClientError

from fence.oracle import ABSENT, ACKED, PHYSICAL, REFUSED, UNKNOWN, status_of, value_of

# Longer than a gateway works on a request, and than it may be stopped meanwhile.
PATIENCE = 120
PAUSE = 0.02


def connect(endpoint, patience=PATIENCE, service="dynamodb"):
    """boto3 at an endpoint on this machine, which waits so many seconds for an answer."""
    return boto3.client(
        service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local", aws_secret_access_key="local",
        config=Config(
            retries={"total_max_attempts": 1, "mode": "standard"}, read_timeout=patience, connect_timeout=5, max_pool_connections=64,
            parameter_validation=False,
        ),
    )


def outcome_of(error):
    """What a failed write may have done."""
    if isinstance(error, EndpointConnectionError):
        return REFUSED  # nobody listened
    if isinstance(error, ClientError) and error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
        return REFUSED
    return UNKNOWN


FAILURES = (ClientError, BotoCoreError, HTTPClientError)


class Clients:
    """boto3 at every gateway, an oracle that hears of every call, and the worker threads."""

    def __init__(self, cluster, oracle):
        self.cluster, self.oracle = cluster, oracle
        self.at = [connect(gateway.endpoint) for gateway in cluster.gateways]
        self.raw = connect(cluster.store.endpoint)
        self.stopping = threading.Event()
        self.threads, self.broken = [], []
        self._resting = False
        self._busy, self._idle = 0, threading.Condition()

    # Threads.

    def run(self, work, *arguments):
        """Runs `work` in a thread until it returns. What it raises ends the scenario."""

        def body():
            try:
                work(*arguments)
            except Exception as problem:  # noqa: BLE001, it is raised again in join
                self.broken.append(problem)
                self.stopping.set()

        thread = threading.Thread(target=body, daemon=True)
        self.threads.append(thread)
        thread.start()
        return thread

    def until_stopped(self, rng, work):
        """Runs `work(rng)` again and again in a thread until told to stop."""

        def body():
            while not self.stopping.is_set():
                with self._idle:
                    if not self._idle.wait_for(lambda: not self._resting, 1):
                        continue
                    self._busy += 1
                try:
                    work(rng)
                finally:
                    with self._idle:
                        self._busy -= 1
                        self._idle.notify_all()

        return self.run(body)

    @contextmanager
    def nobody(self):
        """While this lasts nobody works of those who work until stopped: the keys of a table move only while nobody uses it."""
        with self._idle:
            self._resting = True
            self._idle.wait_for(lambda: self._busy == 0, PATIENCE)
        watched = [pulse for pulse in list(self.oracle.pulses.values()) if pulse.rest()]
        try:
            yield
        finally:
            for pulse in watched:
                pulse.watch()
            with self._idle:
                self._resting = False
                self._idle.notify_all()

    def join(self):
        """Tells all threads to stop, and waits."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE + 10)
            if thread.is_alive():
                raise RuntimeError("a client does not end")
        self.threads = []
        self.stopping = threading.Event()
        if self.broken:
            raise self.broken[0]

    def abandon(self):
        """As `join`, for a scenario that broke: what the threads have to say is known."""
        self.broken = []
        try:
            self.join()
        except Exception as problem:  # noqa: BLE001
            print(f"    a client broke too: {problem!r}")

    def rest(self, seconds):
        """Sleeps, but not once told to stop."""
        self.stopping.wait(seconds)

    # Writes: each returns its outcome.

    def write(self, gateway, table, pk, sk, value, call):
        """Makes one write of one item and has the oracle note it."""
        begun = self.oracle.begin(table, pk, sk, value)
        return self._settle(lambda outcome: self.oracle.end(table, begun, outcome), lambda: call(self.at[gateway]))

    def put(self, gateway, table, pk, sk, value, **more):
        item = {"pk": {"S": pk}, "sk": {"S": sk}, "v": {"S": value}, **more}
        return self.write(gateway, table, pk, sk, value, lambda at: at.put_item(TableName=table, Item=item))

    def update(self, gateway, table, pk, sk, value):
        """Makes the item where it is not there, too."""
        return self.write(gateway, table, pk, sk, value, lambda at: at.update_item(
            TableName=table, Key=key(pk, sk), UpdateExpression="SET v = :v", ExpressionAttributeValues={":v": {"S": value}}
        ))

    def put_task(self, gateway, table, pk, sk, value, at="0"):
        """A put of an item whose status, an index's key, its value begins with."""
        return self.put(gateway, table, pk, sk, value, status={"S": status_of(value)}, at={"S": at})

    def move_task(self, gateway, table, pk, sk, value):
        """Gives an item that is there another status. It must not be made by this."""
        return self.write(gateway, table, pk, sk, value, lambda at: at.update_item(
            TableName=table, Key=key(pk, sk), UpdateExpression="SET v = :v, #s = :s", ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":v": {"S": value}, ":s": {"S": status_of(value)}},
        ))

    def delete(self, gateway, table, pk, sk):
        return self.write(gateway, table, pk, sk, ABSENT, lambda at: at.delete_item(TableName=table, Key=key(pk, sk)))

    def add(self, gateway, table, pk, sk, amount):
        begun = self.oracle.adding(table, (pk, sk), amount)
        return self._settle(lambda outcome: self.oracle.added(table, begun, outcome), lambda: self.at[gateway].update_item(
            TableName=table, Key=key(pk, sk), UpdateExpression="ADD n :n", ExpressionAttributeValues={":n": {"N": str(amount)}}
        ))

    def _settle(self, end, call):
        try:
            call()
        except FAILURES as error:
            outcome = outcome_of(error)
            end(outcome)
            self.rest(PAUSE)  # a client that is refused does not come back at once
            return outcome
        end(ACKED)
        return ACKED

    # Reads: each returns what it saw, or None where it was refused.

    def get(self, gateway, table, pk, sk):
        begin, age = time.monotonic(), self.oracle.age(table)
        try:
            item = self.at[gateway].get_item(TableName=table, Key=key(pk, sk), ConsistentRead=True).get("Item")
        except FAILURES:
            self.rest(PAUSE)
            return None
        rows = [self._row(table, item, f"GetItem at g{gateway}")] if item else []
        self.oracle.shown(table, pk, rows, begin, time.monotonic(), age, f"GetItem at g{gateway}", [sk])
        return rows

    def query(self, gateway, table, pk, limit=None):
        """Every row of a key, page by page. Refused pages are asked for again a few times."""
        what = f"Query at g{gateway}"
        begin, age = time.monotonic(), self.oracle.age(table)
        request = {
            "TableName": table, "KeyConditionExpression": "pk = :k", "ExpressionAttributeValues": {":k": {"S": pk}},
            "ConsistentRead": True, **({"Limit": limit} if limit else {}),
        }
        items = self.pages("query", gateway, request)
        if items is None:
            return None
        rows = [self._row(table, item, what) for item in items]
        self.oracle.shown(table, pk, rows, begin, time.monotonic(), age, what)
        return rows

    def pages(self, operation, gateway, request):
        """All items of a Query or Scan; None where a page was refused."""
        items, call = [], getattr(self.at[gateway], operation)
        while True:
            try:
                page = call(**request)
            except FAILURES:
                self.rest(PAUSE)
                return None
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def scan(self, gateway, table):
        """Every row of a table, page by page."""
        what = f"Scan at g{gateway}"
        begin, age = time.monotonic(), self.oracle.age(table)
        items = self.pages("scan", gateway, {"TableName": table, "ConsistentRead": True})
        if items is None:
            return None
        rows = defaultdict(list)
        for item in items:
            rows[item["pk"]["S"]].append(self._row(table, item, what))
        # A physical key was told of already.
        logical = {pk for pk in rows if not PHYSICAL.search(pk)}
        for pk in logical | set(self.oracle.tables[table].registers):
            self.oracle.shown(table, pk, rows[pk], begin, time.monotonic(), age, what)
        return rows

    def tasks(self, gateway, table, status, limit=None, forward=True):
        """Every row of an index's key, page by page."""
        what = f"Query of the index at g{gateway}"
        begin, age = time.monotonic(), self.oracle.age(table)
        items = self.pages("query", gateway, {
            "TableName": table, "IndexName": "by-status", "KeyConditionExpression": "#s = :s", "ScanIndexForward": forward,
            "ExpressionAttributeNames": {"#s": "status"}, "ExpressionAttributeValues": {":s": {"S": status}},
            **({"Limit": limit} if limit else {}),
        })
        if items is None:
            return None
        rows = [(item["pk"]["S"], *self._row(table, item, what)) for item in items]
        self.oracle.listed(table, status, rows, begin, time.monotonic(), age, what)
        return rows

    def sum(self, gateway, table, pk, sk):
        least, what = self.oracle.least(table, (pk, sk)), f"GetItem at g{gateway}"
        try:
            item = self.at[gateway].get_item(TableName=table, Key=key(pk, sk), ConsistentRead=True).get("Item", {})
        except FAILURES:
            self.rest(PAUSE)
            return None
        value = int(item.get("n", {"N": "0"})["N"])
        self.oracle.summed(table, (pk, sk), value, least, what)
        return value

    def _row(self, table, item, what):
        self.oracle.logical(table, item, what, ("pk", "status"))
        return item["sk"]["S"], value_of(item)


def key(pk, sk):
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def create(client, table, indexes=(), **more):
    """CreateTable with string keys pk and sk, and global indexes on the attributes named, each sorted by `at`."""
    attributes = ["pk", "sk", *indexes, *(["at"] if indexes else [])]
    request = {
        "TableName": table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema("pk", "sk"),
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in attributes], **more,
    }
    if indexes:
        request["GlobalSecondaryIndexes"] = [
            {"IndexName": f"by-{name}", "KeySchema": schema(name, "at"), "Projection": {"ProjectionType": "ALL"}} for name in indexes
        ]
    return client.create_table(**request)


def schema(partition, sort):
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
