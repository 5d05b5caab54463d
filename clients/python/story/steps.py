"""The story, step by step: a hot key, its relief, a hot value of an index, a gateway that is killed, everything found, and the way back."""

import time

from story.gateways import Failed, Gateway
from story.known import Known
from story.load import Load
from story.plan import (
    FIRST_MOVE, GATEWAYS, GENTLE, INDEX_MOVE, INDEX_SHARDS, ITEMS, KILLED_MOVE, MORE_SHARDS, ORDERS, QUIET_MOVE, REGISTRY_SECOND, SHARDS, move_of_key,
    move_of_value, reading,
)
from story.prices import Use
from story.tables import INDEX

# An index lags: how long a row may take to show.
LAG = 20
# Capacity units a second of the move in which a gateway is killed, so that it is on its way for long enough.
SLOW = 400


class Story:
    def __init__(self, site, meter, units, seconds, say):
        self.site, self.meter, self.units, self.seconds, self.say = site, meter, units, seconds, say
        self.items, self.orders = Known("key", ITEMS), Known("value", ORDERS)
        self.gateways, self.steps, self.faults = [], [], []
        self.gateways_since = time.monotonic()

    def tell(self):
        """The whole of it."""
        self.gateways = []
        for number in range(GATEWAYS):
            self.gateways.append(Gateway(self.site, number))
        self.hot("one hot key", self.items, move_of_key(ITEMS), FIRST_MOVE, "hot", "--shards", str(SHARDS))
        self.check("the key in shards")
        self.hot("one hot value of the index", self.orders, move_of_value(ORDERS), INDEX_MOVE, "open", "--index", INDEX, "--shards", str(INDEX_SHARDS))
        self.check("key and value in shards")
        self.kill()
        self.check("after a gateway was killed")
        self.verify("heatsink verify")
        self.back()
        self.check("moved back")
        self.verify("heatsink verify, moved back")
        # All is under the application's own keys: found past Heatsink, too.
        self.find("at the store itself", self.site.target.client())

    def stop(self):
        for gateway in self.gateways:
            gateway.stop()

    # Steps.

    def hot(self, name, known, move, patience, key, *flags):
        """What is hot, before it moves, while it moves, and after."""
        self.meter.afford(move, f"the move of {name}")
        with Load(self.site.target, self.gateways, self.site.table, known, self.units, self.meter) as load:
            load.rest(self.seconds)
            asked = load.now()
            self.say(f"{name}: {part(load.between(0, asked))}; resharding it")
            self.site.reshard("start", key, *flags, "--yes", "--rate", "1000")
            ended = self.wait_for(load, key, patience)
            done = load.now()
            load.rest(self.seconds)
            end = load.now()
        self.meter.compute(move)
        self.note({
            "step": name, "before": load.between(0, asked), "while": load.between(asked, done), "after": load.between(done, end),
            "relieved_after_seconds": load.relieved(asked), "moved": ended["items_moved"], "other_answers": dict(load.refused),
            "by_second": {second: dict(counts) for second, counts in sorted(load.seconds.items())},
        })
        self.say(f"{name}, while it moves: {part(load.between(asked, done))}; after: {part(load.between(done, end))}")

    def kill(self):
        """The gateway that carries a move is killed in the middle of it. Clients go on at the other one, and it is started anew."""
        self.meter.afford(move_of_key(ITEMS), "the move in which a gateway is killed")
        with Load(self.site.target, self.gateways, self.site.table, self.items, GENTLE, self.meter) as load:
            self.site.reshard("start", "hot", "--shards", str(MORE_SHARDS), "--yes", "--rate", str(SLOW))
            carried = self.site.until("hot", "on its way", is_in_the_middle, KILLED_MOVE)
            victim = next((gateway for gateway in self.gateways if gateway.carries(carried)), None)
            if carried["ended"] or victim is None:
                raise Failed(f"there was no moment in which a gateway could be killed: {carried}")
            victim.kill()
            killed = load.now()
            self.say(f"killed the gateway that moves the key, after {carried['items_moved']} of {carried['items_to_move']} items")
            ended = self.wait_for(load, "hot", KILLED_MOVE)
            done = load.now()
        self.meter.compute(move_of_key(ITEMS))
        victim.start()
        self.note({
            "step": "a gateway killed while the key moves", "killed_after_items": carried["items_moved"], "moved": ended["items_moved"],
            "done_seconds_after_the_kill": round(done - killed, 1), "before": load.between(0, killed), "after": load.between(killed, done),
            "other_answers": dict(load.refused),
        })
        self.say(f"the other one went on: done {done - killed:.0f} s after the kill; {part(load.between(killed, done))}")

    def back(self):
        """Both go back to where the application's own keys say."""
        begun = time.monotonic()
        for name, move, key, flags in [("the key", move_of_key(ITEMS), "hot", []), ("the value", move_of_value(ORDERS), "open", ["--index", INDEX])]:
            self.meter.afford(move, f"{name}'s way back")
            self.site.reshard("start", key, *flags, "--shards", "1", "--yes", "--rate", "1000")
            self.site.until(key, "back", lambda one: one["shards"] == 1 and one["ended"], QUIET_MOVE)
            self.meter.compute(move)
        self.note({"step": "moved back", "seconds": round(time.monotonic() - begun, 1)})
        self.say(f"key and value moved back in {time.monotonic() - begun:.0f} s")

    def wait_for(self, load, key, patience):
        """Waits for the end of a move under load, and fails with the load."""
        def ended(intent):
            load.rest(0)
            return intent["ended"]
        return self.site.until(key, "done", ended, patience)

    # What must be there.

    def check(self, when):
        """Every acknowledged put is found, once, through every gateway."""
        for nth, gateway in enumerate(self.gateways, 1):
            self.find(f"{when}, gateway {nth}", self.site.target.client(gateway.endpoint))

    def find(self, when, client):
        """Every acknowledged put is found, once. An index may take a while to show the last ones."""
        rows = self.query(client, pk="hot", consistent=True)
        faults, deadline = self.items.judge(rows), time.monotonic() + LAG
        while (late := self.orders.judge(shown := self.query(client, status="open"))) and time.monotonic() < deadline:
            time.sleep(1)
        faults += late
        self.faults += [f"{when}: {kind}: {where}" for kind, where in faults]
        self.note({"step": f"every acknowledged put found: {when}", "items_of_the_key": len(rows), "items_of_the_value": len(shown), "faults": len(faults)})
        self.say(f"{when}: {len(rows)} items of the key, {len(shown)} of the value, {len(faults)} faults")

    def query(self, client, pk=None, status=None, consistent=False):
        name, value = ("pk", pk) if pk else ("status", status)
        rows, request = [], {
            "TableName": self.site.table, "KeyConditionExpression": "#k = :v", "ExpressionAttributeNames": {"#k": name},
            "ExpressionAttributeValues": {":v": {"S": value}}, "ReturnConsumedCapacity": "TOTAL",
            **({"ConsistentRead": True} if consistent else {"IndexName": INDEX}),
        }
        while True:
            answer = client.query(**request)
            self.meter.read(answer, sent=sum(len(row["body"]["B"]) + 200 for row in answer["Items"]))
            rows += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return rows
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def verify(self, name):
        told = self.site.verify()
        self.meter.compute(reading(ITEMS + ORDERS))
        if told["wrong"] or told["items"] != len(self.stored()):
            self.faults.append(f"{name}: {told['wrong']} wrong, {told['items']} items: {told['counts']}")
        self.note({"step": name, "items": told["items"], "wrong": told["wrong"], "counts": told["counts"]})
        self.say(f"{name}: {told['items']} items, {told['wrong']} wrong")

    def stored(self):
        """The items that are surely there. One whose only put has an unknown outcome cannot be, since each was put often before a gateway was killed."""
        return [version for known in (self.items, self.orders) for version in known.acked if version]

    def note(self, step):
        """A step is done. What the gateways took of the registry since the last one is added."""
        now = time.monotonic()
        passed, self.gateways_since = GATEWAYS * (now - self.gateways_since), now
        self.steps.append(step)
        self.meter.compute(Use(passed * REGISTRY_SECOND.writes, passed * REGISTRY_SECOND.reads))


def is_in_the_middle(intent):
    """Whether a quarter of the items has moved."""
    return intent["ended"] or intent["phase"] == "MOVE" and intent["items_moved"] >= (intent["items_to_move"] or 0) / 4


def part(of):
    """What came of the puts of a while, in words."""
    share = of["throttled_share"]
    return f"{of['acknowledged_per_second']:.0f} puts/s, {'none' if not share else f'{100 * share:.1f} %'} throttled, p99 {of['p99_ms']} ms"
