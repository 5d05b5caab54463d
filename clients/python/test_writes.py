"""Puts, gets, updates, deletes and batches, with every way to ask for what was there."""

from decimal import Decimal

import pytest
from boto3.dynamodb.conditions import Attr
from botocore.exceptions import ClientError

from conftest import STORE

KEY = {"pk": "game_x", "sk": "00000042#ann"}


def refused(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response


def test_put_overwrites_and_returns_the_old(table):
    assert "Attributes" not in table.put_item(Item={**KEY, "v": 1}, ReturnValues="ALL_OLD")
    assert table.put_item(Item={**KEY, "v": 2}, ReturnValues="ALL_OLD")["Attributes"] == {**KEY, "v": 1}
    assert "Attributes" not in table.put_item(Item={**KEY, "v": 3})
    assert table.get_item(Key=KEY)["Item"] == {**KEY, "v": 3}
    assert table.get_item(Key=KEY, ConsistentRead=True, ProjectionExpression="v")["Item"] == {"v": 3}
    assert "Item" not in table.get_item(Key={**KEY, "sk": "other"})


def test_every_type_comes_back_as_it_was(client, table):
    item = {
        "pk": {"S": "types"}, "sk": {"S": "1"},
        "n": {"N": "-12.5"}, "big": {"N": "12345678901234567890123456789012345678"}, "b": {"B": b"\x00\xff"},
        "t": {"BOOL": True}, "f": {"BOOL": False}, "z": {"NULL": True}, "e": {"S": ""},
        "l": {"L": [{"N": "1"}, {"S": "two"}, {"L": []}]}, "m": {"M": {"deep": {"M": {"er": {"S": "é😀"}}}}},
    }
    if STORE != "embedded":
        del item["e"]  # Servers from before 2020 refuse empty strings.
    client.put_item(TableName=table.name, Item=item)
    assert client.get_item(TableName=table.name, Key={"pk": item["pk"], "sk": item["sk"]})["Item"] == item
    table.put_item(Item={**KEY, "ss": {"a", "b"}, "ns": {Decimal(1), Decimal(2)}, "bs": {b"x", b"y"}})
    got = table.get_item(Key=KEY)["Item"]
    assert (got["ss"], got["ns"]) == ({"a", "b"}, {Decimal(1), Decimal(2)})
    assert {bytes(value) for value in got["bs"]} == {b"x", b"y"}


def test_conditional_puts(table):
    first = Attr("pk").not_exists()
    table.put_item(Item={**KEY, "v": 1}, ConditionExpression=first)
    error = refused(table.put_item, Item={**KEY, "v": 2}, ConditionExpression=first)
    assert error["Error"]["Code"] == "ConditionalCheckFailedException"
    assert error["Error"]["Message"] == "The conditional request failed"
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 400
    # The condition may look at the keys themselves: they read as the application wrote them.
    table.put_item(Item={**KEY, "v": 3}, ConditionExpression=Attr("pk").eq("game_x") & Attr("v").eq(1))
    table.put_item(
        Item={**KEY, "v": 4}, ConditionExpression=Attr("pk").begins_with("game") & Attr("sk").contains("ann"))
    table.put_item(Item={**KEY, "v": 5}, ConditionExpression=Attr("pk").size().eq(6))
    assert table.get_item(Key=KEY)["Item"]["v"] == 5
    assert refused(table.put_item, Item={**KEY, "v": 6}, ConditionExpression=Attr("pk").eq("game_x#~1"))
    assert table.get_item(Key=KEY)["Item"]["v"] == 5


def test_a_failed_condition_can_show_the_item(client, table):
    table.put_item(Item={**KEY, "v": 1})
    key = {"pk": {"S": KEY["pk"]}, "sk": {"S": KEY["sk"]}}
    for call, more in [
        (client.put_item, {"Item": {**key, "v": {"N": "9"}}}),
        (client.delete_item, {"Key": key}),
        (client.update_item, {"Key": key, "UpdateExpression": "REMOVE v"}),
    ]:
        error = refused(
            call, TableName=table.name, ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD", **more)
        assert error["Error"]["Code"] == "ConditionalCheckFailedException"
        assert error["Item"] == {**key, "v": {"N": "1"}}


def test_update_with_each_kind_of_return_value(table):
    def update(expression, returned, **values):
        answer = table.update_item(
            Key=KEY, UpdateExpression=expression, ReturnValues=returned,
            **({"ExpressionAttributeValues": {f":{k}": v for k, v in values.items()}} if values else {}))
        return answer.get("Attributes")

    assert update("SET a = :a, b = :b", "ALL_NEW", a=1, b=2) == {**KEY, "a": 1, "b": 2}
    assert update("SET a = a + :n", "UPDATED_NEW", n=10) == {"a": 11}
    assert update("SET a = a - :n", "UPDATED_OLD", n=1) == {"a": 11}
    assert update("ADD b :n REMOVE a", "ALL_OLD", n=5) == {**KEY, "a": 10, "b": 2}
    assert update("SET l = list_append(if_not_exists(l, :e), :x)", "UPDATED_NEW", e=[], x=["x"]) == {"l": ["x"]}
    assert update("SET l[0] = :y", "NONE", y="y") is None
    assert table.get_item(Key=KEY)["Item"] == {**KEY, "b": 7, "l": ["y"]}


def test_update_makes_the_item_and_conditions_hold_it_back(table):
    error = refused(
        table.update_item, Key=KEY, UpdateExpression="SET v = :v", ExpressionAttributeValues={":v": 1},
        ConditionExpression=Attr("pk").exists())
    assert error["Error"]["Code"] == "ConditionalCheckFailedException"
    assert "Item" not in table.get_item(Key=KEY)
    table.update_item(Key=KEY, UpdateExpression="ADD hits :one", ExpressionAttributeValues={":one": 1})
    table.update_item(Key=KEY, UpdateExpression="ADD hits :one", ExpressionAttributeValues={":one": 1})
    # An attribute may take the key's own value: it must read as the logical one.
    table.update_item(Key=KEY, UpdateExpression="SET copied = pk")
    assert table.get_item(Key=KEY)["Item"] == {**KEY, "hits": 2, "copied": KEY["pk"]}


def test_the_key_cannot_be_updated(table):
    error = refused(
        table.update_item, Key=KEY, UpdateExpression="SET pk = :v", ExpressionAttributeValues={":v": "other"})
    assert error["Error"]["Code"] == "ValidationException"
    assert "This attribute is part of the key" in error["Error"]["Message"]


def test_delete(table):
    assert "Attributes" not in table.delete_item(Key=KEY, ReturnValues="ALL_OLD")
    table.put_item(Item={**KEY, "v": 1})
    error = refused(table.delete_item, Key=KEY, ConditionExpression=Attr("v").eq(2))
    assert error["Error"]["Code"] == "ConditionalCheckFailedException"
    gone = table.delete_item(Key=KEY, ConditionExpression=Attr("v").eq(1), ReturnValues="ALL_OLD")
    assert gone["Attributes"] == {**KEY, "v": 1}
    assert "Item" not in table.get_item(Key=KEY)


def batch_write(client, table, requests):
    """Sends requests 25 at a time until none is left over."""
    for start in range(0, len(requests), 25):
        left = {table: requests[start : start + 25]}
        for _ in range(20):
            left = client.batch_write_item(RequestItems=left).get("UnprocessedItems", {})
            if not left:
                break
        assert not left


def test_batches_put_get_and_delete(client, table):
    keys = [{"pk": {"S": f"game_{n % 3}"}, "sk": {"S": f"{n:04d}"}} for n in range(100)]
    batch_write(client, table.name, [{"PutRequest": {"Item": {**k, "v": {"S": k["sk"]["S"]}}}} for k in keys])
    found = []
    left = {table.name: {"Keys": keys, "ProjectionExpression": "#v", "ExpressionAttributeNames": {"#v": "v"}}}
    while left:
        answer = client.batch_get_item(RequestItems=left)
        found += answer["Responses"].get(table.name, [])
        left = answer["UnprocessedKeys"]
    assert sorted(item["v"]["S"] for item in found) == [f"{n:04d}" for n in range(100)]
    assert all(set(item) == {"v"} for item in found)

    batch_write(client, table.name, [{"DeleteRequest": {"Key": k}} for k in keys[:50]])
    answer = client.batch_get_item(RequestItems={table.name: {"Keys": keys, "ConsistentRead": True}})
    assert answer["UnprocessedKeys"] == {}
    key_of = lambda item: (item["pk"]["S"], item["sk"]["S"])
    assert sorted(map(key_of, answer["Responses"][table.name])) == sorted(map(key_of, keys[50:]))


def test_batches_refuse_what_dynamodb_refuses(client, table):
    key = {"pk": {"S": "g"}, "sk": {"S": "1"}}
    twice = [{"PutRequest": {"Item": key}}, {"PutRequest": {"Item": key}}]
    error = refused(client.batch_write_item, RequestItems={table.name: twice})
    assert error["Error"]["Code"] == "ValidationException"
    assert error["Error"]["Message"] == "Provided list of item keys contains duplicates"
    error = refused(client.batch_get_item, RequestItems={table.name: {"Keys": [key, key]}})
    assert error["Error"]["Message"] == "Provided list of item keys contains duplicates"
    many = [{"PutRequest": {"Item": {**key, "sk": {"S": str(n)}}}} for n in range(26)]
    error = refused(client.batch_write_item, RequestItems={table.name: many})
    assert error["Error"]["Code"] == "ValidationException"
    assert client.scan(TableName=table.name, Select="COUNT")["Count"] == 0
