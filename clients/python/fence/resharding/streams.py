"""A reader of the table's stream through any gateway, to its end.

Its keys are logical. An item that moves is seen inserted under its new key and removed under the old one, which is one logical key here: so inserts less
removes are the copies that are stored, never fewer than none nor more than two. The values of an item come in the order of its writes, and each that was
acknowledged comes. Both stores that have streams number all records of a table in one row. DynamoDB's own shards do that for each stored key alone.
"""

from collections import Counter, defaultdict

from botocore.exceptions import ClientError

from fence.clients import FAILURES, PAUSE
from fence.oracle import ABSENT, ACKED, PHYSICAL, UNKNOWN, value_of
from fence.resharding.indexes import is_listed
from fence.resharding.rust import FOREIGN

# So often the end of the stream has to be found empty, at the end.
EMPTY = 5


class StreamReader:
    def __init__(self, stage, table, at):
        self.stage, self.oracle, self.table, self.at = stage, stage.oracle, table, at
        self.arn = self.shard = self.iterator = self.last = None
        self.records, self.empty = Counter(), 0
        self.values = defaultdict(list)  # of each item, those that follow each other alike as one; None where no copy was left
        self.copies = Counter()

    def act(self, rng):
        """Reads one page. Where a position is refused, another is asked for behind the last record."""
        at = self.at[rng.randrange(len(self.at))]
        try:
            if self.iterator is None:
                self.iterator = self.begin(at)
            told = at.get_records(ShardIterator=self.iterator)
        except FAILURES as error:
            if isinstance(error, ClientError) and error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                self.iterator = None
                self.records["positions that were asked for again"] += 1
            self.stage.clients.rest(PAUSE)
            return
        self.iterator = told.get("NextShardIterator")
        for record in told["Records"]:
            self.take(record)
        self.empty = 0 if told["Records"] else self.empty + 1
        if not told["Records"]:
            self.stage.clients.rest(0.2)

    def begin(self, at):
        if self.arn is None:
            self.arn = at.list_streams(TableName=self.table)["Streams"][0]["StreamArn"]
            shards = at.describe_stream(StreamArn=self.arn)["StreamDescription"]["Shards"]
            if len(shards) != 1:
                raise RuntimeError(f"a stream in {len(shards)} shards: what is judged here needs one")
            self.shard = shards[0]["ShardId"]
        place = {"ShardIteratorType": "TRIM_HORIZON"}
        if self.last:
            place = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": self.last}
        return at.get_shard_iterator(StreamArn=self.arn, ShardId=self.shard, **place)["ShardIterator"]

    def take(self, record):
        change = record["dynamodb"]
        self.last, kind = change["SequenceNumber"], record["eventName"]
        self.records[kind] += 1
        self.oracle.logical(self.table, change["Keys"], "a stream record", ("pk",))
        place = (change["Keys"]["pk"]["S"], change["Keys"]["sk"]["S"])
        self.copies[place] += {"INSERT": 1, "REMOVE": -1}.get(kind, 0)
        if not 0 <= self.copies[place] <= 2:
            self.fault("doubled" if self.copies[place] > 2 else "lost", place, f"{self.copies[place]} copies after {kind}")
        if kind == "REMOVE":
            if self.copies[place] == 0:
                self.values[place].append(ABSENT)
            return
        self.oracle.logical(self.table, change["NewImage"], "a stream record's item", ("pk",))
        value, before = value_of(change["NewImage"]), self.values[place]
        if before and before[-1] == value:
            return
        # An item that was only added to can have one value again.
        if is_listed(value) and value in before:
            self.fault("disordered", place, f"{value!r} after {before[before.index(value) + 1:]}")
        before.append(value)

    def finish(self, rng):
        """Nobody writes any more: reads what is left, and compares it with what was written and with what is stored."""
        self.empty = 0
        self.stage.until(lambda: self.act(rng) or self.empty >= EMPTY, 120)
        if self.empty < EMPTY:
            self.fault("refused", ("", ""), "its end was not reached in 120 s")
            return
        stored = Counter()
        for page in self.stage.raw.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True):
            for item in page["Items"]:
                place = (PHYSICAL.sub("", item["pk"]["S"]), item["sk"]["S"])
                stored[place] += 1
                if self.values[place][-1:] != [value_of(item)]:
                    self.fault("lost", place, f"it ends with {self.values[place][-1:]}, and {value_of(item)!r} is stored")
        for place in stored.keys() | self.copies.keys():
            if stored[place] != self.copies[place]:
                self.fault("lost", place, f"{self.copies[place]} copies by inserts and removes, and {stored[place]} stored")
        registers = self.oracle.tables[self.table].registers
        for pk, rows in list(registers.items()):
            for sk, register in rows.items():
                self.judge((pk, sk), register)
        for pk, sk in self.values.keys() - {(pk, sk) for pk, rows in registers.items() for sk in rows}:
            self.fault("phantom", (pk, sk), "it shows an item that nobody wrote")

    def judge(self, place, register):
        """Every acknowledged value has come, in order, and none that was refused."""
        shown = self.values[place]
        at = iter(shown)
        for attempt in register.tries:
            if attempt.outcome == ACKED and attempt.value is not ABSENT and attempt.value not in at:
                kind = "disordered" if attempt.value in shown else "lost"
                self.fault(kind, place, f"{attempt.value!r} was acknowledged, and it shows {shown}")
                return
        known = {ABSENT, *(attempt.value for attempt in register.tries if attempt.outcome in (ACKED, UNKNOWN))}
        # Of another program's items only the last values are known.
        if not FOREIGN.search(place[1]):
            for value in set(shown) - known:
                self.fault("phantom", place, f"{value!r} was refused, or nobody wrote it")

    def fault(self, kind, place, text):
        self.oracle.fault(kind, self.table, *place, f"the stream: {text}")

    def line(self):
        return "stream: " + ", ".join(f"{times} {kind}" for kind, times in self.records.most_common())
