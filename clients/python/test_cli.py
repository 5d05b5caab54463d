"""The AWS CLI, as a process of its own: its pagination, its transactions and batches, PartiQL, and its waiters."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import chat as model
from conftest import ENDPOINT
from test_resource import plain, wire

AWS = Path(sys.executable).parent / "aws"


def run(command, **options):
    """One CLI call; options become flags, and what is no string becomes JSON."""
    words = [str(AWS), "dynamodb", *command.split(), "--endpoint-url", ENDPOINT, "--region", "us-east-1", "--output", "json"]
    for name, value in options.items():
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(value if isinstance(value, str) else json.dumps(value))
    environment = {
        **os.environ, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_PAGER": "",
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true",
    }
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


def aws(command, **options):
    done = run(command, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else {}


def refused(command, **options):
    done = run(command, **options)
    assert done.returncode != 0, done.stdout
    return done.stderr


def ids(answer):
    return [item["id"]["S"] for item in answer["Items"]]


@pytest.mark.parametrize("direction", ["scan_index_forward", "no_scan_index_forward"])
@pytest.mark.parametrize("index", list(model.ORDERS), ids=str)
def test_query_pages_by_max_items_and_starting_token(chat, index, direction):
    partition, _, value = model.ORDERS[index]
    want = [message["id"] for message in model.ordered(index, direction == "scan_index_forward")]
    # Two calls of several pages each; the token falls inside a page.
    size, page = len(want) // 2 + 1, len(want) // 5 + 1
    assert size % page != 0
    more = {direction: True, **({"index_name": index} if index else {})}
    got, token = [], None
    for _ in range(3):
        answer = aws(
            "query", table_name=chat.name, key_condition_expression="#p = :p", expression_attribute_names={"#p": partition},
            expression_attribute_values={":p": {"S": value}}, max_items=str(size), page_size=str(page),
            **({"starting_token": token} if token else {}), **more)
        got.append(ids(answer))
        token = answer.get("NextToken")
        if token is None:
            break
    assert got == [want[:size], want[size:]]


def test_query_follows_every_page_by_itself(chat):
    answer = aws(
        "query", table_name=chat.name, key_condition_expression="room = :r AND id BETWEEN :a AND :b",
        filter_expression="author <> :x", projection_expression="id",
        expression_attribute_values={
            ":r": {"S": "lobby"}, ":a": {"S": "0010"}, ":b": {"S": "0060"}, ":x": {"S": "ann"}}, page_size="7")
    want = model.ordered(None, keep=lambda message: "0010" <= message["id"] <= "0060")
    assert ids(answer) == [message["id"] for message in want if message["author"] != "ann"]
    assert answer["ScannedCount"] == len(want)
    # Without the CLI's pagination it is one page and DynamoDB's own cursor.
    one = aws(
        "query", table_name=chat.name, key_condition_expression="room = :r", expression_attribute_values={":r": {"S": "lobby"}},
        limit="9", no_paginate=True)
    assert plain(one["LastEvaluatedKey"]) == {"room": "lobby", "id": "0008"}
    counted = aws(
        "query", table_name=chat.name, key_condition_expression="room = :r", expression_attribute_values={":r": {"S": "lobby"}},
        select="COUNT", page_size="9")
    assert counted["Count"] == len(model.ordered(None))


def test_scan_pages_and_segments(chat):
    everything = [message["id"] for message in model.messages()]
    got, token = [], None
    for _ in range(4):
        answer = aws(
            "scan", table_name=chat.name, max_items="31", page_size="10", **({"starting_token": token} if token else {}))
        got += ids(answer)
        token = answer.get("NextToken")
        if token is None:
            break
    assert sorted(got) == everything
    parts = [ids(aws("scan", table_name=chat.name, segment=str(n), total_segments="2", page_size="8")) for n in (0, 1)]
    assert sorted(parts[0] + parts[1]) == everything


def test_items_from_put_to_delete(table):
    name, key = table.name, wire({"pk": "hot", "sk": "1"})
    assert aws("put-item", table_name=name, item={**key, "n": {"N": "1"}}, return_consumed_capacity="TOTAL")[
        "ConsumedCapacity"]["CapacityUnits"] == 1
    assert aws("get-item", table_name=name, key=key, consistent_read=True)["Item"] == {**key, "n": {"N": "1"}}
    values = {"expression_attribute_values": {":one": {"N": "1"}}, "update_expression": "SET n = n + :one"}
    for returned, want in [
        ("ALL_NEW", {"pk": "hot", "sk": "1", "n": 2}), ("UPDATED_NEW", {"n": 3}), ("UPDATED_OLD", {"n": 3}),
        ("ALL_OLD", {"pk": "hot", "sk": "1", "n": 4}), ("NONE", {}),
    ]:
        answer = aws("update-item", table_name=name, key=key, return_values=returned, **values)
        assert plain(answer.get("Attributes", {})) == want
    assert "ConditionalCheckFailedException" in refused(
        "put-item", table_name=name, item=key, condition_expression="attribute_not_exists(pk)")
    gone = aws("delete-item", table_name=name, key=key, return_values="ALL_OLD")
    assert plain(gone["Attributes"]) == {"pk": "hot", "sk": "1", "n": 6}
    assert aws("get-item", table_name=name, key=key) == {}
    assert "ValidationException" in refused("get-item", table_name=name, key={"pk": {"S": "hot"}})


def test_batches(table):
    items = [wire({"pk": "hot", "sk": f"{number:02d}"}) for number in range(25)]
    written = aws("batch-write-item", request_items={table.name: [{"PutRequest": {"Item": item}} for item in items]})
    assert written["UnprocessedItems"] == {}
    read = aws("batch-get-item", request_items={table.name: {"Keys": items}})
    assert read["UnprocessedKeys"] == {}
    assert sorted(plain(item)["sk"] for item in read["Responses"][table.name]) == [f"{n:02d}" for n in range(25)]
    aws("batch-write-item", request_items={table.name: [{"DeleteRequest": {"Key": item}} for item in items[5:]]})
    assert aws("scan", table_name=table.name, select="COUNT")["Count"] == 5


def test_transactions(table):
    name = table.name
    put = lambda sk, **more: {"Put": {"TableName": name, "Item": wire({"pk": "hot", "sk": sk}), **more}}
    aws("transact-write-items", client_request_token=str(uuid.uuid4()), transact_items=[put(f"{n:02d}") for n in range(8)])
    errors = refused("transact-write-items", transact_items=[
        put("20"), put("03", ConditionExpression="attribute_not_exists(pk)"), put("21")])
    assert "TransactionCanceledException" in errors
    assert "[None, ConditionalCheckFailed, None]" in errors
    get = lambda sk: {"Get": {"TableName": name, "Key": wire({"pk": "hot", "sk": sk})}}
    found = aws("transact-get-items", transact_items=[get("07"), get("20"), get("00")])["Responses"]
    assert [plain(answer.get("Item", {})) for answer in found] == [
        {"pk": "hot", "sk": "07"}, {}, {"pk": "hot", "sk": "00"}]


def partiql(statement, *parameters, **more):
    given = {"parameters": [wire({"v": value})["v"] for value in parameters]} if parameters else {}
    return aws("execute-statement", statement=statement, **given, **more)


def test_partiql(table):
    name = table.name
    for number in range(12):
        table.put_item(Item={"pk": "hot", "sk": f"{number:02d}", "n": number})
    partiql(f"INSERT INTO \"{name}\" VALUE {{'pk': 'hot', 'sk': '12', 'n': ?}}", 12)
    assert "DuplicateItemException" in refused(
        "execute-statement", statement=f"INSERT INTO \"{name}\" VALUE {{'pk': 'hot', 'sk': '12'}}")
    one = partiql(f'SELECT * FROM "{name}" WHERE pk = ? AND sk = ?', "hot", "12")["Items"]
    assert [plain(item) for item in one] == [{"pk": "hot", "sk": "12", "n": 12}]
    partiql(f'UPDATE "{name}" SET n = 100 WHERE pk = ? AND sk = ?', "hot", "05")
    partiql(f'DELETE FROM "{name}" WHERE pk = ? AND sk = ?', "hot", "06")
    assert "ConditionalCheckFailedException" in refused(
        "execute-statement", statement=f"UPDATE \"{name}\" SET n = 1 WHERE pk = 'hot' AND sk = 'none'")
    left = [sk for sk in range(13) if sk != 6]
    for order, want in [("ASC", left), ("DESC", left[::-1])]:
        got, token = [], None
        for _ in range(5):
            page = partiql(
                f"SELECT sk, n FROM \"{name}\" WHERE pk = 'hot' ORDER BY sk {order}", limit="5",
                **({"next_token": token} if token else {}))
            got.append([plain(item) for item in page["Items"]])
            token = page.get("NextToken")
            if token is None:
                break
        assert [part for part in got if part] == [
            [{"sk": f"{sk:02d}", "n": 100 if sk == 5 else sk} for sk in part] for part in model.cut(want, 5) if part]
    answers = aws("batch-execute-statement", statements=[
        {"Statement": f"SELECT n FROM \"{name}\" WHERE pk = 'hot' AND sk = '05'"},
        {"Statement": f"SELECT * FROM \"{name}\" WHERE pk = 'hot' AND sk = '99'"},
    ])["Responses"]
    assert [plain(answer.get("Item", {})) for answer in answers] == [{"n": 100}, {}]
    aws("execute-transaction", transact_statements=[
        {"Statement": f"DELETE FROM \"{name}\" WHERE pk = 'hot' AND sk = '00'"},
        {"Statement": f"INSERT INTO \"{name}\" VALUE {{'pk': 'hot', 'sk': '20'}}"},
    ])
    assert [item["sk"] for item in table.scan()["Items"]].count("20") == 1
    assert "Item" not in table.get_item(Key={"pk": "hot", "sk": "00"})


def test_tables_from_create_to_wait(chat):
    made = model.schema("FromTheCli", units=5)
    created = aws(
        "create-table", table_name="FromTheCli", key_schema=made["KeySchema"],
        attribute_definitions=made["AttributeDefinitions"], provisioned_throughput=made["ProvisionedThroughput"],
        local_secondary_indexes=made["LocalSecondaryIndexes"], global_secondary_indexes=made["GlobalSecondaryIndexes"])
    assert created["TableDescription"]["TableName"] == "FromTheCli"
    aws("wait table-exists", table_name="FromTheCli")
    described = aws("describe-table", table_name="FromTheCli")["Table"]
    assert (described["TableStatus"], described["KeySchema"]) == ("ACTIVE", made["KeySchema"])
    listed = aws("list-tables", page_size="1")["TableNames"]
    assert listed == sorted(listed) and {"FromTheCli", chat.name} <= set(listed)
    first = aws("list-tables", max_items="1")
    rest = aws("list-tables", starting_token=first["NextToken"])
    assert first["TableNames"] + rest["TableNames"] == listed
    aws("delete-table", table_name="FromTheCli")
    aws("wait table-not-exists", table_name="FromTheCli")
    assert "ResourceNotFoundException" in refused("describe-table", table_name="FromTheCli")

