"""Readers of the table's indexes: Queries of a local one, consistent, and of a global one, page by page through any gateway.

A local index is exact. A global one may miss an item that is just moving for a moment, and may show it twice until it has come to rest: such items are
asked for again. A Query that stands between rows with equal sort keys when the key begins or ends a move may have to begin again. Items of which the
value changes meanwhile change their place in the index, so of these only the value is judged.
"""

import time
from collections import Counter

from fence.clients import PAUSE
from fence.oracle import ABSENT, value_of
from fence.resharding.readers import Reader

LOCAL, GLOBAL = "by-value", "by-group"
# For how long a global index may leave an item out that does not change.
LATE = 10


def definitions(has_stream):
    """What CreateTable says beyond the table's key."""
    key = lambda partition, sort: [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]  # noqa: E731
    whole, keys = {"ProjectionType": "ALL"}, {"ProjectionType": "KEYS_ONLY"}
    return {
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "v", "g")],
        "LocalSecondaryIndexes": [
            {"IndexName": LOCAL, "KeySchema": key("pk", "v"), "Projection": whole},
            # Nobody reads these: with them the writes that a busy machine can send are as many units as a partition takes.
            *({"IndexName": f"{LOCAL}-{number}", "KeySchema": key("pk", "v"), "Projection": keys} for number in (2, 3)),
        ],
        "GlobalSecondaryIndexes": [{"IndexName": GLOBAL, "KeySchema": key("g", "v"), "Projection": whole}],
        **({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}} if has_stream else {}),
    }


def is_listed(value):
    """Whether an item with this value is in the indexes: one that was only added to has no value of its own."""
    return value is not ABSENT and not value.startswith("+")


def unlisted(oracle, table, items, begin, end, what, belongs, may_double=False):
    """Judges rows of an index. Returns the items that it must show and did not."""
    shown, times, missing = {}, Counter(), []
    for item in items:
        place = (item["pk"]["S"], item["sk"]["S"])
        shown[place] = value_of(item)
        times[place] += 1
        oracle.logical(table, item, what, ("pk",))
    for pk, rows in list(oracle.tables[table].registers.items()):
        for sk, register in list(rows.items()):
            if not belongs(pk, sk):
                continue
            allowed = register.allowed(begin, end)
            is_still = len(set(allowed)) == 1
            if (pk, sk) not in shown:
                if is_still and is_listed(allowed[0]):
                    missing.append((pk, sk, register))
                continue
            if shown[pk, sk] not in allowed:
                oracle.fault("lost", table, pk, sk, f"{what} showed {shown[pk, sk]!r}, not {allowed[-1]!r}", register)
            if times[pk, sk] > 1 and is_still and not may_double:
                oracle.fault("doubled", table, pk, sk, f"{what} showed it {times[pk, sk]} times", register)
    return missing


class IndexReader(Reader):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.counts = Counter()

    def read(self, rng):
        self.local(rng) if rng.random() < 0.6 else self.of_group(rng)

    def local(self, rng):
        pk = rng.choice(self.keys)
        for _, sk, register in self.listed(rng, LOCAL, "pk", pk, lambda of, _: of == pk) or []:
            self.oracle.fault("lost", self.table, pk, sk, f"a consistent Query of {LOCAL} did not show it", register)

    def of_group(self, rng):
        group = f"g{rng.randrange(10)}"
        missing = self.listed(rng, GLOBAL, "g", group, lambda _, sk: sk[0] == group[1])
        since = time.monotonic()
        while missing:
            self.counts["items that the global index left out for a moment"] += len(missing)
            self.stage.clients.rest(10 * PAUSE)
            places = {(pk, sk) for pk, sk, _ in missing}
            again = self.listed(rng, GLOBAL, "g", group, lambda pk, sk: (pk, sk) in places)
            if again and time.monotonic() - since > LATE:
                for pk, sk, register in again:
                    self.oracle.fault("lost", self.table, pk, sk, f"Queries of {GLOBAL} did not show it for {LATE} s", register)
                return
            if again is not None:
                missing = again
            elif self.stage.clients.stopping.is_set():
                return

    def listed(self, rng, index, name, value, belongs):
        """One Query of an index to its end. Returns the items that it must show and did not; None where it had to begin again."""
        forward = rng.random() < 0.5
        request = {
            "TableName": self.table, "IndexName": index, "ScanIndexForward": forward, "Limit": rng.choice([7, 17, 60, 400]),
            "KeyConditionExpression": "#k = :k", "ExpressionAttributeNames": {"#k": name}, "ExpressionAttributeValues": {":k": {"S": value}},
            **({"ConsistentRead": True} if index == LOCAL else {}),
        }
        what, begin = f"Query of {index} {'upwards' if forward else 'downwards'} by {request['Limit']}", time.monotonic()
        items = self.pages(rng, "query", request, rng.choice([0, 0, 0, 0.2]))
        if items is None:
            return None
        end = time.monotonic()
        self.counts[f"Queries of {index}"] += 1
        order = [item["v"]["S"] for item in items]
        if order != sorted(order, reverse=not forward):
            at = next(at for at in range(1, len(order)) if order[at - 1] != order[at] and (order[at - 1] > order[at]) == forward)
            self.oracle.fault("disordered", self.table, value, order[at], f"{what} showed it after {order[at - 1]}")
        may_double = index == GLOBAL and self.changed(begin, end)
        return unlisted(self.oracle, self.table, items, begin, end, what, belongs, may_double)

    def ends(self, error, begin):
        """A position between rows with equal sort keys is of the layout of then."""
        if "another layout" not in str(error):
            return False
        self.counts["Queries that had to begin again"] += 1
        if not self.changed(begin, time.monotonic()):
            self.oracle.fault("refused", self.table, "", "", f"a Query of an index, though no key moved: {error}")
        return True
