"""The fixtures that pytest finds once the package is installed."""

import boto3
import pytest

SEEN = []


def tables(server):
    client = boto3.client(
        "dynamodb", endpoint_url=server.url, region_name=server.region, aws_access_key_id="local", aws_secret_access_key="local")
    before = client.list_tables()["TableNames"]
    client.create_table(
        TableName=f"Table{len(before)}", BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}])
    return before


@pytest.mark.parametrize("time", [1, 2])
def test_each_test_has_a_fresh_server(heatsink_local, time):
    assert tables(heatsink_local) == []


def test_the_first_of_the_session(heatsink_session):
    assert tables(heatsink_session) == []


def test_the_second_of_the_session(heatsink_session):
    assert tables(heatsink_session) == ["Table0"]


@pytest.mark.heatsink(region="eu-west-1", partitions=False)
def test_a_marker_has_settings(heatsink_local):
    assert heatsink_local.region == "eu-west-1"
