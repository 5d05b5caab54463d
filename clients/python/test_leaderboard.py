"""The viral leaderboard, read: order, pages, conditions, filters, projections, counts."""

import pytest
from boto3.dynamodb.conditions import Attr, Key

from board import COLD, VIRAL, evaluated, key

CONDITIONS = {
    "equal": (lambda k, sk: k.eq(sk), lambda sk, at: sk == at),
    "less": (lambda k, sk: k.lt(sk), lambda sk, at: sk < at),
    "at most": (lambda k, sk: k.lte(sk), lambda sk, at: sk <= at),
    "greater": (lambda k, sk: k.gt(sk), lambda sk, at: sk > at),
    "at least": (lambda k, sk: k.gte(sk), lambda sk, at: sk >= at),
}


def every_page(table, **query):
    pages = []
    while True:
        page = table.query(**query)
        pages.append(page)
        if "LastEvaluatedKey" not in page:
            return pages
        query["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def items(pages):
    return [item for page in pages for item in page["Items"]]


def test_top_100_in_exact_order(board):
    page = board.table.query(KeyConditionExpression=Key("pk").eq(VIRAL), ScanIndexForward=False, Limit=100)
    want = board.collection(VIRAL, forward=False)[:100]
    assert page["Items"] == want
    assert (page["Count"], page["ScannedCount"]) == (100, 100)
    assert page["LastEvaluatedKey"] == key(want[-1])


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 7, 100, None])
def test_pages_follow_each_other_without_gap_or_repeat(board, forward, limit):
    want = board.collection(VIRAL, forward)
    query = {"KeyConditionExpression": Key("pk").eq(VIRAL), "ScanIndexForward": forward}
    if limit:
        # A few hundred of the small pages say enough.
        want = want[: limit * 40]
        query["Limit"] = limit
    got = []
    while len(got) < len(want):
        page = board.table.query(**query)
        got += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        if page["Items"]:
            assert page["LastEvaluatedKey"] == key(page["Items"][-1])
        query["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    assert got == want


def test_a_game_larger_than_a_page_takes_several(board):
    pages = every_page(board.table, KeyConditionExpression=Key("pk").eq(VIRAL))
    assert len(pages) > 1
    assert items(pages) == board.collection(VIRAL)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("name", list(CONDITIONS))
def test_sort_key_conditions(board, name, forward):
    build, holds = CONDITIONS[name]
    at = board.collection(VIRAL)[1234]["sk"]
    pages = every_page(
        board.table, KeyConditionExpression=Key("pk").eq(VIRAL) & build(Key("sk"), at), ScanIndexForward=forward,
    )
    assert items(pages) == board.collection(VIRAL, forward, lambda row: holds(row["sk"], at))


@pytest.mark.parametrize("forward", [True, False])
def test_the_paginator_ends_where_a_row_stands_on_the_end_of_the_condition(client, board, forward):
    # DynamoDB gives no cursor there, and refuses one. Each length up to 50 rows, so that many pages end there.
    rows = board.collection(VIRAL)
    paginator = client.get_paginator("query")
    for length in range(1, 51):
        want = rows[length * 20 : length * 20 + length]
        query = {
            "TableName": board.name, "ScanIndexForward": forward, "ProjectionExpression": "sk",
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
            "ExpressionAttributeValues": {
                ":pk": {"S": VIRAL}, ":low": {"S": want[0]["sk"]}, ":high": {"S": want[-1]["sk"]},
            },
        }
        pages = list(paginator.paginate(**query, PaginationConfig={"PageSize": 10}))
        got = [item["sk"]["S"] for page in pages for item in page["Items"]]
        assert got == [row["sk"] for row in (want if forward else want[::-1])]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [None, 13])
def test_between_and_begins_with(board, forward, limit):
    more = {"Limit": limit} if limit else {}
    low, high = "00000400", "00000500"
    pages = every_page(
        board.table, KeyConditionExpression=Key("pk").eq(VIRAL) & Key("sk").between(low, high),
        ScanIndexForward=forward, **more,
    )
    assert items(pages) == board.collection(VIRAL, forward, lambda row: low <= row["sk"] <= high)
    pages = every_page(
        board.table, KeyConditionExpression=Key("pk").eq(VIRAL) & Key("sk").begins_with("000007"),
        ScanIndexForward=forward, **more,
    )
    assert items(pages) == board.collection(VIRAL, forward, lambda row: row["sk"].startswith("000007"))


def test_a_range_that_holds_nothing(board):
    page = board.table.query(KeyConditionExpression=Key("pk").eq(VIRAL) & Key("sk").gt("99999999"))
    assert (page["Items"], page["Count"], "LastEvaluatedKey" in page) == ([], 0, False)
    page = board.table.query(KeyConditionExpression=Key("pk").eq("no such game"), Limit=5)
    assert (page["Items"], page["Count"], "LastEvaluatedKey" in page) == ([], 0, False)


