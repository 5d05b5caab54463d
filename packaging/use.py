#!/usr/bin/env python3
"""Uses a DynamoDB endpoint without a client library: makes a table, puts an item, gets it, reads 30 items back in one Query.

    packaging/use.py http://127.0.0.1:8000             waits up to 10 s for the endpoint
    packaging/use.py http://127.0.0.1:8000 --get       gets the item that an earlier run has put

Python's standard library alone, so that nothing has to be installed beside the package that is tried.
"""

import argparse
import http.client
import json
import time
import urllib.error
import urllib.request

TABLE = "Tried"
KEY = {"pk": {"S": "game_x"}, "sk": {"S": "first"}}
ITEM = {**KEY, "score": {"N": "42"}}


def call(endpoint, operation, **parameters):
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    # Credentials and signature are made up: a server without clients in its rules compares the dates alone.
    authorization = (f"AWS4-HMAC-SHA256 Credential=local/{now[:8]}/us-east-1/dynamodb/aws4_request, "
                     f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}")
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}",
               "Authorization": authorization, "X-Amz-Date": now}
    request = urllib.request.Request(endpoint, json.dumps(parameters).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"use.py: {operation} answered {error.code}: {error.read().decode()}") from None


def wait(endpoint, seconds):
    """Until the endpoint answers, or SECONDS are over."""
    end = time.monotonic() + seconds
    while True:
        try:
            return call(endpoint, "ListTables")
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError) as error:
            if time.monotonic() > end:
                raise SystemExit(f"use.py: {endpoint} does not answer: {error}") from None
            time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("endpoint")
    parser.add_argument("--get", action="store_true")
    options = parser.parse_args()
    endpoint = options.endpoint
    wait(endpoint, 10)
    if not options.get:
        call(endpoint, "CreateTable", TableName=TABLE, BillingMode="PAY_PER_REQUEST",
             AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
             KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}])
        call(endpoint, "PutItem", TableName=TABLE, Item=ITEM)
        for number in range(30):
            call(endpoint, "PutItem", TableName=TABLE, Item={"pk": {"S": "many"}, "sk": {"S": f"{number:02}"}})
    got = call(endpoint, "GetItem", TableName=TABLE, Key=KEY)
    assert got == {"Item": ITEM}, got
    many = call(endpoint, "Query", TableName=TABLE, KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": "many"}})
    assert [item["sk"]["S"] for item in many["Items"]] == [f"{number:02}" for number in range(30)], many
    print(f"{endpoint}: put, got and queried")


if __name__ == "__main__":
    main()
