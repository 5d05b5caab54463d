"""boto3's resource API: conditions as objects, the batch writer, paginators and their tokens, waiters, binary keys."""

import uuid
from decimal import Decimal

import pytest
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

import chat as model
from conftest import index, make_table

BOTH_WAYS = pytest.mark.parametrize("forward", [True, False], ids=["up", "down"])
ORDERS = pytest.mark.parametrize("index", list(model.ORDERS), ids=str)
read = TypeDeserializer().deserialize
write = TypeSerializer().serialize


def plain(item):
    return {name: read(value) for name, value in item.items()}


def wire(item):
    return {name: write(value) for name, value in item.items()}


def on(index):
    return {} if index is None else {"IndexName": index}


@BOTH_WAYS
@ORDERS
@pytest.mark.parametrize("size", [6, 7, 10])
def test_pages_are_exact(chat, index, forward, size):
    partition, _, value = model.ORDERS[index]
    want = model.cut(model.ordered(index, forward), size)
    assert len(want) >= 3
    query = {"KeyConditionExpression": Key(partition).eq(value), "ScanIndexForward": forward, "Limit": size, **on(index)}
    for number, messages in enumerate(want):
        page = chat.query(**query)
        assert page["Items"] == messages
        assert (page["Count"], page["ScannedCount"]) == (len(messages), len(messages))
        if number == len(want) - 1:
            assert "LastEvaluatedKey" not in page
            return
        assert page["LastEvaluatedKey"] == model.cursor(messages[-1], index)
        # The cursor is built again from the item, as object mappers do.
        query["ExclusiveStartKey"] = model.cursor(page["Items"][-1], index)


@BOTH_WAYS
@ORDERS
def test_the_paginator_stops_and_goes_on_from_its_token(client, chat, index, forward):
    partition, _, value = model.ORDERS[index]
    want = model.ordered(index, forward)
    query = {
        "TableName": chat.name, "KeyConditionExpression": "#p = :p", "ExpressionAttributeNames": {"#p": partition},
        "ExpressionAttributeValues": {":p": {"S": value}}, "ScanIndexForward": forward, **on(index)}
    got, token = [], None
    # Eight at a time in pages of five: a token falls inside a page and between pages.
    for _ in range(len(want)):
        config = {"PageSize": 5, "MaxItems": 8, "StartingToken": token}
        whole = client.get_paginator("query").paginate(PaginationConfig=config, **query).build_full_result()
        got.append([plain(item) for item in whole["Items"]])
        token = whole.get("NextToken")
        if token is None:
            break
    assert got == [part for part in model.cut(want, 8) if part]


@ORDERS
def test_the_scan_paginator_goes_on_from_its_token(client, chat, index):
    got, token = [], None
    for _ in range(20):
        config = {"PageSize": 10, "MaxItems": 16, "StartingToken": token}
        pages = client.get_paginator("scan").paginate(TableName=chat.name, PaginationConfig=config, **on(index))
        whole = pages.build_full_result()
        got += [plain(item) for item in whole["Items"]]
        token = whole.get("NextToken")
        if token is None:
            break
    assert sorted(got, key=model_key) == model.messages()
    # A search over pages, in the paginator's own language.
    pages = client.get_paginator("scan").paginate(TableName=chat.name, PaginationConfig={"PageSize": 9})
    assert sorted(pages.search("Items[?author.S=='ann'].id.S")) == [
        message["id"] for message in model.messages() if message["author"] == "ann"]


def model_key(message):
    return message["id"]


CONDITIONS = {
    "eq": (Attr("author").eq("ann"), lambda m: m["author"] == "ann"),
    "ne": (Attr("author").ne("ann"), lambda m: m["author"] != "ann"),
    "lt": (Attr("text").lt("message 4"), lambda m: m["text"] < "message 4"),
    "between": (Attr("text").between("message 2", "message 5"), lambda m: "message 2" <= m["text"] <= "message 5"),
    "is_in": (Attr("author").is_in(["bob", "cyd"]), lambda m: m["author"] in ("bob", "cyd")),
    "contains": (Attr("text").contains("7"), lambda m: "7" in m["text"]),
    "begins_with": (Attr("text").begins_with("message 1"), lambda m: m["text"].startswith("message 1")),
    "exists": (Attr("text").exists() & Attr("missing").not_exists(), lambda m: True),
    "type": (Attr("text").attribute_type("S") & Attr("text").size().gt(9), lambda m: len(m["text"]) > 9),
    "and or not": (
        (Attr("author").eq("ann") | Attr("author").eq("bob")) & ~Attr("text").contains("3"),
        lambda m: m["author"] in ("ann", "bob") and "3" not in m["text"]),
}


