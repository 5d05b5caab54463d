"""Readers of whole keys and of the table, page by page through any gateway, over cursors that live across changes.

What they show must be in order, complete and without doubles. Not here: what each item must be, which the oracle knows.
"""

import time

from fence.clients import FAILURES, PAUSE
from fence.oracle import PHYSICAL, value_of

# For how long a page is asked for again.
PATIENCE = 30
# Between two readings of a reader.
REST = 0.3


class Reader:
    def __init__(self, stage, table, name, at, keys, changed):
        self.stage, self.oracle, self.table, self.name, self.at, self.keys = stage, stage.oracle, table, name, at, keys
        self.changed = changed  # whether a key began or ended a move between two moments

    def act(self, rng):
        self.read(rng)
        # A page of a key that moves is many requests to the store. Readers leave some of it to writers.
        self.stage.clients.rest(REST)

    def read(self, rng):
        if rng.random() < 0.12:
            self.scan(rng)
        else:
            self.query(rng)

    def query(self, rng):
        pk, forward, digit = rng.choice(self.keys), rng.random() < 0.5, rng.choice([None, None, *"0123456789"])
        request = {
            "TableName": self.table, "ConsistentRead": True, "ScanIndexForward": forward, "Limit": rng.choice([2, 5, 17, 60, 400]),
            "KeyConditionExpression": "pk = :k" + (" AND begins_with(sk, :d)" if digit else ""),
            "ExpressionAttributeValues": {":k": {"S": pk}, **({":d": {"S": digit}} if digit else {})},
        }
        if digit is None:
            request["Limit"] = max(request["Limit"], 60)
        begin = time.monotonic()
        items = self.pages(rng, "query", request, rng.choice([0, 0, 0, 0.2, 1.0]))
        if items is None:
            return
        what = f"Query {'upwards' if forward else 'downwards'}{f' of {digit}' if digit else ''} by {request['Limit']}"
        order = [item["sk"]["S"] for item in items]
        if order != sorted(order, reverse=not forward):
            at = next(at for at in range(1, len(order)) if (order[at - 1] > order[at]) == forward)
            self.oracle.fault("disordered", self.table, pk, order[at], f"{what} showed it after {order[at - 1]}")
        asked = None if digit is None else [sk for sk in list(self.oracle.tables[self.table].registers[pk]) if sk.startswith(digit)]
        self.shown(pk, items, begin, what, asked)

    def scan(self, rng):
        begin = time.monotonic()
        items = self.pages(rng, "scan", {"TableName": self.table, "ConsistentRead": True, "Limit": rng.choice([40, 150, 1000])}, 0)
        if items is not None:
            self.table_shown(items, begin, "Scan", self.changed(begin, time.monotonic()))

    def table_shown(self, items, begin, what, moved):
        """All items that a Scan showed. If a key moved it may show an item twice."""
        if moved:
            items = list({(item["pk"]["S"], item["sk"]["S"]): item for item in items}.values())
        for pk in self.keys:
            self.shown(pk, [item for item in items if item["pk"]["S"] == pk], begin, what)
        for pk in {item["pk"]["S"] for item in items} - set(self.keys):
            if not PHYSICAL.search(pk):
                self.oracle.fault("phantom", self.table, pk, "", f"{what} showed this key, which nobody wrote")
        for item in items:
            self.oracle.logical(self.table, item, what, ("pk",))

    def shown(self, pk, items, begin, what, asked=None):
        rows = [(item["sk"]["S"], value_of(item)) for item in items]
        self.oracle.shown(self.table, pk, rows, begin, time.monotonic(), 0, what, asked)

    def ends(self, error, begin):
        """Whether what was refused so cannot go on, and has to begin again."""
        return False

    def pages(self, rng, operation, request, pause, one=False):
        """All items from the request's position on, or `one` page of them, each page through another gateway. Leaves the position in the request.
        None where a page was refused over and over."""
        items, refused, begin = [], None, time.monotonic()
        while True:
            try:
                page = getattr(self.at[rng.randrange(len(self.at))], operation)(**request)
            except FAILURES as error:
                refused = refused or time.monotonic()
                if self.ends(error, begin) or time.monotonic() - refused > PATIENCE or self.stage.clients.stopping.is_set():
                    return None
                self.stage.clients.rest(PAUSE)
                continue
            refused = None
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
            if one:
                return items
            if pause:
                self.stage.clients.rest(rng.random() * pause)
