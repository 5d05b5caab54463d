"""`heatsink.local()`: what it answers, how soon, and that it ends with its process whatever happens."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import boto3
import heatsink
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

RULES = """
[[rule]]
table = "*"
strategy = "calculated"
shards = 4
"""


def connect(server, **settings):
    return boto3.client(
        "dynamodb", endpoint_url=server.url, region_name=server.region, aws_access_key_id="local",
        aws_secret_access_key="local", config=Config(**settings))


def make_table(client, name="Scores"):
    client.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}])


def put(client, number, name="Scores"):
    client.put_item(TableName=name, Item={"pk": {"S": "game"}, "sk": {"S": f"{number:03}"}})


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ends(pid, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not is_alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_an_item_is_put_and_got():
    with heatsink.local() as server:
        client = connect(server)
        make_table(client)
        put(client, 1)
        got = client.get_item(TableName="Scores", Key={"pk": {"S": "game"}, "sk": {"S": "001"}})
        assert got["Item"]["sk"] == {"S": "001"}
        assert server.endpoint == server.url == f"http://127.0.0.1:{server.port}"
    assert not is_alive(server.pid)


def test_it_answers_within_a_second():
    begin = time.monotonic()
    with heatsink.local() as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            assert connection.recv(4) == b"HTTP"
        took = time.monotonic() - begin
        begin = time.monotonic()
    print(f"first answer after {took * 1000:.0f} ms, stopped in {(time.monotonic() - begin) * 1000:.0f} ms")
    assert took < 1
    assert time.monotonic() - begin < 1


def test_two_servers_do_not_see_each_other():
    with heatsink.local() as one, heatsink.local() as other:
        make_table(connect(one))
        assert connect(other).list_tables()["TableNames"] == []


def test_rules_spread_keys(tmp_path):
    file = tmp_path / "heatsink.toml"
    file.write_text(RULES)
    for rules in (RULES, file, str(file)):
        with heatsink.local(rules=rules) as server:
            client = connect(server)
            make_table(client)
            for number in range(20):
                put(client, number)
            found = client.query(
                TableName="Scores", KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": {"S": "game"}},
                ReturnConsumedCapacity="TOTAL")
            assert [item["sk"]["S"] for item in found["Items"]] == [f"{number:03}" for number in range(20)]
            # Each of the four shards costs half a unit.
            assert found["ConsumedCapacity"]["CapacityUnits"] == 2


def test_rules_of_the_working_directory_are_not_taken(tmp_path, monkeypatch):
    (tmp_path / "heatsink.toml").write_text("nonsense")
    monkeypatch.chdir(tmp_path)
    with heatsink.local() as server:
        assert connect(server).list_tables()["TableNames"] == []


def test_data_outlives_the_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with heatsink.local(data="scores.db") as server:
        make_table(connect(server))
    with heatsink.local(data=tmp_path / "scores.db") as server:
        assert connect(server).list_tables()["TableNames"] == ["Scores"]


def test_partitions_throttle_unless_told_otherwise():
    def refused(server):
        client, count = connect(server, retries={"total_max_attempts": 1}), 0
        make_table(client)
        many = [{"PutRequest": {"Item": {"pk": {"S": "game"}, "sk": {"S": str(n)}, "text": {"S": "x" * 8000}}}} for n in range(25)]
        for _ in range(8):
            try:
                count += len(client.batch_write_item(RequestItems={"Scores": many})["UnprocessedItems"])
            except ClientError:
                count += 1
        return count

    with heatsink.local() as throttling, heatsink.local(partitions=False) as free:
        assert refused(throttling) > 0
        assert refused(free) == 0


def test_an_sdk_finds_it_by_its_environment(monkeypatch):
    with heatsink.local(region="eu-central-1") as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        client = boto3.client("dynamodb")
        make_table(client)
        assert client.describe_table(TableName="Scores")["Table"]["TableArn"].startswith("arn:aws:dynamodb:eu-central-1:")


def test_settings_of_the_caller_are_not_passed_on(monkeypatch):
    monkeypatch.setenv("HEATSINK_LAME_DUCK", "nonsense")
    monkeypatch.setenv("AWS_REGION", "nonsense")
    with heatsink.local() as server:
        assert server.region == "us-east-1"


def test_an_error_has_the_log():
    with pytest.raises(heatsink.NotStarted, match="shards"):
        heatsink.local(rules='[[rule]]\ntable = "*"\nstrategy = "calculated"\n')


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(heatsink.NotStarted, match=f"127.0.0.1:{port}: Address already in use"):
            heatsink.local(port=port)


def test_a_server_that_does_not_start_in_time_is_ended(tmp_path, monkeypatch):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("HEATSINK_BINARY", str(slow))
    with pytest.raises(heatsink.NotStarted, match="no answer within 0.3 s"):
        heatsink.local(timeout=0.3)


def test_a_binary_that_does_not_run_here_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HEATSINK_BINARY", str(tmp_path / "none"))
    with pytest.raises(heatsink.MissingBinary, match="no file"):
        heatsink.local()
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    monkeypatch.setenv("HEATSINK_BINARY", str(broken))
    with pytest.raises(heatsink.NotStarted, match="does not run here"):
        heatsink.local()


def test_it_outlives_the_thread_that_started_it():
    started = []
    thread = threading.Thread(target=lambda: started.append(heatsink.local()))
    thread.start()
    thread.join()
    with started[0] as server:
        time.sleep(0.3)
        assert connect(server).list_tables()["TableNames"] == []


def test_stop_can_be_called_again_and_by_several_threads():
    server = heatsink.local()
    threads = [threading.Thread(target=server.stop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.stop()
    assert not is_alive(server.pid)


def test_an_idle_connection_does_not_delay_its_end():
    server = heatsink.local()
    connect(server).list_tables()
    begin = time.monotonic()
    server.stop()
    assert time.monotonic() - begin < 1


def owner(program):
    """A process that starts servers, and prints the process id of each."""
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_its_owner_is_killed(how):
    process = owner("""
        import heatsink, threading, time
        threading.Thread(target=lambda: print(heatsink.local().pid, flush=True)).start()
        time.sleep(60)
    """)
    pid = int(process.stdout.readline())
    assert is_alive(pid)
    process.send_signal(how)
    process.wait()
    assert ends(pid)


def test_it_ends_when_its_owner_just_returns():
    process = owner("import heatsink; print(heatsink.local().pid, flush=True)")
    pid = int(process.stdout.readline())
    process.wait()
    assert ends(pid)


def test_it_ends_though_forked_children_of_its_owner_live_on():
    process = owner("""
        import heatsink, os, time
        server = heatsink.local()
        if os.fork() == 0:
            os.setsid()
            server.stop()  # not its own
            time.sleep(3)
            os._exit(0)
        print(server.pid, flush=True)
        time.sleep(60)
    """)
    pid = int(process.stdout.readline())
    time.sleep(0.3)
    assert is_alive(pid)
    process.kill()
    process.wait()
    assert ends(pid, 2)


def ask(url, names):
    names.put(boto3.client("dynamodb", endpoint_url=url, region_name="us-east-1", aws_access_key_id="local",
                           aws_secret_access_key="local").list_tables()["TableNames"])


def test_processes_of_a_test_can_use_it():
    context = multiprocessing.get_context("fork")
    with heatsink.local() as server:
        make_table(connect(server))
        names = context.Queue()
        children = [context.Process(target=ask, args=(server.url, names)) for _ in range(2)]
        for child in children:
            child.start()
        assert [names.get(timeout=20) for _ in children] == [["Scores"]] * 2
        for child in children:
            child.join()
        assert connect(server).list_tables()["TableNames"] == ["Scores"]
