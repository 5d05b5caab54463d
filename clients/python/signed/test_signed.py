"""boto3 through a gateway that knows its clients: right and wrong secrets, session tokens, presigned requests, rights."""

import json
import os
import stat
import urllib.error
import urllib.request

import boto3
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from stage import serving

REGION = "us-east-1"
RULES = """
[[rule]]
table    = "Scores"
strategy = "calculated"
shards   = 4

[[client]]
id                 = "admin"
secret_file        = "admin.secret"
former_secret_file = "former.secret"

[[client]]
id                 = "team1"
secret_file        = "team.secret"
session_token_file = "team.token"
tables             = "Scores"
keys               = "team1#*"
"""
SECRETS = {"admin.secret": "admin/+secret", "former.secret": "former", "team.secret": "team", "team.token": "token/+=="}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed")
    for name, text in SECRETS.items():
        (folder / name).write_text(text)
        os.chmod(folder / name, stat.S_IRUSR | stat.S_IWUSR)
    (folder / "heatsink.toml").write_text(RULES)
    with serving(folder / "heatsink.toml") as address:
        key = lambda name, kind: {"AttributeName": name, "KeyType": kind}
        connect(address, "admin", "admin/+secret").create_table(
            TableName="Scores", BillingMode="PAY_PER_REQUEST",
            KeySchema=[key("pk", "HASH"), key("sk", "RANGE")],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")])
        yield address


def connect(endpoint, key, secret, token=None, region=REGION, service="dynamodb"):
    return boto3.client(
        service, endpoint_url=endpoint, region_name=region, aws_access_key_id=key, aws_secret_access_key=secret,
        aws_session_token=token, config=Config(retries={"total_max_attempts": 1}))


def code(call):
    with pytest.raises(ClientError) as failed:
        call()
    return failed.value.response["Error"]["Code"]


@pytest.mark.parametrize(("key", "secret", "token"), [
    ("admin", "admin/+secret", None), ("admin", "former", None), ("team1", "team", "token/+=="),
])
def test_a_right_signature_is_served(endpoint, key, secret, token):
    client = connect(endpoint, key, secret, token)
    key = {"pk": {"S": "team1#ä  b"}, "sk": {"S": "x"}}
    item = {**key, "text": {"S": "☃" * 100_000}}
    client.put_item(TableName="Scores", Item=item)
    assert client.get_item(TableName="Scores", Key=key)["Item"] == item


@pytest.mark.parametrize(("key", "secret", "token", "expected"), [
    ("admin", "wrong", None, "InvalidSignatureException"),
    ("nobody", "admin/+secret", None, "UnrecognizedClientException"),
    ("admin", "admin/+secret", "token", "UnrecognizedClientException"),
    ("team1", "team", None, "UnrecognizedClientException"),
    ("team1", "team", "token/+=", "UnrecognizedClientException"),
    ("team1", "wrong", "token/+==", "InvalidSignatureException"),
])
def test_a_wrong_one_is_not(endpoint, key, secret, token, expected):
    assert code(connect(endpoint, key, secret, token).list_tables) == expected


def test_another_region_is_not_served(endpoint):
    assert code(connect(endpoint, "admin", "admin/+secret", region="eu-west-1").list_tables) == "InvalidSignatureException"


def test_streams_are_signed_as_tables_are(endpoint):
    assert connect(endpoint, "admin", "admin/+secret", service="dynamodbstreams").list_streams()["Streams"] == []


def test_a_presigned_request_is_refused(endpoint):
    body = b"{}"
    request = AWSRequest("POST", endpoint + "/", data=body, headers={
        "content-type": "application/x-amz-json-1.0", "x-amz-target": "DynamoDB_20120810.ListTables"})
    SigV4QueryAuth(Credentials("admin", "admin/+secret"), "dynamodb", REGION).add_auth(request)
    prepared = request.prepare()
    sent = urllib.request.Request(prepared.url, data=body, headers=dict(prepared.headers), method="POST")
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(sent, timeout=10)
    assert json.load(failed.value)["__type"].endswith("IncompleteSignatureException")


def test_rights_are_on_logical_keys(endpoint):
    team = connect(endpoint, "team1", "team", "token/+==")
    for number in range(20):
        team.put_item(TableName="Scores", Item={"pk": {"S": "team1#x"}, "sk": {"S": str(number)}})
    query = dict(TableName="Scores", KeyConditionExpression="pk = :p", Select="COUNT")
    assert team.query(**query, ExpressionAttributeValues={":p": {"S": "team1#x"}})["Count"] == 20
    denied = "AccessDeniedException"
    assert code(lambda: team.query(**query, ExpressionAttributeValues={":p": {"S": "team2#x"}})) == denied
    assert code(lambda: team.scan(TableName="Scores")) == denied
    assert code(lambda: team.execute_statement(Statement="SELECT * FROM Scores")) == denied
    assert team.execute_statement(Statement="SELECT sk FROM Scores WHERE pk = 'team1#x'")["Items"]
    both = [{"Put": {"TableName": "Scores", "Item": {"pk": {"S": f"team{n}#y"}, "sk": {"S": "y"}}}} for n in (1, 2)]
    assert code(lambda: team.transact_write_items(TransactItems=both)) == denied
    assert "Item" not in team.get_item(TableName="Scores", Key=both[0]["Put"]["Item"])