@BOTH_WAYS
@pytest.mark.parametrize("name", list(CONDITIONS))
def test_condition_objects_filter_pages_as_they_were_read(chat, name, forward):
    condition, keep = CONDITIONS[name]
    query = {
        "KeyConditionExpression": Key("room").eq(model.LOBBY), "FilterExpression": condition,
        "ScanIndexForward": forward, "Limit": 24}
    for messages in model.cut(model.ordered(None, forward), 24):
        page = chat.query(**query)
        assert page["Items"] == [message for message in messages if keep(message)]
        assert page["ScannedCount"] == len(messages)
        assert page.get("LastEvaluatedKey") == (model.cursor(messages[-1]) if len(messages) == 24 else None)
        query["ExclusiveStartKey"] = page.get("LastEvaluatedKey")


@BOTH_WAYS
def test_numeric_index_keys_take_every_condition(chat, forward):
    rank = Key("rank")
    for condition, keep in [
        (rank.eq(-50), lambda n: n == -50), (rank.lt(-3), lambda n: n < -3), (rank.lte(-3), lambda n: n <= -3),
        (rank.gt(20), lambda n: n > 20), (rank.gte(20), lambda n: n >= 20),
        (rank.between(Decimal("-10.5"), 12), lambda n: Decimal("-10.5") <= n <= 12),
    ]:
        for index in ("by_rank", "by_author"):
            partition, _, value = model.ORDERS[index]
            found = chat.query(
                IndexName=index, KeyConditionExpression=Key(partition).eq(value) & condition, ScanIndexForward=forward)
            assert found["Items"] == model.ordered(index, forward, lambda message: keep(message["rank"]))


def test_the_batch_writer_keeps_the_last_of_equal_keys(table):
    with table.batch_writer(overwrite_by_pkeys=["pk", "sk"]) as batch:
        for number in range(90):
            batch.put_item(Item={"pk": "hot", "sk": f"{number % 30:03d}", "n": number})
        batch.delete_item(Key={"pk": "hot", "sk": "003"})
        batch.delete_item(Key={"pk": "hot", "sk": "004"})
        batch.put_item(Item={"pk": "hot", "sk": "004", "n": 1000})
    want = [{"pk": "hot", "sk": f"{n:03d}", "n": 1000 if n == 4 else 60 + n} for n in range(30) if n != 3]
    assert table.query(KeyConditionExpression=Key("pk").eq("hot"))["Items"] == want


def test_the_batch_writer_without_it_is_refused_for_equal_keys(table):
    with pytest.raises(ClientError) as caught:
        with table.batch_writer() as batch:
            batch.put_item(Item={"pk": "hot", "sk": "1"})
            batch.put_item(Item={"pk": "hot", "sk": "1"})
    assert caught.value.response["Error"]["Message"] == "Provided list of item keys contains duplicates"
    assert table.scan()["Items"] == []


def test_batches_over_two_tables(resource, chat, table):
    with table.batch_writer() as batch:
        for number in range(5):
            batch.put_item(Item={"pk": "hot", "sk": str(number)})
    wanted = model.ordered(None)[:30]
    left = {
        chat.name: {"Keys": [model.cursor(message) for message in wanted], "ProjectionExpression": "id, #r",
                    "ExpressionAttributeNames": {"#r": "rank"}},
        table.name: {"Keys": [{"pk": "hot", "sk": str(number)} for number in range(7)], "ConsistentRead": True},
    }
    found = {}
    while left:
        answer = resource.batch_get_item(RequestItems=left)
        for name, items in answer["Responses"].items():
            found.setdefault(name, []).extend(items)
        left = answer["UnprocessedKeys"]
    assert sorted(found[chat.name], key=model_key) == [{"id": m["id"], "rank": m["rank"]} for m in wanted]
    assert sorted(item["sk"] for item in found[table.name]) == ["0", "1", "2", "3", "4"]


