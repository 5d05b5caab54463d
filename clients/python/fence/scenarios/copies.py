"""A sharded table is restored under another name, and an operator does what the refusal advises."""

from fence.clients import create
from fence.cluster import GATEWAYS
from fence.oracle import ACKED

RULES = """
[[rule]]
table = "Orders*"
strategy = "calculated"
shards = 6
"""
ORIGINAL, COPY, ITEMS = "Orders", "Orders-restored", 40


def run(stage):
    stage.begin(RULES)
    clients = stage.clients
    stage.insist(lambda: create(clients.at[0], ORIGINAL), "ResourceInUse")
    for number in range(ITEMS):
        stage.surely(lambda: clients.put(number % GATEWAYS, ORIGINAL, "o", f"{number:02}", f"{number}"))
    create(stage.raw, COPY)
    for page in stage.raw.get_paginator("scan").paginate(TableName=ORIGINAL):
        for item in page["Items"]:
            stage.raw.put_item(TableName=COPY, Item=item)
    answer, refusal = stage.insist(lambda: clients.at[1].scan(TableName=COPY))
    if answer:
        stage.fault("accepted", f"a Scan of a restored copy that nobody put on record: {answer['Count']} items")
    else:
        stage.notes.append(f"the copy is refused: {refusal[-140:]}")
    adoption = stage.cluster.adopt(COPY, RULES)
    code, _, complaint = adoption.wait(5 * stage.cluster.bounds.step + 30)
    if code != 0:
        stage.notes.append(f"adopt is refused: {complaint[:200]}")
    else:
        # Then it has to be right: every item of the original, under its own key.
        for number in range(ITEMS):
            clients.oracle.end(COPY, clients.oracle.begin(COPY, "o", f"{number:02}", f"{number}"), ACKED)
    stage.settle()