def test_limit_counts_evaluated_items_not_filtered_ones(board):
    want = board.collection(VIRAL, forward=False)
    query = {
        "KeyConditionExpression": Key("pk").eq(VIRAL), "ScanIndexForward": False, "Limit": 50,
        "FilterExpression": Attr("region").eq("eu") & Attr("score").gt(10),
    }
    for start in (0, 50, 100):
        page = board.table.query(**query)
        evaluated = want[start : start + 50]
        assert page["Items"] == [row for row in evaluated if row["region"] == "eu" and row["score"] > 10]
        assert (page["ScannedCount"], page["Count"]) == (50, len(page["Items"]))
        assert page["LastEvaluatedKey"] == key(evaluated[-1])
        query["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def test_filter_over_everything(board):
    pages = every_page(
        board.table, KeyConditionExpression=Key("pk").eq(VIRAL),
        FilterExpression=Attr("region").is_in(["us", "ap"]) & ~Attr("player").begins_with("player_1"),
    )
    want = board.collection(
        VIRAL, keep=lambda row: row["region"] in ("us", "ap") and not row["player"].startswith("player_1"))
    assert items(pages) == want
    assert evaluated(pages, 2000)


def test_count_alone_and_a_rank(board):
    pages = every_page(board.table, KeyConditionExpression=Key("pk").eq(VIRAL), Select="COUNT")
    assert sum(page["Count"] for page in pages) == 2000
    assert all("Items" not in page for page in pages)
    player = board.collection(VIRAL, forward=False)[321]
    pages = every_page(
        board.table, KeyConditionExpression=Key("pk").eq(VIRAL) & Key("sk").gt(player["sk"]), Select="COUNT")
    assert sum(page["Count"] for page in pages) == 321


@pytest.mark.parametrize("projection", ["player, score", "score", "sk", "pk, sk", "nothing_here"])
def test_projections_hold_what_was_asked_for_and_no_more(board, projection):
    page = board.table.query(
        KeyConditionExpression=Key("pk").eq(VIRAL), ScanIndexForward=False, Limit=20, ProjectionExpression=projection)
    names = projection.split(", ")
    want = board.collection(VIRAL, forward=False)[:20]
    assert page["Items"] == [{name: row[name] for name in names if name in row} for row in want]
    assert page["LastEvaluatedKey"] == key(want[-1])


def test_placeholders_name_the_keys(client, board):
    page = client.query(
        TableName=board.name,
        KeyConditionExpression="#g = :g AND #s BETWEEN :a AND :b",
        ExpressionAttributeNames={"#g": "pk", "#s": "sk", "#r": "region"},
        ExpressionAttributeValues={":g": {"S": VIRAL}, ":a": {"S": "00000100"}, ":b": {"S": "00000200"}},
        ProjectionExpression="#g, #r",
    )
    want = board.collection(VIRAL, keep=lambda row: "00000100" <= row["sk"] <= "00000200")
    assert page["Items"] == [{"pk": {"S": VIRAL}, "region": {"S": row["region"]}} for row in want]


def test_the_value_of_the_key_may_stand_in_the_filter_too(client, board):
    page = client.query(
        TableName=board.name, KeyConditionExpression="pk = :g", FilterExpression="player <> :g AND score >= :n",
        ExpressionAttributeValues={":g": {"S": VIRAL}, ":n": {"N": "1000"}}, Limit=200, ScanIndexForward=False,
    )
    want = [row for row in board.collection(VIRAL, forward=False)[:200] if row["score"] >= 1000]
    assert [item["sk"]["S"] for item in page["Items"]] == [row["sk"] for row in want]


def test_the_paginator_agrees(client, board):
    pages = client.get_paginator("query").paginate(
        TableName=board.name, KeyConditionExpression="pk = :g", ExpressionAttributeValues={":g": {"S": VIRAL}},
        ScanIndexForward=False, PaginationConfig={"PageSize": 333},
    )
    got = [item["sk"]["S"] for page in pages for item in page["Items"]]
    assert got == [row["sk"] for row in board.collection(VIRAL, forward=False)]


def test_a_cursor_survives_another_limit_and_the_loss_of_its_item(table):
    for number in range(30):
        table.put_item(Item={"pk": "g", "sk": f"{number:03d}"})
    page = table.query(KeyConditionExpression=Key("pk").eq("g"), Limit=10)
    cursor = page["LastEvaluatedKey"]
    table.delete_item(Key=cursor)
    rest = table.query(KeyConditionExpression=Key("pk").eq("g"), ExclusiveStartKey=cursor, Limit=50)
    assert [item["sk"] for item in rest["Items"]] == [f"{number:03d}" for number in range(10, 30)]
    # A key that never existed is a place in the order like any other.
    rest = table.query(KeyConditionExpression=Key("pk").eq("g"), ExclusiveStartKey={"pk": "g", "sk": "0155"})
    assert [item["sk"] for item in rest["Items"]] == [f"{number:03d}" for number in range(16, 30)]
    back = table.query(
        KeyConditionExpression=Key("pk").eq("g"), ExclusiveStartKey={"pk": "g", "sk": "0155"}, ScanIndexForward=False)
    assert [item["sk"] for item in back["Items"]] == [f"{n:03d}" for n in range(15, -1, -1) if n != 9]


@pytest.mark.parametrize("game", COLD)
def test_cold_games_beside_it(board, game):
    page = board.table.query(KeyConditionExpression=Key("pk").eq(game), ScanIndexForward=False, Limit=100)
    assert page["Items"] == board.collection(game, forward=False)
    assert "LastEvaluatedKey" not in page