def test_binary_keys(client, resource):
    make_table(client, "Binary", ("pk", "sk"), {"pk": "B", "sk": "B"})
    table = resource.Table("Binary")
    partition = b"\x00\xffhot#~1"
    keys = [bytes([number]) + b"\x80" * (number % 3) for number in range(0, 256, 9)]
    with table.batch_writer(overwrite_by_pkeys=["pk", "sk"]) as batch:
        for key in reversed(keys):
            batch.put_item(Item={"pk": partition, "sk": Binary(key), "n": key[0]})
            batch.put_item(Item={"pk": Binary(b"\x00\xffhot"), "sk": key, "n": -1})
    for forward in (True, False):
        query = {"KeyConditionExpression": Key("pk").eq(Binary(partition)), "ScanIndexForward": forward, "Limit": 8}
        for want in model.cut(keys if forward else keys[::-1], 8):
            page = table.query(**query)
            assert [bytes(item["sk"]) for item in page["Items"]] == want
            assert all(bytes(item["pk"]) == partition and item["n"] == bytes(item["sk"])[0] for item in page["Items"])
            query["ExclusiveStartKey"] = page.get("LastEvaluatedKey")
    found = table.query(KeyConditionExpression=Key("pk").eq(partition) & Key("sk").between(b"\x10", b"\x50"))["Items"]
    assert [bytes(item["sk"]) for item in found] == [key for key in keys if b"\x10" <= key <= b"\x50"]
    assert table.get_item(Key={"pk": partition, "sk": keys[5]})["Item"]["n"] == keys[5][0]
    assert table.scan(Select="COUNT")["Count"] == 2 * len(keys)
    table.delete()


def test_an_inverted_index(client, resource):
    """The index of many single-table designs: the table's keys the other way round."""
    make_table(
        client, "Inverted", ("pk", "sk"), {"pk": "S", "sk": "S"},
        GlobalSecondaryIndexes=[index("inverted", "sk", "pk", ProvisionedThroughput={
            "ReadCapacityUnits": 1000, "WriteCapacityUnits": 1000})])
    table = resource.Table("Inverted")
    # Names that are one another's beginnings, or look like shards, sort otherwise with a suffix than without.
    names = sorted([f"room{n}" for n in range(24)] + ["room", "room1#", "room1#1", "room1#~1", "room2#~10", "room2 ", "room2~"])
    with table.batch_writer() as batch:
        for name in reversed(names):
            for kind in ("info", "rules"):
                batch.put_item(Item={"pk": name, "sk": kind, "of": name})
    for forward in (True, False):
        want = names if forward else names[::-1]
        query = {
            "IndexName": "inverted", "KeyConditionExpression": Key("sk").eq("info"), "ScanIndexForward": forward, "Limit": 9}
        for part in model.cut(want, 9):
            page = table.query(**query)
            assert [(item["pk"], item["of"]) for item in page["Items"]] == [(name, name) for name in part]
            assert page.get("LastEvaluatedKey") == ({"pk": part[-1], "sk": "info"} if len(part) == 9 else None)
            query["ExclusiveStartKey"] = {"pk": part[-1], "sk": "info"}
        for condition, keep in [
            (Key("pk").begins_with("room1"), lambda name: name.startswith("room1")),
            (Key("pk").between("room1", "room2"), lambda name: "room1" <= name <= "room2"),
            (Key("pk").gt("room1#1"), lambda name: name > "room1#1"),
            (Key("pk").eq("room1#~1"), lambda name: name == "room1#~1"),
        ]:
            found = table.query(
                IndexName="inverted", KeyConditionExpression=Key("sk").eq("rules") & condition, ScanIndexForward=forward)
            assert [item["pk"] for item in found["Items"]] == [name for name in want if keep(name)]
    table.delete()


def test_waiters_and_the_table_as_an_object(client, resource):
    table = resource.create_table(**model.schema("Waited", units=5))
    table.wait_until_exists()
    table.load()
    assert (table.table_status, table.name, table.item_count) == ("ACTIVE", "Waited", 0)
    assert table.key_schema == model.schema("Waited")["KeySchema"]
    assert [index["IndexName"] for index in table.local_secondary_indexes] == ["by_topic"]
    assert sorted(index["IndexName"] for index in table.global_secondary_indexes) == ["by_author", "by_rank"]
    described = client.describe_table(TableName="Waited")["Table"]
    names = {definition["AttributeName"] for definition in described["AttributeDefinitions"]}
    assert names == {"room", "id", "topic", "author", "rank"}
    with pytest.raises(client.exceptions.ResourceInUseException):
        resource.create_table(**model.schema("Waited"))
    table.delete()
    table.wait_until_not_exists()
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        table.reload()


