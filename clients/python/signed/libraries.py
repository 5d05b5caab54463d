"""Libraries that sign, each behind the same few calls. Items are plain dicts; an error that was refused is told by `name`."""

import asyncio
import json
import os
import re
import ssl
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import aiohttp
import boto3
import pydynox
from aiodynamo.client import Client
from aiodynamo.credentials import Key, StaticCredentials
from aiodynamo.errors import UnknownError
from aiodynamo.expressions import F, HashKey
from aiodynamo.http.aiohttp import AIOHTTP
from aiodynamo.models import BatchGetRequest, BatchWriteRequest, ReturnValues, StaticDelayRetry
from aiodynamo.operations import Get, Put
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.config import Config
from yarl import URL

REGION = "us-east-1"
read, write = TypeDeserializer().deserialize, TypeSerializer().serialize
ADD = {"UpdateExpression": "ADD n :one", "ReturnValues": "ALL_NEW", "ExpressionAttributeValues": {":one": {"N": "1"}}}


def wire(item):
    return {name: write(Decimal(value) if isinstance(value, int) else value) for name, value in item.items()}


def plain(item):
    return {name: read(value) for name, value in item.items()}


class Boto3:
    """DynamoDB's operations by their names, with members as they are on the wire. The AWS CLI has the same calls."""

    def __init__(self, gateway, key, secret, token=None, region=REGION, service="dynamodb", retries=0):
        self.client = boto3.client(
            service, endpoint_url=gateway.endpoint, region_name=region, verify=gateway.ca, aws_access_key_id=key,
            aws_secret_access_key=secret, aws_session_token=token, config=Config(retries={"total_max_attempts": 1 + retries}))

    def call(self, operation, **members):
        name = re.sub("(?<!^)([A-Z])", r"_\1", operation).lower()
        return getattr(self.client, name)(**members)

    def name(self, error):
        return error.response["Error"]["Code"]

    def put(self, table, item):
        self.call("PutItem", TableName=table, Item=wire(item))

    def get(self, table, key):
        return plain(self.call("GetItem", TableName=table, Key=wire(key))["Item"])

    def add(self, table, key):
        return plain(self.call("UpdateItem", TableName=table, Key=wire(key), **ADD)["Attributes"])

    def pages(self, table, pk, size):
        more = {}
        while more is not None:
            page = self.call("Query", TableName=table, KeyConditionExpression="pk = :p", Limit=size,
                             ExpressionAttributeValues=wire({":p": pk}), **more)
            yield [plain(item) for item in page["Items"]]
            more = {"ExclusiveStartKey": page["LastEvaluatedKey"]} if "LastEvaluatedKey" in page else None

    def put_many(self, table, items):
        puts = [{"PutRequest": {"Item": wire(item)}} for item in items]
        assert self.call("BatchWriteItem", RequestItems={table: puts})["UnprocessedItems"] == {}

    def get_many(self, table, keys):
        answer = self.call("BatchGetItem", RequestItems={table: {"Keys": [wire(key) for key in keys]}})
        return [plain(item) for item in answer["Responses"][table]]

    def put_all(self, table, items):
        puts = [{"Put": {"TableName": table, "Item": wire(item)}} for item in items]
        self.call("TransactWriteItems", TransactItems=puts)

    def get_all(self, table, keys):
        gets = [{"Get": {"TableName": table, "Key": wire(key)}} for key in keys]
        return [plain(answer["Item"]) for answer in self.call("TransactGetItems", TransactItems=gets)["Responses"]]


class Cli(Boto3):
    """The AWS CLI, as a process of its own."""

    def __init__(self, gateway, key, secret, token=None):
        self.words = ["--endpoint-url", gateway.endpoint, "--ca-bundle", gateway.ca, "--region", REGION, "--output", "json"]
        self.environment = {
            **os.environ, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_PAGER": "", "AWS_MAX_ATTEMPTS": "1",
            "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true",
            **({"AWS_SESSION_TOKEN": token} if token else {}),
        }

    def call(self, operation, **members):
        dashed = re.sub("(?<!^)([A-Z])", r"-\1", operation).lower()
        words = [str(Path(sys.executable).parent / "aws"), "dynamodb", dashed, "--no-paginate", *self.words]
        done = subprocess.run(
            [*words, "--cli-input-json", json.dumps(members)], env=self.environment, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout or "{}")

    def name(self, error):
        found = re.search(r"An error occurred \((\w+)\)", str(error))
        return found[1] if found else str(error)


