"""Servers of a program's own, and load against them: what the examples and the tests of hand-sharded and signed tables stand on.

HEATSINK_BIN names the built binary. Every server listens on a free loopback port and is stopped at the end.
"""

import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

KEYS = {"aws_access_key_id": "local", "aws_secret_access_key": "local", "region_name": "us-east-1"}
# Those of clients/signed.toml.
SECRETS = {"ADMIN_SECRET": "admin/+secret", "ADMIN_FORMER": "former", "TEAM_SECRET": "team", "TEAM_TOKEN": "token/+=="}
THROTTLES = ("ProvisionedThroughputExceededException", "ThrottlingException")


def certificates(folder):
    """A CA of the program's own, and a certificate of 127.0.0.1 by it: `ca.pem`, `server.pem`, `server.key`."""
    def make(name, *more):
        subprocess.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN=heatsink {name}", "-keyout", f"{name}.key", "-out", f"{name}.pem", *more,
        ], cwd=folder, check=True, capture_output=True)

    make("ca", "-addext", "keyUsage=critical,keyCertSign")
    make("server", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE",
         "-addext", "subjectAltName=IP:127.0.0.1")


@contextmanager
def serving(rules=None, upstream=None, tls=None):
    """`heatsink serve` under the rules of a file, in memory behind partitions or before an endpoint; gives its endpoint.

    Over TLS with the `certificates` of a folder. Without the quotas of a new account: the tables here are as large as the accounts' are.
    """
    command = [os.environ["HEATSINK_BIN"], "serve", "--listen", "127.0.0.1:0", "--output", "json"]
    command += ["--rules", str(rules)] if rules else []
    command += ["--upstream", upstream] if upstream else ["--quotas", "off"]
    command += ["--tls-cert", str(tls / "server.pem"), "--tls-key", str(tls / "server.key")] if tls else []
    environment = {
        **os.environ, **SECRETS, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true", "HEATSINK_LAME_DUCK": "0",
    }
    server = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    try:
        yield json.loads(server.stdout.readline())["endpoint"]
    finally:
        server.terminate()
        server.wait(timeout=60)


def connect(endpoint, kind=boto3.resource, attempts=4):
    """boto3 at the endpoint. With `attempts=1` a throttled request is not sent again."""
    retries = {"total_max_attempts": attempts, "mode": "standard"}
    return kind("dynamodb", endpoint_url=endpoint, config=Config(retries=retries, max_pool_connections=32), **KEYS)


def table(endpoint, name, partition, sort=None, sort_type="S", writes=40_000):
    """Makes a table provisioned so that it has 80 partitions, or fewer."""
    keys = [(partition, "HASH", "S")] + ([(sort, "RANGE", sort_type)] if sort else [])
    return connect(endpoint).create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind, _ in keys],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": of} for key, _, of in keys],
        ProvisionedThroughput={"ReadCapacityUnits": 3 * writes, "WriteCapacityUnits": writes},
    )


def offer(rate, seconds, send, workers=16):
    """Calls `send(number)` at even distances. Returns the numbers that were accepted, ascending, and the share that was throttled."""
    total, begin = rate * seconds, time.monotonic()
    numbers, lock, accepted = iter(range(total)), threading.Lock(), []

    def work():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            time.sleep(max(0, begin + number / rate - time.monotonic()))
            try:
                send(number)
            except ClientError as error:
                if error.response["Error"]["Code"] not in THROTTLES:
                    raise
            else:
                accepted.append(number)

    with ThreadPoolExecutor(workers) as pool:
        for worker in [pool.submit(work) for _ in range(workers)]:
            worker.result()
    return sorted(accepted), 1 - len(accepted) / total
