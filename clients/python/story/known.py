"""What must be stored: for each item the version that was acknowledged last, and the one whose outcome is not known.

An item has one writer, which puts one version after the other. After a put of unknown outcome the item is left alone, since it may take effect late.
"""

BODY = b"x" * 3900  # with its other attributes an item takes less than 4 KB


class Known:
    """The items of one kind: those of the hot key, or those with the hot value of the index."""

    def __init__(self, kind, count):
        self.kind = kind
        self.acked = [0] * count  # 0: nothing yet
        self.maybe = [None] * count

    def keys(self, number):
        return ("hot", f"item-{number:04}") if self.kind == "key" else (f"order-{number:04}", "order")

    def item(self, number, version):
        pk, sk = self.keys(number)
        status = {} if self.kind == "key" else {"status": {"S": "open"}}
        return {"pk": {"S": pk}, "sk": {"S": sk}, "version": {"N": str(version)}, "body": {"B": BODY}, **status}

    def judge(self, rows):
        """What is wrong with rows that were read: (kind of fault, where) for each fault. Rows are items as DynamoDB has them, in order."""
        found, order, faults = {}, [], []
        for row in rows:
            at = (row["pk"]["S"], row["sk"]["S"])
            order.append(at)
            found.setdefault(at, []).append(int(row["version"]["N"]))
        if order != sorted(order):
            faults.append(("disordered", f"{self.kind}: {len(order)} rows"))
        for number, acked in enumerate(self.acked):
            at = self.keys(number)
            versions, allowed = found.pop(at, []), {acked, self.maybe[number]} - {None}
            if len(versions) > 1:
                faults.append(("doubled", f"{at}: versions {versions}"))
            faults += [("stale" if version < acked else "phantom", f"{at}: version {version}, not of {sorted(allowed)}") for version in versions if version not in allowed]
            if not versions and acked:
                faults.append(("lost", f"{at}: version {acked} was acknowledged"))
        faults += [("phantom", f"{at}: nobody wrote it") for at in found]
        return faults
