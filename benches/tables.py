"""Tables that tests make and drop: the embedded store against DynamoDB Local, which `clients/local-judge` downloads."""

import http.client
import json
import statistics
import time

from machinery import ROOT, Bench, free_port, processor_seconds, ratio, say

JAR = ROOT / "clients/upstream/package/aws_dynamodb_local"
TABLES = 200


def local(bench: Bench):
    if not JAR.exists():
        raise SystemExit("DynamoDB Local is missing: clients/local-judge 1 downloads it")
    port = free_port()
    return bench.start("dynamodb-local", [
        "java", "-XX:+UseSerialGC", f"-Djava.library.path={JAR}/DynamoDBLocal_lib", "-jar", JAR / "DynamoDBLocal.jar", "-inMemory", "-sharedDb",
        "-port", port], port)


class Client:
    """One connection that is kept. No SDK: what is measured is the server's."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, operation, **request):
        self.connection.request("POST", "/", json.dumps(request), {
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}", "X-Amz-Date": "20260101T000000Z",
            "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
                             f"SignedHeaders=host;x-amz-date;x-amz-target, Signature={'0' * 64}"})
        answer = self.connection.getresponse()
        body = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit(f"{operation}: {answer.status} {body}")
        return body


def suite(port):
    """What 200 tests do: each makes a table, writes an item, reads it, and drops the table. In seconds."""
    client, begun = Client(port), time.monotonic()
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    for number in range(TABLES):
        table = f"Test{number}"
        client.ask("CreateTable", TableName=table, BillingMode="PAY_PER_REQUEST",
                   KeySchema=[{"AttributeName": n, "KeyType": k} for n, k in (("pk", "HASH"), ("sk", "RANGE"))],
                   AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk")])
        client.ask("PutItem", TableName=table, Item=key)
        if client.ask("GetItem", TableName=table, Key=key).get("Item") != key:
            raise SystemExit(f"{table} has lost its item")
        client.ask("DeleteTable", TableName=table)
    if client.ask("ListTables")["TableNames"]:
        raise SystemExit("tables are left")
    return time.monotonic() - begun


def run(bench):
    ports = {"heatsink": bench.heatsink_serve("--partitions", "on"), "sharded": bench.heatsink_serve(rules=RULES), "local": local(bench)}
    found, spent = {name: [] for name in ports}, {name: 0.0 for name in ports}
    for turn in range(bench.rounds + 1):
        for name, port in ports.items():
            before = processor_seconds(bench.servers[port])
            took = suite(port)
            say(f"  {name}: {took:.2f} s" + ("" if turn else ", not counted"))
            if turn:
                found[name].append(took)
                spent[name] += (processor_seconds(bench.servers[port]) - before) / bench.rounds
    figures = "; ".join(f"{name} {statistics.median(each):.2f} s, {spent[name]:.2f} s of CPU" for name, each in found.items())
    for name, what in (("heatsink", "200 tables made, used and dropped"), ("sharded", "the same, each key over ten shards")):
        middle, low, high = ratio(found[name], found["local"])
        yield f"{what}, embedded store ÷ DynamoDB Local", "≤ 0.2", f"{middle:.2f} ({low:.2f} to {high:.2f})", figures


RULES = '[[rule]]\ntable = "*"\nstrategy = "calculated"\nshards = 10\n'
