"""A table in memory, as far as the clients of `reshard` use one, which can be told to do wrong in one way."""

import zlib
from types import SimpleNamespace

from botocore.exceptions import ClientError, ReadTimeoutError


class Table:
    """A table in memory, as far as the clients use one. `plant` does wrong in one way."""

    def __init__(self, plant=None):
        self.items, self.tokens, self.records, self.plant, self.calls = {}, set(), [], plant, 0

    def planted(self, what):
        self.calls += 1
        return self.plant == what and self.calls % 7 == 0

    def change(self, place, action):
        condition, there = action.get("ConditionExpression", ""), place in self.items
        if condition == "attribute_exists(pk)" and not there or condition == "attribute_not_exists(pk)" and there:
            if not self.planted("condition ignored"):
                raise refused("ConditionalCheckFailedException")
        before = self.items.get(place)
        if "Item" in action:
            self.items[place] = action["Item"]
        elif "UpdateExpression" in action:
            item, given = dict(self.items.get(place, action["Key"])), action["ExpressionAttributeValues"]
            if action["UpdateExpression"].startswith("SET"):
                item.update(v=given[":v"], g=given[":g"])
            else:
                item["n"] = {"N": str(int(item.get("n", {"N": "0"})["N"]) + 1)}
            self.items[place] = item
        else:
            self.items.pop(place, None)
        self.record(place, before, self.items.get(place))

    def record(self, place, before, after):
        """What the stream shows of a change. Now and then the item moves after it, which shows it inserted and removed."""
        if before == after:
            return
        kinds = ["REMOVE" if after is None else "MODIFY" if before else "INSERT"]
        kinds += ["INSERT", "REMOVE"] if after and len(self.records) % 5 == 0 else []
        for kind in kinds:
            image = {"NewImage": after} if kind != "REMOVE" else {}
            keys = {"pk": {"S": place[0]}, "sk": {"S": place[1]}}
            self.records.append({"eventName": kind, "dynamodb": {"Keys": keys, **image, "SequenceNumber": str(len(self.records) + 1)}})

    def put_item(self, Item, **more):
        if not self.planted("put lost"):
            self.change(place(Item), {"Item": Item, **more})

    def update_item(self, Key, **more):
        self.change(place(Key), {"Key": Key, **more})
        return {"Attributes": self.items[place(Key)]}

    def delete_item(self, Key, **_):
        old = self.items.get(place(Key))
        if not self.planted("delete lost"):
            self.change(place(Key), {})
        return {"Attributes": old} if old else {}

    def batch_write_item(self, RequestItems, **_):
        for request in RequestItems["Moves"]:
            self.change(*change_of(request["PutRequest"] if "PutRequest" in request else request["DeleteRequest"]))
        return {}

    def transact_write_items(self, TransactItems, ClientRequestToken, **_):
        if ClientRequestToken in self.tokens and self.plant != "token forgotten":
            return
        self.tokens.add(ClientRequestToken)
        before, records = dict(self.items), list(self.records)
        try:
            for action in TransactItems:
                self.change(*change_of(next(iter(action.values()))))
        except ClientError:
            self.items, self.records = before, records
            raise refused("TransactionCanceledException", [{"Code": "ConditionalCheckFailed"}]) from None
        if len(self.tokens) % 3 == 0:
            raise ReadTimeoutError(endpoint_url="nowhere")  # done, and nobody is told

    def get_item(self, Key, **_):
        return {"Item": self.items[place(Key)]} if place(Key) in self.items else {}

    def batch_get_item(self, RequestItems):
        return {"Responses": {"Moves": [self.items[place(one)] for one in RequestItems["Moves"]["Keys"] if place(one) in self.items]}}

    def transact_get_items(self, TransactItems):
        return {"Responses": [self.get_item(one["Get"]["Key"]) for one in TransactItems]}

    def query(self, Limit, ScanIndexForward, ExpressionAttributeValues, ExclusiveStartKey=None, IndexName=None, **_):
        value, digit = ExpressionAttributeValues[":k"]["S"], ExpressionAttributeValues.get(":d", {"S": ""})["S"]
        partition, *order = {None: ("pk", "sk"), "by-value": ("pk", "v", "sk"), "by-group": ("g", "v", "pk", "sk")}[IndexName]
        rows = [item for item in self.items.values() if item.get(partition) == {"S": value} and all(name in item for name in order)]
        return self.page([row for row in rows if row["sk"]["S"].startswith(digit)], order, Limit, ExclusiveStartKey, ScanIndexForward)

    def scan(self, Limit=1000, ExclusiveStartKey=None, Segment=0, TotalSegments=1, IndexName=None, **_):
        rows = [item for item in self.items.values() if zlib.crc32(item["sk"]["S"].encode()) % TotalSegments == Segment]
        rows = [item for item in rows if not IndexName or "v" in item]
        return self.page(rows, ("pk", "sk"), Limit, ExclusiveStartKey, True)

    def page(self, rows, order, limit, after, forward):
        place = lambda item: [item[name]["S"] for name in order]  # noqa: E731
        rows = sorted(rows, key=place, reverse=not forward)
        if after:
            rows = [row for row in rows if (place(row) > place(after)) == forward and place(row) != place(after)]
        told = {"Items": rows[:limit]}
        if len(rows) > limit:
            told["LastEvaluatedKey"] = {name: told["Items"][-1][name] for name in {"pk", "sk", *order}}
        if self.planted("page out of order"):
            told["Items"].reverse()
        if self.planted("item left out"):
            told["Items"] = told["Items"][1:]
        if self.planted("item shown twice"):
            told["Items"] = told["Items"][:1] + told["Items"]
        return told

    # Of the SDK's client.

    def get_paginator(self, _):
        return SimpleNamespace(paginate=lambda **_: [{"Items": list(self.items.values())}])

    # The stream's own operations.

    def list_streams(self, **_):
        return {"Streams": [{"StreamArn": "stream"}]}

    def describe_stream(self, **_):
        return {"StreamDescription": {"Shards": [{"ShardId": "shard"}]}}

    def get_shard_iterator(self, SequenceNumber="0", **_):
        return {"ShardIterator": SequenceNumber}

    def get_records(self, ShardIterator):
        page = self.records[int(ShardIterator):][:50]
        end = str(int(ShardIterator) + len(page))
        if self.planted("record left out"):
            page = page[1:]
        if self.planted("records out of order"):
            page = page[::-1]
        return {"Records": page, "NextShardIterator": end}


def place(item):
    return item["pk"]["S"], item["sk"]["S"]


def change_of(action):
    return place(action.get("Item") or action["Key"]), action


def refused(code, reasons=()):
    told = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": 400}, "CancellationReasons": list(reasons)}
    return ClientError(told, "Anything")
