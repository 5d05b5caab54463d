"""The network keeps back what it is told to, brings it late, and loses answers, not requests."""

import http.client
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fence.network import Network


class Answering(BaseHTTPRequestHandler):
    """A store that answers every request with its own body and remembers it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append(body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def store():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture
def network(store):
    network = Network(store.server_port, ["g0", "g1"], 1)
    yield network
    network.stop()


def send(network, path, operation, body, connection=None, timeout=10):
    connection = connection or http.client.HTTPConnection("127.0.0.1", network.ports[path], timeout=timeout)
    connection.request("POST", "/", json.dumps(body), {"X-Amz-Target": f"DynamoDB_20120810.{operation}"})
    return json.loads(connection.getresponse().read())


def test_requests_pass_in_both_directions_on_one_connection(network, store):
    connection = http.client.HTTPConnection("127.0.0.1", network.ports["g0"], timeout=10)
    for number in range(3):
        assert send(network, "g0", "PutItem", {"n": number}, connection) == {"n": number}
    assert len(store.seen) == 3


def test_a_table_has_another_name_in_the_store(store):
    network = Network(store.server_port, ["g0"], 1, ["its.name=its-name"])
    try:
        assert send(network, "g0", "PutItem", {"TableName": "its.name"}) == {"TableName": "its.name"}
        assert b"its-name" in str(store.seen[0]).encode()
    finally:
        network.stop()


def test_only_what_matches_is_kept_back_until_its_release(network, store):
    hold = network.hold(["g0"], ["PutItem"], "T", ["late"])
    late = {"TableName": "T", "Item": "late"}
    for path, operation, body in (
        ("g1", "PutItem", late), ("g0", "GetItem", late), ("g0", "PutItem", {**late, "TableName": "U"}), ("g0", "PutItem", {"TableName": "T"}),
    ):
        send(network, path, operation, body)
    done = threading.Thread(target=send, args=(network, "g0", "PutItem", late))
    done.start()
    assert hold.wait(5) and not hold.wait_passed(0.1)
    assert len(store.seen) == 4
    hold.release()
    done.join(5)
    assert hold.wait_passed(5) and len(store.seen) == 5
    send(network, "g0", "PutItem", late)
    assert hold.held == 1, "what was released keeps nothing back"


def test_a_late_request_arrives_though_its_sender_has_gone(network, store):
    hold = network.hold(operations=["PutItem"], seconds=0.6)
    with pytest.raises(TimeoutError):
        send(network, "g0", "PutItem", {"n": 1}, timeout=0.2)
    assert store.seen == []
    assert hold.wait_passed(5) and hold.passed == 1 and len(store.seen) == 1


def test_a_count_bounds_what_is_kept_back(network, store):
    network.hold(operations=["PutItem"], seconds=5, count=1)
    with pytest.raises(TimeoutError):
        send(network, "g0", "PutItem", {"n": 1}, timeout=0.2)
    assert send(network, "g0", "PutItem", {"n": 2}) == {"n": 2}


def test_an_answer_is_kept_back_after_the_store_was_asked(network, store):
    hold = network.hold(answer=True)
    with pytest.raises(TimeoutError):
        send(network, "g0", "DescribeTable", {"n": 1}, timeout=0.3)
    assert hold.held == 1 and len(store.seen) == 1
    hold.release()


def test_answers_are_lost_and_requests_are_not(network, store):
    network.weather(lost=1.0)
    with pytest.raises(http.client.RemoteDisconnected):
        send(network, "g0", "PutItem", {"n": 1})
    assert len(store.seen) == 1
    network.weather()
    assert send(network, "g0", "PutItem", {"n": 2}) == {"n": 2}


def test_the_share_that_is_delayed_is_delayed(network):
    network.weather(delayed=1.0, longest=0.2)
    begin = time.monotonic()
    for _ in range(10):
        send(network, "g0", "GetItem", {})
    # Twenty pauses of 0.1 s on average.
    assert 0.5 < time.monotonic() - begin < 4
