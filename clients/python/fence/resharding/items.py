"""One client and its own items: every kind of write and point read, each with what must come of it.

Nobody else writes these items, so the client knows each of them. One whose write has an unknown outcome is left alone from then on, and another
takes its place: what a late request may do to it is seen at the end. Not here: reads of whole keys and tables (`readers`).
"""

import time
from dataclasses import dataclass

from botocore.exceptions import ClientError

from fence.clients import FAILURES, PAUSE, key, outcome_of
from fence.oracle import ABSENT, ACKED, REFUSED, UNKNOWN, value_of

SLOTS = 16


@dataclass
class Item:
    """What lies there: None, or the attributes beside the key."""

    pk: str
    sk: str
    holds: dict | None = None

    def at(self, **holds):
        """The whole item, holding this."""
        return {**key(self.pk, self.sk), **group_of(self.sk), **holds}


class Client:
    """Acts at the gateways `at`. `later` is where a transaction's token is sent again."""

    def __init__(self, stage, table, name, at, keys, partiql):
        self.stage, self.oracle, self.table, self.name, self.at = stage, stage.oracle, table, name, at
        self.made = self.written = 0
        self.items = [self.fresh(pk, slot) for pk in keys for slot in range(SLOTS)]
        self.kinds = [self.put, self.put, self.create, self.create, self.update, self.add, self.delete, self.batch, self.transact,
                      self.get, self.get, self.get_batch, self.get_together]
        self.kinds += [self.partiql_write, self.partiql_write, self.partiql_read] if partiql else []

    def fresh(self, pk, slot):
        self.made += 1
        return Item(pk, f"{(slot * 37 + self.made * 11) % 100:02}-{self.name}-{slot}-{self.made}")

    def act(self, rng):
        rng.choice(self.kinds)(rng)

    # Writes of one item.

    def next(self):
        self.written += 1
        return f"{self.name}.{self.written:07}"

    def put(self, rng):
        item, new = rng.choice(self.items), {"v": {"S": self.next()}}
        self.write(rng, "PutItem", item, new, lambda at: at.put_item(TableName=self.table, Item=item.at(**new)))

    def create(self, rng):
        item, new = rng.choice(self.items), {"v": {"S": self.next()}}
        self.write(rng, "a conditional PutItem", item, new, lambda at: at.put_item(
            TableName=self.table, Item=item.at(**new), ConditionExpression="attribute_not_exists(pk)"
        ), holds=item.holds is None)

    def update(self, rng):
        item, new = rng.choice(self.items), {"v": {"S": self.next()}}
        after = {**(item.holds or {}), **new}
        self.write(rng, "UpdateItem", item, after, lambda at: at.update_item(
            TableName=self.table, Key=key(item.pk, item.sk), UpdateExpression="SET v = :v, g = :g",
            ExpressionAttributeValues={":v": new["v"], ":g": group_of(item.sk)["g"]},
        ))

    def add(self, rng):
        item = rng.choice(self.items)
        after = one_more(item.holds)
        told = self.write(rng, "ADD", item, after, lambda at: at.update_item(
            TableName=self.table, Key=key(item.pk, item.sk), UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}}, ReturnValues="ALL_NEW",
        ))
        self.compare("ADD", item, after, told and {name: told["Attributes"][name] for name in told["Attributes"] if name in "vn"})

    def delete(self, rng):
        item = rng.choice(self.items)
        before = item.holds
        told = self.write(rng, "DeleteItem", item, None, lambda at: at.delete_item(
            TableName=self.table, Key=key(item.pk, item.sk), ReturnValues="ALL_OLD"
        ))
        if told is not None:
            old = told.get("Attributes")
            self.compare("DeleteItem", item, before or {}, {name: value for name, value in (old or {}).items() if name in "vn"})

    def compare(self, what, item, expected, told):
        """What an answer told of an item is what lies, or lay, there."""
        if told is not None and told != expected:
            self.fault("lost", item, f"{what} told of {told}, and {expected} is right")

    def write(self, rng, what, item, after, call, holds=True):
        """One write of one item, which its condition lets through or not. Returns the answer, or None."""
        begun, number = self.begin(item, after), self.gateway(rng)
        try:
            told = call(self.at[number])
        except FAILURES as error:
            self.end(item, begun, after, outcome_of(error))
            if is_condition(error) and holds:
                self.fault("lost", item, f"{what} at g{number} was refused by its condition, and {item.holds} is there: {error}")
            self.stage.clients.rest(PAUSE)
            return None
        self.end(item, begun, after, ACKED)
        if not holds:
            self.fault("accepted", item, f"{what} at g{number} was acknowledged, and its condition did not hold")
        return told

    # Writes of several items.

    def some(self, rng, most):
        return rng.sample(self.items, rng.randint(2, most))

    def batch(self, rng):
        items, number = self.some(rng, 8), self.gateway(rng)
        after = [None if rng.random() < 0.2 else {"v": {"S": self.next()}} for _ in items]
        begun = [self.begin(item, new) for item, new in zip(items, after)]
        requests = [
            {"DeleteRequest": {"Key": key(item.pk, item.sk)}} if new is None else {"PutRequest": {"Item": item.at(**new)}}
            for item, new in zip(items, after)
        ]
        left, outcome = set(), ACKED
        try:
            told = self.at[number].batch_write_item(RequestItems={self.table: requests})
            for request in told.get("UnprocessedItems", {}).get(self.table, []):
                of = request["PutRequest"]["Item"] if "PutRequest" in request else request["DeleteRequest"]["Key"]
                left.add((of["pk"]["S"], of["sk"]["S"]))
        except FAILURES as error:
            outcome = outcome_of(error)
            self.stage.clients.rest(PAUSE)
        for item, new, one in zip(items, after, begun):
            self.end(item, one, new, REFUSED if (item.pk, item.sk) in left else outcome)

    def transact(self, rng):
        """All or nothing, and once: sent again with its token where the outcome is unknown, and now and then where it is known."""
        items, number = self.some(rng, 4), self.gateway(rng)
        actions, after = [], []
        for item in items:
            there = {"ConditionExpression": "attribute_exists(pk)" if item.holds is not None else "attribute_not_exists(pk)"}
            kind = rng.randrange(4)
            if kind == 0:
                actions.append({"Delete": {"TableName": self.table, "Key": key(item.pk, item.sk), **there}})
                after.append(None)
            elif kind == 1:
                actions.append({"Put": {"TableName": self.table, "Item": item.at(v={"S": value}), **there} for value in [self.next()]})
                after.append({"v": actions[-1]["Put"]["Item"]["v"]})
            else:
                actions.append({"Update": {
                    "TableName": self.table, "Key": key(item.pk, item.sk), "UpdateExpression": "ADD n :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}}, **there,
                }})
                after.append(one_more(item.holds))
        begun = [self.begin(item, new) for item, new in zip(items, after)]
        request = {"TransactItems": actions, "ClientRequestToken": f"{self.stage.cluster.seed}-{self.name}-{self.next()}"}
        outcome = self.once(number, request, items, UNKNOWN)
        for _ in range(3):
            if outcome == REFUSED or (outcome == ACKED and rng.random() < 0.7):
                break
            self.stage.clients.rest(rng.choice([0, 0.1, 1.5]))
            outcome = self.once(self.gateway(rng), request, items, outcome)
        for item, new, one in zip(items, after, begun):
            self.end(item, one, new, outcome)

    def once(self, number, request, items, before):
        """Sends a transaction. `before`: what is known of it so far, where it was sent before; nothing is known of one that was not."""
        again = "sent" in request
        sent = {name: value for name, value in request.items() if name != "sent"}
        request["sent"] = True
        try:
            self.at[number].transact_write_items(**sent)
            return ACKED
        except FAILURES as error:
            self.stage.clients.rest(PAUSE)
            if not again:
                if is_condition(error):
                    text = f"TransactWriteItems at g{number} was cancelled, and all conditions hold: {error}"
                    self.fault("lost", items[0], f"{text}; {[(item.pk, item.sk, item.holds) for item in items]}")
                return outcome_of(error)
            # The store knows the token: it was done, under the layout of that time.
            if "IdempotentParameterMismatch" in str(error):
                return ACKED
            return before

    # Reads of items.

    def get(self, rng):
        item, number = rng.choice(self.items), self.gateway(rng)
        self.read(number, "GetItem", [item], lambda at: [at.get_item(
            TableName=self.table, Key=key(item.pk, item.sk), ConsistentRead=True
        ).get("Item")])

    def get_batch(self, rng):
        items, number = self.some(rng, 10), self.gateway(rng)
        keys = [key(item.pk, item.sk) for item in items]

        def call(at):
            told = at.batch_get_item(RequestItems={self.table: {"Keys": keys, "ConsistentRead": True}})
            left = told.get("UnprocessedKeys", {}).get(self.table, {}).get("Keys", [])
            # Of what was left out nothing is known.
            items[:] = [item for item in items if key(item.pk, item.sk) not in left]
            return told["Responses"].get(self.table, [])

        self.read(number, "BatchGetItem", items, call)

    def get_together(self, rng):
        items, number = self.some(rng, 5), self.gateway(rng)
        gets = [{"Get": {"TableName": self.table, "Key": key(item.pk, item.sk)}} for item in items]
        self.read(number, "TransactGetItems", items, lambda at: [
            told.get("Item") for told in at.transact_get_items(TransactItems=gets)["Responses"]
        ])

    def read(self, number, what, items, call):
        """A consistent read of these items, compared with what is known of them."""
        begin, what = time.monotonic(), f"{what} at g{number}"
        try:
            found = [item for item in call(self.at[number]) if item]
        except FAILURES:
            self.stage.clients.rest(PAUSE)
            return
        end = time.monotonic()
        for pk in {item.pk for item in items}:
            rows = [(item["sk"]["S"], value_of(item)) for item in found if item["pk"]["S"] == pk]
            self.oracle.shown(self.table, pk, rows, begin, end, 0, what, [item.sk for item in items if item.pk == pk])
        for item in found:
            self.oracle.logical(self.table, item, what, ("pk",))

    # PartiQL.

    def partiql_write(self, rng):
        item, new = rng.choice(self.items), {"v": {"S": self.next()}}
        where = [{"S": item.pk}, {"S": item.sk}]
        if item.holds is None:
            statement = f"INSERT INTO \"{self.table}\" VALUE {{'pk': ?, 'sk': ?, 'v': ?, 'g': ?}}"
            given, after = [*where, new["v"], group_of(item.sk)["g"]], new
        elif rng.random() < 0.3:
            statement, given, after = f'DELETE FROM "{self.table}" WHERE pk = ? AND sk = ?', where, None
        else:
            statement = f'UPDATE "{self.table}" SET v = ? SET g = ? WHERE pk = ? AND sk = ?'
            given = [new["v"], group_of(item.sk)["g"], *where]
            after = {**item.holds, **new}
        self.write(rng, statement.split()[0], item, after, lambda at: at.execute_statement(Statement=statement, Parameters=given))

    def partiql_read(self, rng):
        item, number = rng.choice(self.items), self.gateway(rng)
        self.read(number, "SELECT", [item], lambda at: at.execute_statement(
            Statement=f'SELECT * FROM "{self.table}" WHERE pk = ? AND sk = ?', Parameters=[{"S": item.pk}, {"S": item.sk}], ConsistentRead=True
        )["Items"])

    # Bookkeeping.

    def gateway(self, rng):
        return rng.randrange(len(self.at))

    def begin(self, item, after):
        return self.oracle.begin(self.table, item.pk, item.sk, value_of(after) if after is not None else ABSENT)

    def end(self, item, begun, after, outcome):
        self.oracle.end(self.table, begun, outcome)
        if outcome == ACKED:
            item.holds = after
        elif outcome == UNKNOWN:
            slot = self.items.index(item)
            self.items[slot] = self.fresh(item.pk, slot)

    def fault(self, kind, item, text):
        self.oracle.fault(kind, self.table, item.pk, item.sk, text)


def group_of(sk):
    """The attribute by which the global index groups items. An item has it if it has a value."""
    return {"g": {"S": f"g{sk[0]}"}}


def one_more(holds):
    number = int((holds or {}).get("n", {"N": "0"})["N"])
    return {**(holds or {}), "n": {"N": str(number + 1)}}


def is_condition(error):
    """Whether a condition on an item did not hold."""
    if not isinstance(error, ClientError):
        return False
    reasons = [reason.get("Code") for reason in error.response.get("CancellationReasons", [])]
    named = error.response["Error"]["Code"] in ("ConditionalCheckFailedException", "DuplicateItemException")
    return named or "ConditionalCheckFailed" in reasons
