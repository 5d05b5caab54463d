"""Scans, parallel scans, and Queries on local and global indexes. No physical key may show anywhere."""

import threading

import pytest
from boto3.dynamodb.conditions import Attr, Key

from board import VIRAL, evaluated


def identity(item):
    return (item["pk"], item["sk"])


def pages_of(call, **arguments):
    while True:
        page = call(**arguments)
        yield page
        if "LastEvaluatedKey" not in page:
            return
        arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]


@pytest.mark.parametrize("limit", [None, 97])
def test_a_scan_sees_every_row_once(board, limit):
    pages = list(pages_of(board.table.scan, **({"Limit": limit} if limit else {})))
    items = [item for page in pages for item in page["Items"]]
    assert sorted(items, key=identity) == sorted(board.rows, key=identity)
    assert all(page["ScannedCount"] <= (limit or 2060) for page in pages)
    for page in pages[:-1]:
        assert set(page["LastEvaluatedKey"]) - {"heatsink:layout"} == {"pk", "sk"}


def test_a_scan_filters_counts_and_projects(board):
    keep = Attr("region").eq("us") & Attr("pk").eq(VIRAL)
    pages = list(pages_of(board.table.scan, FilterExpression=keep, ProjectionExpression="player"))
    got = sorted(item["player"] for page in pages for item in page["Items"])
    assert got == sorted(row["player"] for row in board.collection(VIRAL, keep=lambda row: row["region"] == "us"))
    assert all(set(item) == {"player"} for page in pages for item in page["Items"])
    assert evaluated(pages, 2060)
    pages = list(pages_of(board.table.scan, Select="COUNT"))
    assert sum(page["Count"] for page in pages) == 2060


def test_a_parallel_scan_divides_the_rows(board):
    seen = [[] for _ in range(4)]

    def scan(segment):
        for page in pages_of(board.table.scan, Segment=segment, TotalSegments=4, Limit=150):
            seen[segment] += page["Items"]

    threads = [threading.Thread(target=scan, args=(segment,)) for segment in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    items = [item for part in seen for item in part]
    assert sorted(map(identity, items)) == sorted(map(identity, board.rows))


def test_the_scan_paginator_agrees(client, board):
    pages = client.get_paginator("scan").paginate(TableName=board.name, PaginationConfig={"PageSize": 500})
    got = [(item["pk"]["S"], item["sk"]["S"]) for page in pages for item in page["Items"]]
    assert sorted(got) == sorted(map(identity, board.rows))


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [None, 111])
def test_a_local_index_is_in_order(board, forward, limit):
    pages = list(pages_of(
        board.table.query, IndexName="by_region", KeyConditionExpression=Key("pk").eq(VIRAL),
        ScanIndexForward=forward, **({"Limit": limit} if limit else {})))
    items = [item for page in pages for item in page["Items"]]
    regions = [item["region"] for item in items]
    assert regions == sorted(regions, reverse=not forward)
    # Rows with the same index key may come in any order, but each once.
    assert sorted(items, key=identity) == board.collection(VIRAL)
    for page in pages[:-1]:
        assert set(page["LastEvaluatedKey"]) == {"pk", "sk", "region"}
        assert page["LastEvaluatedKey"]["pk"] == VIRAL


def test_a_local_index_with_a_condition(board):
    pages = pages_of(
        board.table.query, IndexName="by_region",
        KeyConditionExpression=Key("pk").eq(VIRAL) & Key("region").eq("eu"), FilterExpression=Attr("score").lt(500))
    got = sorted((item for page in pages for item in page["Items"]), key=identity)
    assert got == board.collection(VIRAL, keep=lambda row: row["region"] == "eu" and row["score"] < 500)


def test_a_global_index_shows_logical_keys(board):
    for player in ("player_0003", "player_1999"):
        items = board.table.query(IndexName="by_player", KeyConditionExpression=Key("player").eq(player))["Items"]
        want = [row for row in board.rows if row["player"] == player]
        assert sorted(items, key=identity) == sorted(want, key=identity)
        assert [item["score"] for item in items] == sorted(row["score"] for row in want)


def test_a_global_index_pages(board):
    want = sorted((row for row in board.rows if row["player"] == "player_0007"), key=lambda row: row["score"])
    pages = list(pages_of(
        board.table.query, IndexName="by_player", KeyConditionExpression=Key("player").eq("player_0007"), Limit=1))
    assert [item["score"] for page in pages for item in page["Items"]] == [row["score"] for row in want]
    for page in pages[:-1]:
        assert set(page["LastEvaluatedKey"]) == {"pk", "sk", "player", "score"}
        assert page["LastEvaluatedKey"]["pk"] == page["Items"][-1]["pk"]


@pytest.mark.parametrize("name", ["by_region", "by_player"])
def test_an_index_scan_sees_every_row_once(board, name):
    pages = pages_of(board.table.scan, IndexName=name, Limit=300)
    assert sorted((item for page in pages for item in page["Items"]), key=identity) == sorted(
        board.rows, key=identity)
