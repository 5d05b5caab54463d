"""Writers and readers with boto3: keys that only one client writes, its pagers and resources, and Scans of the whole table.

Not here: each kind of write, which `resharding.items` has; what each item must be, which the oracle knows.
"""

import time
from collections import Counter, defaultdict

from boto3.dynamodb.conditions import Key

from fence.adoption.mappers import BIRTHS, SLOTS
from fence.clients import FAILURES, PAUSE
from fence.oracle import PHYSICAL, value_of
from fence.resharding.items import Client
from fence.resharding.scans import SegmentReader


class Writer(Client):
    """A client and its partition of the keys. Now and then it writes a key that is new."""

    def __init__(self, stage, table, name, at, keys, partiql, readers):
        super().__init__(stage, table, name, at, [], partiql)
        self.keys, self.readers = list(keys), readers
        self.items = [self.fresh(pk, slot) for pk in keys for slot in range(SLOTS)]

    def act(self, rng):
        chance = rng.random()
        if chance < BIRTHS:
            self.born(rng)
        elif chance < 0.25:
            rng.choice(self.readers).own(rng, rng.choice(self.keys))
        else:
            super().act(rng)
        self.stage.clients.rest(rng.random() * 0.1)

    def born(self, rng):
        pk = f"born-{self.name}-{len(self.keys)}"
        self.keys.append(pk)
        items = [self.fresh(pk, slot) for slot in range(SLOTS)]
        self.items += items
        new = {"v": {"S": self.next()}}
        self.write(rng, "PutItem of a new key", items[0], new, lambda at: at.put_item(TableName=self.table, Item=items[0].at(**new)))


class TableReader(SegmentReader):
    """Reads keys by Query, and all by Scan: by boto3's paginators and resources, and page by page through any gateway."""

    INDEXES = (None,)

    def __init__(self, stage, table, name, at, changed, sdk, resources):
        super().__init__(stage, table, name, at, [], changed)
        self.sdk, self.resources = sdk, resources

    def read(self, rng):
        known = list(self.oracle.tables[self.table].registers)
        if not known:
            return
        pk = rng.choice(known)
        chance = rng.random()
        if chance < 0.85:
            self.keys = [pk]
            self.query(rng) if chance < 0.3 else self.own(rng, pk)
        else:
            rng.choice([self.scan, self.scan_by_paginator, self.scan_in_segments])(rng)

    # One key.

    def own(self, rng, pk):
        """A key by the library's own pages, at one gateway."""
        number, forward, limit = rng.randrange(len(self.at)), rng.random() < 0.5, rng.choice([1, 2, 3, 50])
        kind = rng.choice(["paginator", "resource"])
        begin = time.monotonic()
        try:
            rows = list(getattr(self, f"by_{kind}")(number, pk, forward, limit))
        except FAILURES:
            self.counts[f"keys by {kind} given up"] += 1
            self.stage.clients.rest(PAUSE)
            return
        self.counts[f"keys by {kind}"] += 1
        what, order = f"Query by {kind} of boto3 at g{number} by {limit}", [sk for _, sk, _ in rows]
        if order != sorted(order, reverse=not forward):
            self.oracle.fault("disordered", self.table, pk, "", f"{what} showed {order}")
        for shown, sk, _ in rows:
            if shown != pk:
                self.oracle.fault("shown", self.table, pk, sk, f"{what} showed the key {shown!r}")
        self.oracle.shown(self.table, pk, [row[1:] for row in rows], begin, time.monotonic(), 0, what)

    def by_paginator(self, number, pk, forward, limit):
        pages = self.sdk[number].get_paginator("query").paginate(
            TableName=self.table, KeyConditionExpression="pk = :k", ExpressionAttributeValues={":k": {"S": pk}}, ConsistentRead=True,
            ScanIndexForward=forward, PaginationConfig={"PageSize": limit},
        )
        return ((item["pk"]["S"], item["sk"]["S"], value_of(item)) for page in pages for item in page["Items"])

    def by_resource(self, number, pk, forward, limit):
        request = {"KeyConditionExpression": Key("pk").eq(pk), "ConsistentRead": True, "ScanIndexForward": forward, "Limit": limit}
        while True:
            page = self.resources[number].query(**request)
            for item in page["Items"]:
                number_of, value = item.get("n"), item.get("v")
                yield item["pk"], item["sk"], value if number_of is None else f"{value or ''}+{number_of}"
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    # The table.

    def scan(self, rng):
        begin = time.monotonic()
        items = self.pages(rng, "scan", {"TableName": self.table, "ConsistentRead": True, "Limit": rng.choice([150, 400, 2000])}, 0)
        self.told("Scan", items, begin)

    def scan_by_paginator(self, rng):
        begin, number = time.monotonic(), rng.randrange(len(self.at))
        try:
            pages = self.sdk[number].get_paginator("scan").paginate(
                TableName=self.table, ConsistentRead=True, PaginationConfig={"PageSize": rng.choice([400, 2000])})
            items = [item for page in pages for item in page["Items"]]
        except FAILURES as error:
            self.ends(error, begin)
            items = None
        self.told("Scan by paginator", items, begin)

    def scan_in_segments(self, rng):
        super().read(rng)

    def told(self, what, items, begin):
        self.counts[f"{what}{' given up' if items is None else ''}"] += 1
        if items is not None:
            self.table_shown(items, begin, what, self.changed(begin, time.monotonic()))

    def table_shown(self, items, begin, what, moved):
        """All items that a Scan showed. If a key moved it may show an item twice."""
        if moved:
            items = list({(item["pk"]["S"], item["sk"]["S"]): item for item in items}.values())
        else:
            self.counts["Scans at rest"] += 1
        end, rows = time.monotonic(), defaultdict(list)
        for item in items:
            self.oracle.logical(self.table, item, what, ("pk",))
            rows[item["pk"]["S"]].append((item["sk"]["S"], value_of(item)))
        logical = {pk for pk in rows if not PHYSICAL.search(pk)}
        for pk in logical | set(list(self.oracle.tables[self.table].registers)):
            self.oracle.shown(self.table, pk, rows.get(pk, []), begin, end, 0, what)

    def ends(self, error, begin):
        """A Scan that began before the table turned has to begin again."""
        if "the statement again" not in str(error):
            return False
        self.counts["begun again"] += 1
        return True


def counted(readers):
    total = Counter()
    for reader in readers:
        total.update(reader.counts)
    return ", ".join(f"{times} {what}" for what, times in total.most_common())