def test_tables_are_listed_in_pages(client, resource, chat):
    made = [f"Listed{number}" for number in range(5)]
    for name in made:
        make_table(client, name, ("pk", "sk"), {"pk": "S", "sk": "S"})
    names = sorted(client.list_tables()["TableNames"])
    assert set(made) | {chat.name} <= set(names)
    # Nothing of the gateway's own shows, in no page size.
    for size in (1, 2, 3):
        pages = list(client.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": size}))
        assert [name for page in pages for name in page["TableNames"]] == names
        assert all(len(page["TableNames"]) <= size for page in pages)
        assert [table.name for table in resource.tables.page_size(size)] == names
    assert [table.name for table in resource.tables.limit(2)] == names[:2]
    after = client.list_tables(ExclusiveStartTableName="Listed1", Limit=2)
    assert after["TableNames"] == [name for name in names if name > "Listed1"][:2]
    for name in made:
        client.delete_table(TableName=name)


def test_transactions(client, resource, table, chat):
    puts = [{"Put": {"TableName": table.name, "Item": wire({"pk": "hot", "sk": f"{n:02d}", "n": n})}} for n in range(10)]
    token = str(uuid.uuid4())
    client.transact_write_items(TransactItems=puts, ClientRequestToken=token)
    # Sent again under its token it is the same transaction and changes nothing.
    table.update_item(Key={"pk": "hot", "sk": "00"}, UpdateExpression="SET n = :n", ExpressionAttributeValues={":n": 100})
    client.transact_write_items(TransactItems=puts, ClientRequestToken=token)
    assert table.get_item(Key={"pk": "hot", "sk": "00"})["Item"]["n"] == 100
    with pytest.raises(client.exceptions.IdempotentParameterMismatchException):
        client.transact_write_items(TransactItems=puts[:3], ClientRequestToken=token)

    update = {"TableName": table.name, "UpdateExpression": "SET n = n + :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
    key = lambda number: wire({"pk": "hot", "sk": f"{number:02d}"})
    check = {"TableName": table.name, "ConditionExpression": "pk = :p AND n = :n"}
    client.transact_write_items(TransactItems=[
        {"Update": {**update, "Key": key(1)}},
        {"Delete": {"TableName": table.name, "Key": key(2)}},
        {"ConditionCheck": {**check, "Key": key(3), "ExpressionAttributeValues": wire({":p": "hot", ":n": 3})}},
    ])
    found = table.query(KeyConditionExpression=Key("pk").eq("hot"))["Items"]
    assert [(item["sk"], item["n"]) for item in found] == [
        ("00", 100), ("01", 2), ("03", 3), ("04", 4), ("05", 5), ("06", 6), ("07", 7), ("08", 8), ("09", 9)]

    with pytest.raises(client.exceptions.TransactionCanceledException) as caught:
        client.transact_write_items(TransactItems=[
            {"Update": {**update, "Key": key(1)}},
            {"ConditionCheck": {**check, "Key": key(3), "ExpressionAttributeValues": wire({":p": "hot", ":n": 4}),
                                "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
            {"Put": {"TableName": table.name, "Item": key(20)}},
            {"Delete": {"TableName": table.name, "Key": key(5), "ConditionExpression": "attribute_not_exists(pk)"}},
        ])
    response = caught.value.response
    assert response["Error"]["Message"].startswith("Transaction cancelled, please refer cancellation reasons for specific reasons")
    assert [reason["Code"] for reason in response["CancellationReasons"]] == [
        "None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed"]
    assert plain(response["CancellationReasons"][1]["Item"]) == {"pk": "hot", "sk": "03", "n": 3}
    assert "Item" not in response["CancellationReasons"][3]
    assert table.scan(Select="COUNT")["Count"] == 9

    message = model.ordered(None)[11]
    got = client.transact_get_items(TransactItems=[
        {"Get": {"TableName": table.name, "Key": key(9)}},
        {"Get": {"TableName": chat.name, "Key": wire(model.cursor(message)),
                 "ProjectionExpression": "author, room, id"}},
        {"Get": {"TableName": table.name, "Key": key(2)}},
        {"Get": {"TableName": table.name, "Key": key(4), "ProjectionExpression": "sk, pk"}},
    ])["Responses"]
    assert [plain(answer.get("Item", {})) for answer in got] == [
        {"pk": "hot", "sk": "09", "n": 9}, {name: message[name] for name in ("room", "id", "author")}, {},
        {"pk": "hot", "sk": "04"}]
