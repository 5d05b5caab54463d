"""The schedule of troubles replays by its seed; the clients of `reshard` take what is right, and find each fault that is planted."""

import random
from itertools import islice
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from fence.cluster import SHORT
from fence.oracle import Oracle
from fence.resharding.items import Client
from fence.resharding.readers import Reader
from fence.resharding.schedule import STAND_STILL, schedule


class Table:
    """A table in memory, as far as the clients use one. `plant` does wrong in one way."""

    def __init__(self, plant=None):
        self.items, self.tokens, self.plant, self.calls = {}, set(), plant, 0

    def planted(self, what):
        self.calls += 1
        return self.plant == what and self.calls % 7 == 0

    def change(self, place, action):
        condition, there = action.get("ConditionExpression", ""), place in self.items
        if condition == "attribute_exists(pk)" and not there or condition == "attribute_not_exists(pk)" and there:
            if not self.planted("condition ignored"):
                raise refused("ConditionalCheckFailedException")
        if "Item" in action:
            self.items[place] = action["Item"]
        elif "UpdateExpression" in action:
            item = dict(self.items.get(place, action["Key"]))
            if action["UpdateExpression"].startswith("SET"):
                item["v"] = action["ExpressionAttributeValues"][":v"]
            else:
                item["n"] = {"N": str(int(item.get("n", {"N": "0"})["N"]) + 1)}
            self.items[place] = item
        else:
            self.items.pop(place, None)

    def put_item(self, Item, **more):
        if not self.planted("put lost"):
            self.change(place(Item), {"Item": Item, **more})

    def update_item(self, Key, **more):
        self.change(place(Key), {"Key": Key, **more})
        return {"Attributes": self.items[place(Key)]}

    def delete_item(self, Key, **_):
        old = self.items.get(place(Key))
        if not self.planted("delete lost"):
            self.items.pop(place(Key), None)
        return {"Attributes": old} if old else {}

    def batch_write_item(self, RequestItems):
        for request in RequestItems["Moves"]:
            self.change(*change_of(request["PutRequest"] if "PutRequest" in request else request["DeleteRequest"]))
        return {}

    def transact_write_items(self, TransactItems, ClientRequestToken):
        if ClientRequestToken in self.tokens and self.plant != "token forgotten":
            return
        self.tokens.add(ClientRequestToken)
        before = dict(self.items)
        try:
            for action in TransactItems:
                self.change(*change_of(next(iter(action.values()))))
        except ClientError:
            self.items = before
            raise refused("TransactionCanceledException", [{"Code": "ConditionalCheckFailed"}]) from None
        if len(self.tokens) % 3 == 0:
            raise ReadTimeoutError(endpoint_url="nowhere")  # done, and nobody is told

    def get_item(self, Key, **_):
        return {"Item": self.items[place(Key)]} if place(Key) in self.items else {}

    def batch_get_item(self, RequestItems):
        return {"Responses": {"Moves": [self.items[place(one)] for one in RequestItems["Moves"]["Keys"] if place(one) in self.items]}}

    def transact_get_items(self, TransactItems):
        return {"Responses": [self.get_item(one["Get"]["Key"]) for one in TransactItems]}

    def query(self, Limit, ScanIndexForward, ExpressionAttributeValues, ExclusiveStartKey=None, **_):
        pk, digit = ExpressionAttributeValues[":k"]["S"], ExpressionAttributeValues.get(":d", {"S": ""})["S"]
        rows = sorted(sk for of, sk in self.items if of == pk and sk.startswith(digit))
        rows = rows if ScanIndexForward else rows[::-1]
        if ExclusiveStartKey:
            after = ExclusiveStartKey["sk"]["S"]
            rows = [sk for sk in rows if (sk > after if ScanIndexForward else sk < after)]
        page = rows[:Limit]
        told = {"Items": [self.items[pk, sk] for sk in page]}
        if len(rows) > Limit:
            told["LastEvaluatedKey"] = {"pk": {"S": pk}, "sk": {"S": page[-1]}}
        if self.planted("page out of order"):
            told["Items"].reverse()
        if self.planted("item left out"):
            told["Items"] = told["Items"][1:]
        if self.planted("item shown twice"):
            told["Items"] = told["Items"][:1] + told["Items"]
        return told

    def scan(self, **_):
        return {"Items": list(self.items.values())}


def place(item):
    return item["pk"]["S"], item["sk"]["S"]


def change_of(action):
    return place(action.get("Item") or action["Key"]), action


def refused(code, reasons=()):
    told = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": 400}, "CancellationReasons": list(reasons)}
    return ClientError(told, "Anything")


def play(plant):
    """Faults by kind after some two thousand calls of a client and a reader."""
    oracle, table, rng = Oracle(), Table(plant), random.Random(1)
    stopping = SimpleNamespace(is_set=lambda: False)
    stage = SimpleNamespace(oracle=oracle, cluster=SimpleNamespace(seed=1), clients=SimpleNamespace(rest=lambda _: None, stopping=stopping))
    client = Client(stage, "Moves", 0, [table, table], ["hot", "calm"], partiql=False)
    reader = Reader(stage, "Moves", 1, [table, table], ["hot", "calm"], lambda *_: False)
    for _ in range(1000):
        client.act(rng)
        reader.act(rng)
    return {kind for kind, times in oracle.faults.items() if times}


def test_what_is_right_is_taken():
    assert play(None) == set()


@pytest.mark.parametrize("plant, kind", [
    ("put lost", "lost"), ("delete lost", "lost"), ("condition ignored", "accepted"), ("token forgotten", "phantom"),
    ("page out of order", "disordered"), ("item left out", "lost"), ("item shown twice", "doubled"),
])
def test_what_is_planted_is_found(plant, kind):
    assert kind in play(plant)


def test_a_seed_gives_the_same_schedule_and_reaches_past_every_bound():
    one, again, other = (list(islice(schedule(random.Random(seed), SHORT, 3), 200)) for seed in (5, 5, 6))
    assert one == again != other
    lengths = [trouble.length for trouble in one if trouble.kind == STAND_STILL]
    assert min(lengths) < 0.3 and max(lengths) > SHORT.lease
