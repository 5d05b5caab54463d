"""A client hangs up during a gateway's first look at a table; time to live is asked for through a gateway that has not seen the table."""

import boto3
from botocore.config import Config

from fence.clients import FAILURES, create

RULES = """
[[rule]]
table = "Late-*"
strategy = "calculated"
shards = 5

[[rule]]
table = "Votes*"
strategy = "counter"
attributes = ["n"]
shards = 4
"""
ITEMS = 12
EXPIRY = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}}


def run(stage):
    stage.begin(RULES)
    for number in range(3):
        hang_up(stage, f"Late-{number}")
    expiry_through_another_gateway(stage)
    first_touch_of_what_expires(stage)
    stage.settle()


def hang_up(stage, table):
    """The look finds no table; the client that asked goes away before it is answered; the table is made; others write through the same
    gateway."""
    clients, gateways = stage.clients, stage.cluster.gateways
    short = boto3.client(
        "dynamodb", endpoint_url=gateways[0].endpoint, region_name="us-east-1", aws_access_key_id="local", aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=0.5),
    )
    with stage.network.hold(["g0"], ["DescribeTable"], table, answer=True) as hold:
        try:
            short.get_item(TableName=table, Key={"pk": {"S": "k"}, "sk": {"S": "k"}})
        except FAILURES:
            pass
        if not hold.held:
            stage.notes.append("no look was caught")
        # A gateway asks twice a second whether a client is still there.
        clients.rest(1.2)
    create(stage.raw, table)
    stage.surely(lambda: clients.put(1, table, "hot", "first", "1"))
    for number in range(ITEMS):
        stage.surely(lambda: clients.put(0, table, "hot", f"{number}", "1"))


def expiry_through_another_gateway(stage):
    clients = stage.clients
    stage.insist(lambda: create(clients.at[0], "Votes"), "ResourceInUse")
    stage.surely(lambda: clients.add(0, "Votes", "hot", "a", 1))
    for number in range(40):
        clients.add(0, "Votes", "hot", "a", number)
    for number in range(1, len(clients.at)):
        answer, refusal = stage.insist(lambda: clients.at[number].update_time_to_live(TableName="Votes", **EXPIRY))
        if answer:
            stage.fault("accepted", f"UpdateTimeToLive on a table of counters, at g{number}")
            # Or the next gateway would be refused because it is on already.
            stage.raw.update_time_to_live(TableName="Votes", TimeToLiveSpecification={"Enabled": False, "AttributeName": "ttl"})
        elif "ValidationException" not in refusal:
            stage.notes.append(f"UpdateTimeToLive: {refusal[:90]}")


def first_touch_of_what_expires(stage):
    create(stage.raw, "Votes-expiring")
    stage.raw.update_time_to_live(TableName="Votes-expiring", **EXPIRY)
    answer, refusal = stage.insist(lambda: stage.clients.at[2].update_item(
        TableName="Votes-expiring", Key={"pk": {"S": "hot"}, "sk": {"S": "a"}}, UpdateExpression="ADD n :n",
        ExpressionAttributeValues={":n": {"N": "1"}},
    ))
    if answer:
        stage.fault("accepted", "a counter in a table whose items expire")
    elif "ValidationException" not in refusal:
        stage.notes.append(f"the first use of what expires: {refusal[:90]}")
