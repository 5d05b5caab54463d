"""A `heatsink serve --otlp` over the embedded store, and requests to it as an SDK sends them, without one.

Not here: collectors (collector.py).
"""

import http.client
import json
import os
import signal
import subprocess
import threading

RULES = '[[rule]]\ntable = "Scores"\nstrategy = "calculated"\nshards = 4\n'
# A request that waits for a collector waits longer than this.
PATIENCE = 10


def table(name, *keys):
    kinds = zip(keys, ["HASH", "RANGE"])
    return {
        "TableName": name, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
        "KeySchema": [{"AttributeName": key, "KeyType": kind} for key, kind in kinds],
    }


class Gateway:
    def __init__(self, place, otlp, **environment):
        rules = place / "heatsink.toml"
        rules.write_text(RULES)
        self.log = open(place / "log", "w+")
        self.process = subprocess.Popen(
            [os.environ["HEATSINK_BIN"], "serve", "--listen", "127.0.0.1:0", "--rules", rules, "--partitions", "off",
             "--otlp", otlp, "--output", "json"],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env={**os.environ, **environment},
        )
        banner = self.process.stdout.readline()
        assert banner, self.said()
        self.address = json.loads(banner)["endpoint"].removeprefix("http://")
        self.local = threading.local()

    def call(self, operation, body, **headers):
        """Status and answer."""
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        self.local.connection.request("POST", "/", json.dumps(body), {
            "content-type": "application/x-amz-json-1.0", "x-amz-target": f"DynamoDB_20120810.{operation}",
            "x-amz-date": "20260101T000000Z",
            "authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
            **headers,
        })
        answer = self.local.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def tables(self):
        for definition in [table("Scores", "pk", "sk"), table("Plain", "pk")]:
            status, answer = self.call("CreateTable", definition)
            assert status == 200, answer

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self, seconds=30):
        """Ends it as a supervisor does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
