"""In which phase the key was when, and what share of another program's writes was accepted in each."""

import json
import time
from collections import defaultdict

from fence.clients import FAILURES
from fence.cluster import REGISTRY


class Phases:
    """Follows the record of a key, past the network."""

    def __init__(self, stage, pk):
        self.stage, self.pk = stage, pk
        self.seen = [(time.time(), "1 shard")]

    def act(self, _):
        now = self.read()
        if now and self.seen[-1][1] != now:
            self.seen.append((time.time(), now))
        self.stage.clients.rest(0.2)

    def read(self):
        """How the key lies now; None where it is not on record, or the store does not answer."""
        try:
            items = self.stage.raw.scan(TableName=REGISTRY, ConsistentRead=True)["Items"]
        except FAILURES:
            return None
        # Of a table of this name that was there earlier the record stays.
        items = [item for item in items if item["sk"]["S"] == f"key:{self.pk}"]
        if not items:
            return None
        item = max(items, key=lambda one: int(one["changed"]["N"]))
        shards = json.loads(item["layout"]["S"])["shards"]
        if "moves" not in item:
            return f"{shards} shard{'s' if shards > 1 else ''}"
        moves = json.loads(item["moves"]["S"])
        return f"{shards} -> {moves['to']['shards']} {'MOVE' if moves['phase'] == 'MOVE' else 'before MOVE'}"

    def at(self, second):
        """The phase in the middle of a second since 1970."""
        return next((phase for since, phase in reversed(self.seen) if since <= second + 0.5), self.seen[0][1])

    def lines(self, seconds):
        """What was accepted of writes that were counted second by second."""
        sums = defaultdict(lambda: defaultdict(float))
        for second, counts in seconds.items():
            of = sums[self.at(int(second))]
            of["seconds"] += 1
            for name, value in counts.items():
                of[name] += value
        for phase, of in sums.items():
            long, offered = of["seconds"], of["accepted"] + of["throttled"] + of["failed"]
            yield (f"{phase}: {long:.0f} s; {offered / long:.0f} writes of items offered a second, {of['accepted'] / long:.0f} accepted "
                   f"({of['units'] / long:.0f} units), {100 * of['throttled'] / max(offered, 1):.1f} % throttled")
