"""The tables that a story makes, by a name of its own and a tag, and how they are found again and deleted.

The registry is made by a gateway, without a tag. It has the table's name with an ending, and is deleted first: so as long as anything is left, the
tagged table is.
"""

import re
import secrets
import time

from botocore.exceptions import ClientError

PREFIX = "heatsink-story-"
TAG = "heatsink-story"
NAME = re.compile(re.escape(PREFIX) + r"[0-9a-f]{12}")
INDEX = "by-status"
REGISTRY = ".registry"
PATIENCE = 300


def new_name():
    return PREFIX + secrets.token_hex(6)


def registry_of(name):
    return name + REGISTRY


def make(client, name):
    """The story's table, on demand, and its index, which holds only items that have a status."""
    client.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST", Tags=[{"Key": TAG, "Value": name}],
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one in ("pk", "sk", "status")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[{
            "IndexName": INDEX, "Projection": {"ProjectionType": "ALL"},
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}, {"AttributeName": "pk", "KeyType": "RANGE"}],
        }],
    )
    until(f"{name} is made", lambda: status(client, name) == "ACTIVE")


def status(client, name):
    """None where there is no such table."""
    try:
        return client.describe_table(TableName=name)["Table"]["TableStatus"]
    except client.exceptions.ResourceNotFoundException:
        return None


def left(client):
    """The names of tables that stories made and that are still there."""
    names = [name for page in client.get_paginator("list_tables").paginate() for name in page["TableNames"]]
    return [name for name in names if NAME.fullmatch(name) and is_marked(client, name)]


def is_marked(client, name):
    """Whether the tag says that a story made it. A store without tags, DynamoDB Local, has the name alone."""
    try:
        arn = client.describe_table(TableName=name)["Table"]["TableArn"]
        tags = client.list_tags_of_resource(ResourceArn=arn)["Tags"]
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "UnknownOperationException":
            return True
        if code == "ResourceNotFoundException":
            return False
        raise
    return {"Key": TAG, "Value": name} in tags


def clean_up(client, name, say):
    """Deletes a story's registry, then its table. Both may be there or not, and may just be being made."""
    for each in (registry_of(name), name):
        if status(client, each) is None:
            continue
        until(f"{each} is deleted", lambda: gone(client, each))
        say(f"deleted {each}")


def gone(client, name):
    """One try to delete a table: whether it is gone. A table that is being made, changed or deleted refuses until that is over."""
    now = status(client, name)
    if now is None:
        return True
    if now != "ACTIVE":
        return False
    try:
        if client.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
            client.update_table(TableName=name, DeletionProtectionEnabled=False)
        client.delete_table(TableName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("ResourceInUseException", "ResourceNotFoundException", "LimitExceededException", "ThrottlingException"):
            raise
    return status(client, name) is None


def until(what, so):
    deadline, pause = time.monotonic() + PATIENCE, 0.2
    while not so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {PATIENCE} s")
        time.sleep(pause)
        pause = min(2 * pause, 3)
