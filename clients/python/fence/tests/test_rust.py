"""The client with the Rust SDK takes what is right, and finds and tells each fault that is planted: over HTTP, as it is built.

`HEATSINK_CLIENT_BIN` names it; `clients/fence` does.
"""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from fence.oracle import ACKED, Oracle, value_of
from fence.resharding.rust import RustClient
from fence.tests.table import Table

WANTED = {"key": "hot", "seed": 7, "workers": 3, "units_per_second": 0, "queries": 8}
METHODS = {
    "PutItem": "put_item", "UpdateItem": "update_item", "DeleteItem": "delete_item", "BatchWriteItem": "batch_write_item",
    "TransactWriteItems": "transact_write_items", "GetItem": "get_item", "Query": "query",
}


class Gateway(ThreadingHTTPServer):
    """A table that answers as DynamoDB does."""

    daemon_threads = True

    def __init__(self, plant):
        super().__init__(("127.0.0.1", 0), Handler)
        self.table, self.lock = Table(plant), threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1  # the head and the body of an answer go together

    def do_POST(self):
        operation = self.headers["X-Amz-Target"].split(".")[1]
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if operation not in ("BatchWriteItem", "TransactWriteItems"):
            request.pop("ReturnConsumedCapacity", None)
        status, told = 200, None
        try:
            with self.server.lock:
                told = getattr(self.server.table, METHODS[operation])(**request) or {}
        except ClientError as error:
            code = error.response["Error"]["Code"]
            reasons = [reason["Code"] for reason in error.response["CancellationReasons"]]
            status, told = 400, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": f"{code} {reasons}"}
        except ReadTimeoutError:
            self.close_connection = True  # done, and nobody is told
            return
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def play(plant, seconds, kind=None):
    """What its oracle and ours say after so long, or once it has told of such a fault."""
    gateway, oracle = Gateway(plant), Oracle()
    client = RustClient(os.environ["HEATSINK_CLIENT_BIN"], oracle, "Moves", {**WANTED, "gateways": [gateway.endpoint] * 2})
    until = time.monotonic() + seconds
    while time.monotonic() < until and not oracle.faults[kind]:
        time.sleep(0.02)
    client.end()
    client.hand_over()
    items = dict(gateway.table.items)
    gateway.shutdown()
    return oracle, client, items


PLANTS = {
    "put lost": "lost", "delete lost": "lost", "condition ignored": "accepted", "token forgotten": "lost", "page out of order": "disordered",
    "item left out": "lost", "item shown twice": "doubled",
}


@pytest.fixture(scope="module")
def played():
    """All of them at once: they mostly wait."""
    with ThreadPoolExecutor(len(PLANTS) + 1) as pool:
        return dict(pool.map(lambda plant: (plant, play(plant, 30 if plant else 2, PLANTS.get(plant))), [None, *PLANTS]))


def test_what_is_right_is_taken_and_what_must_be_there_is_told(played):
    oracle, client, items = played[None]
    assert not oracle.faults and client.process.returncode == 0
    assert oracle.counts[ACKED] > 20 and "Query" in client.calls and "TransactWriteItems" in client.calls
    assert oracle.tables["Moves"].registers["hot"].keys() >= {sk for _, sk in items}
    now = time.monotonic()
    oracle.shown("Moves", "hot", [(sk, value_of(item)) for (_, sk), item in items.items()], now, now, 0, "the end")
    assert not oracle.faults


@pytest.mark.parametrize("plant", PLANTS)
def test_what_is_planted_is_found(played, plant):
    oracle, client, _ = played[plant]
    assert oracle.faults[PLANTS[plant]] and client.process.returncode == 1