class Aiodynamo:
    """aiodynamo above aiohttp. Each call has a loop of its own, so it has a connection of its own."""

    def __init__(self, gateway, key, secret, token=None):
        self.endpoint, self.tls = URL(gateway.endpoint), ssl.create_default_context(cafile=gateway.ca)
        self.credentials = StaticCredentials(Key(key, secret, token))

    def call(self, use):
        async def within():
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.tls)) as session:
                return await use(Client(
                    AIOHTTP(session), self.credentials, REGION, self.endpoint, throttle_config=StaticDelayRetry(time_limit_secs=0)))
        return asyncio.run(within())

    def name(self, error):
        if isinstance(error, UnknownError):
            return json.loads(error.body)["__type"].rpartition("#")[2]
        return type(error).__name__

    def put(self, table, item):
        self.call(lambda client: client.put_item(table, item))

    def get(self, table, key):
        return self.call(lambda client: client.get_item(table, key))

    def add(self, table, key):
        return self.call(lambda client: client.update_item(table, key, F("n").add(1), return_values=ReturnValues.all_new))

    def pages(self, table, pk, size):
        start, more = None, True
        while more:
            page = self.call(lambda client: client.query_single_page(table, HashKey("pk", pk), start_key=start, limit=size))
            yield page.items
            start, more = page.last_evaluated_key, not page.is_last_page

    def put_many(self, table, items):
        assert self.call(lambda client: client.batch_write({table: BatchWriteRequest(items_to_put=items)})) == {}

    def get_many(self, table, keys):
        return self.call(lambda client: client.batch_get({table: BatchGetRequest(keys)})).items[table]

    def put_all(self, table, items):
        self.call(lambda client: client.transact_write_items([Put(table, item) for item in items]))

    def get_all(self, table, keys):
        return self.call(lambda client: client.transact_get_items([Get(table, key) for key in keys]))


class Pydynox:
    """pydynox, whose core is the AWS SDK for Rust. It trusts whom SSL_CERT_FILE names."""

    def __init__(self, gateway, key, secret, token=None):
        os.environ["SSL_CERT_FILE"] = gateway.ca
        self.client = pydynox.DynamoDBClient(
            region=REGION, endpoint_url=gateway.endpoint, access_key=key, secret_key=secret, session_token=token, max_retries=0)

    def name(self, error):
        # A type that it has no class for is told by its sentence alone.
        return str(error) if type(error) is pydynox.exceptions.PydynoxException else type(error).__name__

    def put(self, table, item):
        self.client.sync_put_item(table, item)

    def get(self, table, key):
        return self.client.sync_get_item(table, key)

    def add(self, table, key):
        return self.client.sync_update_item(
            table, key, update_expression="ADD n :one", expression_attribute_values={":one": 1}, return_values="ALL_NEW")

    def pages(self, table, pk, size):
        start, more = None, True
        while more:
            page = self.client.sync_query(
                table, "pk = :p", expression_attribute_values={":p": pk}, limit=size, page_size=size, last_evaluated_key=start)
            yield list(page)
            start = page.last_evaluated_key
            more = start is not None

    def put_many(self, table, items):
        self.client.sync_batch_write(table, put_items=items)

    def get_many(self, table, keys):
        return self.client.sync_batch_get(table, keys)

    def put_all(self, table, items):
        self.client.sync_transact_write([{"type": "put", "table": table, "item": item} for item in items])

    def get_all(self, table, keys):
        return self.client.sync_transact_get([{"table": table, "key": key} for key in keys])
