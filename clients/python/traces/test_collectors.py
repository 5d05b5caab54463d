"""A collector that is gone, refuses or hangs: requests are answered as before, memory is bounded, the log says so once, and the gateway ends."""

import os
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from collector import Collector

QUERY = {
    "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "game_x"}},
}
# Requests of five spans each: several times what waits at most (OTEL_BSP_MAX_QUEUE_SIZE, 2,048 spans).
MANY = 4_000
# What spans may take beyond what requests themselves took the first time: 2,048 of them, a batch on its way, and what an allocator keeps.
MOST = 24 << 20


def until(is_so, seconds=30):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.1)


def send(server, many):
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: server.call("Query", QUERY)[0], range(many)))
    assert statuses == [200] * many


@pytest.mark.parametrize("behave", ["gone", "refuse", "hang"])
def test_no_request_waits_for_a_collector(collector, gateway, behave):
    if behave == "gone":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
    else:
        sink = collector(behave)
        url = sink.url
    server = gateway(url, OTEL_BSP_SCHEDULE_DELAY="50")
    server.tables()
    send(server, MANY)
    before = server.memory()
    send(server, MANY)
    assert server.memory() - before < MOST
    if behave != "gone":
        assert sink.bodies, "nothing was sent"
    assert server.stop(60) == 0, server.said()
    # What is lost is said, and no more often than an operator can read.
    said = server.said()
    assert said.count("dropped_span_count=") == 1, said
    if behave != "hang":
        assert said.count("spans do not reach the collector, and are lost") == 1, said
    assert len(said.splitlines()) < 10, said


def test_a_collector_that_comes_back_is_said_to(gateway):
    sink = Collector()
    port = sink.server.server_port
    sink.close()
    server = gateway(f"http://127.0.0.1:{port}", OTEL_BSP_SCHEDULE_DELAY="50")
    server.tables()
    until(lambda: "spans do not reach the collector" in server.said())
    sink = Collector(port=port)
    try:
        until(lambda: server.call("Query", QUERY)[0] == 200 and "spans reach the collector again" in server.said())
        assert server.stop() == 0
        assert sink.spans
    finally:
        sink.close()


@pytest.mark.parametrize("url", ["nonsense", "127.0.0.1:4318", "https://127.0.0.1:4318", "HTTPS://127.0.0.1:4318"])
def test_what_is_no_place_for_spans_is_refused(url):
    serve = [os.environ["HEATSINK_BIN"], "serve", "--listen", "127.0.0.1:0", "--otlp", url]
    refused = subprocess.run(serve, capture_output=True, text=True, timeout=60)
    assert (refused.returncode, "--otlp" in refused.stderr) == (64, True), refused
