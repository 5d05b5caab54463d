"""Gives every key of every table of a server other shards, 1 -> 4 -> 2 -> 1 -> 4 and so on, until it is told to end (SIGTERM).

Each table is moved by itself, as fast as its reshards end. At the end it says how many keys got which number of shards, and what refused to move and
why. It is a fault if a command breaks, and if nothing moved. HEATSINK_BIN names the built binary, HEATSINK_ENDPOINT the server.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from stage import connect

ENDPOINT = os.environ["HEATSINK_ENDPOINT"]
COUNTS = (4, 2, 1)
# What a command may take at once.
KEYS = 100
# Done; some keys stopped, as those of a table that is dropped; refused; no server any more.
CODES = (0, 1, 64, 69)


class Mover:
    def __init__(self):
        self.client, self.over = connect(ENDPOINT, kind=boto3.client), threading.Event()
        self.moved, self.refused, self.faults, self.tables = Counter(), Counter(), [], {}

    def work(self):
        while not self.over.is_set():
            try:
                names = self.client.list_tables()["TableNames"]
            except (BotoCoreError, ClientError):
                names = []
            for name in names:
                if name not in self.tables or not self.tables[name].is_alive():
                    self.tables[name] = threading.Thread(target=self.table, args=(name,), daemon=True)
                    self.tables[name].start()
            self.over.wait(0.05)
        for thread in self.tables.values():
            thread.join(60)

    def table(self, name):
        """Moves the keys of one table until it is gone, or cannot be moved."""
        turn = 0
        while not self.over.is_set():
            try:
                keys = self.keys(name)
            except (BotoCoreError, ClientError):
                return
            if keys and not self.reshard(name, keys, COUNTS[turn % len(COUNTS)]):
                return
            turn += bool(keys)
            self.over.wait(0.05)

    def keys(self, name):
        """Some logical keys of a table, as commands take them."""
        partition = next(key["AttributeName"] for key in self.client.describe_table(TableName=name)["Table"]["KeySchema"] if key["KeyType"] == "HASH")
        answer = self.client.scan(TableName=name, ProjectionExpression="#p", ExpressionAttributeNames={"#p": partition})
        found = {next(iter(item[partition].items())) for item in answer["Items"]}
        return sorted(base64.b64encode(value).decode() if of == "B" else value for of, value in found)[:KEYS]

    def reshard(self, name, keys, shards):
        """Whether it moved them."""
        command = [os.environ["HEATSINK_BIN"], "reshard", "start", "--server", ENDPOINT.removeprefix("http://"), "--shards", str(shards)]
        command += ["--yes", "--wait", "--output", "json", "--", name, *keys]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            self.moved[shards] += len(keys)
            return True
        said = done.stderr.strip().splitlines()[-1:] or [""]
        if done.returncode not in CODES or "panicked" in done.stderr:
            self.faults.append(f"{name}: exit {done.returncode}: {done.stderr[-500:]}")
        self.refused[reason(said[0], name)] += 1
        # What is refused for good is not asked for again; a move that stopped is.
        time.sleep(0.2)
        return done.returncode == 1


def reason(line, name):
    try:
        told = json.loads(line)
        line = told["error"]["message"] if isinstance(told.get("error"), dict) else str(told.get("error") or told.get("message") or told)
    except ValueError:
        pass
    return line.replace(name, "T")[:160]


def main():
    mover = Mover()
    signal.signal(signal.SIGTERM, lambda *_: mover.over.set())
    mover.work()
    print("keys moved: " + (", ".join(f"{number} to {shards}" for shards, number in sorted(mover.moved.items(), reverse=True)) or "none"))
    for why, times in mover.refused.most_common():
        print(f"not moved, {times} times: {why}")
    for fault in mover.faults:
        print(f"FAULT {fault}")
    return 1 if mover.faults or set(mover.moved) != set(COUNTS) else 0


if __name__ == "__main__":
    sys.exit(main())
