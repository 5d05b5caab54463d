"""A sharded table is restored under another name, and an operator does what the refusal advises."""

from fence.clients import FAILURES, create
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
    create(clients.at[0], ORIGINAL)
    for number in range(ITEMS):
        while clients.put(stage.any(), ORIGINAL, "o", f"{number:02}", f"{number}") != ACKED and not clients.stopping.is_set():
            pass
    create(stage.raw, COPY)
    for page in stage.raw.get_paginator("scan").paginate(TableName=ORIGINAL):
        for item in page["Items"]:
            stage.raw.put_item(TableName=COPY, Item=item)
    try:
        found = clients.at[1].scan(TableName=COPY)["Count"]
        stage.fault("accepted", f"a Scan of a restored copy that nobody put on record: {found} items")
    except FAILURES as error:
        stage.notes.append(f"the copy is refused: {str(error)[-140:]}")
    adoption = stage.cluster.adopt(COPY, RULES)
    code, _, complaint = adoption.wait(5 * stage.cluster.bounds.step + 30)
    if code != 0:
        stage.notes.append(f"adopt is refused: {complaint[:200]}")
    else:
        # Then it has to be right: every item of the original, under its own key.
        for number in range(ITEMS):
            clients.oracle.end(COPY, clients.oracle.begin(COPY, "o", f"{number:02}", f"{number}"), ACKED)
    stage.settle()
