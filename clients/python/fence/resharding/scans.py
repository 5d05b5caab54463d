"""A reader that scans the table, or an index of it, in segments that are begun together, each page through any gateway.

All items that are there throughout are in some segment; one is in several only if its key began or ended a move meanwhile. Not here: Scans without
segments (`readers`).
"""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from fence.resharding.indexes import GLOBAL, LOCAL, unlisted
from fence.resharding.readers import PATIENCE, Reader

SEGMENTS = (2, 3, 5)


class SegmentReader(Reader):
    INDEXES = (None, None, LOCAL, GLOBAL)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.counts = Counter()

    def read(self, rng):
        segments, index = rng.choice(SEGMENTS), rng.choice(self.INDEXES)
        request = {
            "TableName": self.table, "TotalSegments": segments, "Limit": rng.choice([40, 150, 1000]),
            **({"IndexName": index} if index else {}), **({"ConsistentRead": True} if index != GLOBAL else {}),
        }
        # None goes on before all have begun: one that begins after another has ended may miss a key that began or ended a move in between.
        begun = threading.Barrier(segments)
        begin = time.monotonic()
        with ThreadPoolExecutor(segments) as pool:
            seeds = [rng.random() for _ in range(segments)]
            parts = list(pool.map(lambda at: self.segment({**request, "Segment": at}, random.Random(seeds[at]), begun), range(segments)))
        end = time.monotonic()
        if any(part is None for part in parts):
            self.counts["parallel Scans given up"] += 1
            return
        what = f"a Scan of {index or 'the table'} in {segments} segments"
        self.counts[f"Scans of {index or 'the table'} in segments"] += 1
        items, moved = [item for part in parts for item in part], self.changed(begin, end)
        if index:
            for pk, sk, register in unlisted(self.oracle, self.table, items, begin, end, what, lambda *_: True, moved):
                self.oracle.fault("lost", self.table, pk, sk, f"{what} did not show it", register)
        else:
            self.table_shown(items, begin, what, moved)

    def segment(self, request, rng, begun):
        first = self.pages(rng, "scan", request, 0, one=True)
        try:
            begun.wait(PATIENCE)
        except threading.BrokenBarrierError:
            return None
        if first is None or "ExclusiveStartKey" not in request:
            return first
        rest = self.pages(rng, "scan", request, 0)
        return None if rest is None else first + rest
