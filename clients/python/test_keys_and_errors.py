"""Keys that are numbers, bytes or any Unicode; and the errors an application may see."""

import random

import pytest
from botocore.exceptions import ClientError

from conftest import make_table


def ask(client, table, forward, **more):
    """Every item of partition `p` by its sort key, in pages of four."""
    got = []
    query = {
        "TableName": table, "KeyConditionExpression": "pk = :p", "ScanIndexForward": forward, "Limit": 4, **more}
    while True:
        page = client.query(**query)
        got += page["Items"]
        if "LastEvaluatedKey" not in page:
            return [item["sk"] for item in got]
        query["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def test_numbers_sort_by_value(client):
    numbers = ["-99999999999999999999", "-10", "-9.5", "-0.001", "0", "0.001", "1.5", "2", "10", "10.25",
               "123456789012345678901234567890", "99999999999999999999999999999999999999"]
    make_table(client, "Numbers", ("pk", "sk"), {"pk": "S", "sk": "N"})
    shuffled = random.Random(1).sample(numbers, len(numbers))
    for number in shuffled:
        client.put_item(TableName="Numbers", Item={"pk": {"S": "p"}, "sk": {"N": number}})
    values = {":p": {"S": "p"}}
    assert ask(client, "Numbers", True, ExpressionAttributeValues=values) == [{"N": n} for n in numbers]
    assert ask(client, "Numbers", False, ExpressionAttributeValues=values) == [{"N": n} for n in numbers[::-1]]
    # Another spelling of the same number is the same key.
    client.put_item(TableName="Numbers", Item={"pk": {"S": "p"}, "sk": {"N": "1.50e0"}, "v": {"S": "again"}})
    item = client.get_item(TableName="Numbers", Key={"pk": {"S": "p"}, "sk": {"N": "1.5"}})["Item"]
    assert item == {"pk": {"S": "p"}, "sk": {"N": "1.5"}, "v": {"S": "again"}}
    client.delete_table(TableName="Numbers")


def test_binary_keys_sort_as_unsigned_bytes(client):
    keys = [b"\x00", b"\x00\x00", b"\x01", b"\x7f", b"\x80", b"\x80\x00", b"\xc3\xa9", b"\xff", b"\xff\xff"]
    make_table(client, "Blobs", ("pk", "sk"), {"pk": "B", "sk": "B"})
    for key in random.Random(2).sample(keys, len(keys)):
        client.put_item(TableName="Blobs", Item={"pk": {"B": b"\x00p\xff"}, "sk": {"B": key}})
    values = {":p": {"B": b"\x00p\xff"}}
    assert ask(client, "Blobs", True, ExpressionAttributeValues=values) == [{"B": key} for key in keys]
    assert ask(client, "Blobs", False, ExpressionAttributeValues=values) == [{"B": key} for key in keys[::-1]]
    assert len(client.scan(TableName="Blobs")["Items"]) == len(keys)
    assert client.get_item(TableName="Blobs", Key={"pk": values[":p"], "sk": {"B": b"\x80"}})["Item"]
    client.delete_table(TableName="Blobs")


def test_unicode_sorts_by_utf8_bytes(client, table):
    # UTF-16 order would put the emoji before U+FF5E.
    keys = ["A", "Z", "a", "z", "é", "я", "日本", "\uff5e", "😀", "😀😀"]
    for key in random.Random(3).sample(keys, len(keys)):
        client.put_item(TableName=table.name, Item={"pk": {"S": "игра_🎮"}, "sk": {"S": key}})
    values = {":p": {"S": "игра_🎮"}}
    assert sorted(keys) == keys
    assert ask(client, table.name, True, ExpressionAttributeValues=values) == [{"S": key} for key in keys]
    assert ask(client, table.name, False, ExpressionAttributeValues=values) == [{"S": key} for key in keys[::-1]]


def test_keys_that_look_like_shards_stay_apart(table):
    keys = ["game", "game#~1", "game#~2", "game#1", "game#~1#~1", "game#~", "game#~01", "#~1"]
    for key in keys:
        table.put_item(Item={"pk": key, "sk": "1", "mine": key})
    for key in keys:
        assert table.get_item(Key={"pk": key, "sk": "1"})["Item"] == {"pk": key, "sk": "1", "mine": key}
    assert sorted(item["pk"] for item in table.scan()["Items"]) == sorted(keys)
    table.delete_item(Key={"pk": "game", "sk": "1"})
    assert "Item" in table.get_item(Key={"pk": "game#~1", "sk": "1"})


def test_a_table_without_a_sort_key(client, resource):
    make_table(client, "Players", ("id",), {"id": "S"})
    players = resource.Table("Players")
    for number in range(40):
        players.put_item(Item={"id": f"p{number}", "n": number})
    assert players.get_item(Key={"id": "p7"})["Item"] == {"id": "p7", "n": 7}
    assert sorted(item["n"] for item in players.scan()["Items"]) == list(range(40))
    assert "KeySchema" in players.meta.client.describe_table(TableName="Players")["Table"]
    assert "Players" in client.list_tables()["TableNames"]
    players.delete()
    client.get_waiter("table_not_exists").wait(TableName="Players", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    assert "Players" not in client.list_tables()["TableNames"]


def error_of(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    response = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return response["Error"]["Code"], response["Error"]["Message"]


def test_a_missing_table(client):
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    query = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}}
    for call, more in [
        (client.get_item, {"Key": key}), (client.put_item, {"Item": key}), (client.delete_item, {"Key": key}),
        (client.query, query), (client.scan, {}),
    ]:
        code, message = error_of(call, TableName="NoSuchTable", **more)
        assert code == "ResourceNotFoundException"
        # The second wording is DynamoDB Local's.
        assert message in ("Requested resource not found", "Cannot do operations on a non-existent table")
    code, message = error_of(client.describe_table, TableName="NoSuchTable")
    assert code == "ResourceNotFoundException"
    assert message in (
        "Requested resource not found: Table: NoSuchTable not found",
        "Cannot do operations on a non-existent table",
    )


def test_bad_cursors(client, board):
    query = {
        "TableName": board.name, "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "game_x"}}}
    for cursor in (
        {"pk": {"S": "game_x"}},
        {"pk": {"S": "game_x"}, "sk": {"N": "1"}},
        {"pk": {"S": "game_x"}, "sk": {"S": "1"}, "more": {"S": "2"}},
        {"pk": {"S": "game_a"}, "sk": {"S": "1"}},
    ):
        code, _ = error_of(client.query, ExclusiveStartKey=cursor, **query)
        assert code == "ValidationException", cursor


def test_wrong_keys_and_expressions(client, table):
    name = table.name
    code, message = error_of(client.get_item, TableName=name, Key={"pk": {"S": "a"}})
    assert code == "ValidationException"
    # The second wording is DynamoDB Local's.
    assert message in (
        "The provided key element does not match the schema", "The number of conditions on the keys is invalid")
    code, _ = error_of(client.put_item, TableName=name, Item={"pk": {"S": "a"}})
    assert code == "ValidationException"
    code, _ = error_of(client.put_item, TableName=name, Item={"pk": {"N": "1"}, "sk": {"S": "b"}})
    assert code == "ValidationException"
    code, _ = error_of(client.put_item, TableName=name, Item={"pk": {"S": ""}, "sk": {"S": "b"}})
    assert code == "ValidationException"
    code, message = error_of(
        client.query, TableName=name, KeyConditionExpression="sk = :s", ExpressionAttributeValues={":s": {"S": "s"}})
    assert code == "ValidationException"
    code, message = error_of(
        client.query, TableName=name, KeyConditionExpression="pk = :p", FilterExpression="sk = :p",
        ExpressionAttributeValues={":p": {"S": "p"}})
    assert code == "ValidationException"
    assert "Filter Expression can only contain non-primary key attributes" in message
    code, _ = error_of(
        client.query, TableName=name, KeyConditionExpression="pk = :p AND", ExpressionAttributeValues={":p": {"S": "p"}})
    assert code == "ValidationException"
    code, _ = error_of(
        client.query, TableName=name, KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": {"S": "p"}, ":unused": {"S": "p"}})
    assert code == "ValidationException"


def test_an_item_too_large(client, table):
    code, message = error_of(
        client.put_item, TableName=table.name,
        Item={"pk": {"S": "a"}, "sk": {"S": "b"}, "blob": {"S": "x" * (400 * 1024)}})
    assert code == "ValidationException"
    assert "Item size has exceeded the maximum allowed size" in message
    assert "Item" not in table.get_item(Key={"pk": "a", "sk": "b"})
