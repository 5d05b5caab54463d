"""boto3 through a gateway that knows its clients: what it adds to requests and gets back, presigned requests, rights."""

import json
import ssl
import urllib.error
import urllib.request
import zlib

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from libraries import REGION, Boto3


def connect(gateway, *credentials, **more):
    return Boto3(gateway, *credentials, **more).client


def code(call):
    with pytest.raises(ClientError) as failed:
        call()
    return failed.value.response["Error"]["Code"]


@pytest.mark.parametrize("secret", ["admin/+secret", "former"])
def test_a_large_request_is_served_under_either_secret(gateway, secret):
    client = connect(gateway, "admin", secret)
    key = {"pk": {"S": "team1#ä  b"}, "sk": {"S": secret}}
    item = {**key, "text": {"S": "☃" * 100_000}}
    client.put_item(TableName="Scores", Item=item)
    assert client.get_item(TableName="Scores", Key=key)["Item"] == item


@pytest.mark.parametrize(("key", "secret", "token"), [("admin", "admin/+secret", "token"), ("team1", "team", "token/+=")])
def test_another_token_is_not(gateway, key, secret, token):
    assert code(connect(gateway, key, secret, token).list_tables) == "UnrecognizedClientException"


def test_what_it_adds_is_taken_and_what_it_checks_is_right(gateway):
    client, sent, got = connect(gateway, "team1", "team", "token/+==", retries=1), [], []
    client.meta.events.register("before-send", lambda request, **_: sent.append(request.headers))
    client.meta.events.register("response-received", lambda response_dict, **_: got.append(response_dict))
    client.list_tables()
    assert {"amz-sdk-invocation-id", "amz-sdk-request", "X-Amz-Security-Token"} <= set(sent[0])
    # It sends the request again where this is wrong.
    assert [(answer["headers"]["x-amz-crc32"], answer["status_code"]) for answer in got] == [(str(zlib.crc32(got[0]["body"])), 200)]


def test_another_region_is_not_served(gateway):
    assert code(connect(gateway, "admin", "admin/+secret", region="eu-west-1").list_tables) == "InvalidSignatureException"


def test_streams_are_signed_as_tables_are(gateway):
    assert connect(gateway, "admin", "admin/+secret", service="dynamodbstreams").list_streams()["Streams"] == []


def test_a_presigned_request_is_refused(gateway):
    body = b"{}"
    request = AWSRequest("POST", gateway.endpoint + "/", data=body, headers={
        "content-type": "application/x-amz-json-1.0", "x-amz-target": "DynamoDB_20120810.ListTables"})
    SigV4QueryAuth(Credentials("admin", "admin/+secret"), "dynamodb", REGION).add_auth(request)
    prepared = request.prepare()
    sent = urllib.request.Request(prepared.url, data=body, headers=dict(prepared.headers), method="POST")
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(sent, timeout=10, context=ssl.create_default_context(cafile=gateway.ca))
    refusal = json.load(failed.value)
    assert refusal["__type"].endswith("IncompleteSignatureException")
    assert "presigned" in refusal["message"]


def test_rights_are_on_logical_keys(gateway):
    team = connect(gateway, "team1", "team", "token/+==")
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
