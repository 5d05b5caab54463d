"""What the clients know: which items must be there, which may be, and what every read has shown against that.

Every item has one writer at a time, so its values have an order. A write that was acknowledged holds from then on for every read that
begins later. One that was refused (a 4xx) never shows. One whose outcome is unknown (a 5xx, a lost connection) may show at any time, or never.

Not here: how calls are made (`clients`), and what is read at the end (`settle`).
"""

import re
import threading
import time
from collections import Counter, defaultdict

ACKED, REFUSED, UNKNOWN, PENDING = "acked", "refused", "unknown", "pending"
ABSENT = None
# How many faults of a kind are told in full.
EXAMPLES = 3
# What Heatsink appends to a key that it spreads.
PHYSICAL = re.compile(r"#~\d[\dW-]*(#~\d+)?$")


def status_of(value):
    """The status in a value such as `open:17`."""
    return value.split(":")[0]


def value_of(item):
    """What clients compare of an item, as one text: its value, and its number where it has one."""
    value, number = item.get("v", {}).get("S"), item.get("n", {}).get("N")
    return value if number is None else f"{value or ''}+{number}"


class Try:
    """One write of one item: the value that it leaves, and how it ended."""

    __slots__ = ("value", "outcome", "begun", "ended")

    def __init__(self, value, outcome=PENDING):
        self.value, self.outcome = value, outcome
        self.begun, self.ended = time.monotonic(), None

    def end(self, outcome):
        self.ended, self.outcome = time.monotonic(), outcome


class Register:
    """One item."""

    __slots__ = ("tries", "doubtful", "reported")

    def __init__(self):
        first = Try(ABSENT, ACKED)
        first.begun = first.ended = 0.0
        self.tries, self.doubtful, self.reported = [first], [], set()

    def begin(self, value):
        attempt = Try(value)
        self.tries.append(attempt)
        return attempt

    def end(self, attempt, outcome):
        attempt.end(outcome)
        if outcome == UNKNOWN:
            self.doubtful.append(attempt)

    def allowed(self, begin, end):
        """The values that a read between these moments may show."""
        values = [attempt.value for attempt in self.doubtful if attempt.begun <= end]
        for attempt in reversed(self.tries):
            if attempt.begun > end or attempt.outcome == REFUSED:
                continue
            values.append(attempt.value)
            if attempt.outcome == ACKED and attempt.ended <= begin:
                break
        return values

    def known(self):
        """The value of the last acknowledged write."""
        return next(attempt.value for attempt in reversed(self.tries) if attempt.outcome == ACKED)


class Number:
    """A counter: at least what was acknowledged, at most what was sent and not refused."""

    def __init__(self):
        self.least = self.most = 0
        self.lock, self.reported = threading.Lock(), set()


class Table:
    """What is known of one table, since it was made."""

    def __init__(self):
        self.registers = defaultdict(dict)  # partition key -> sort key -> Register
        self.former = defaultdict(dict)  # the same of tables of this name that were dropped
        self.numbers = defaultdict(Number)
        self.age = 0  # odd while it is dropped and made again: nothing that is read then is judged
        self.dropped = 0.0
        self.foreign = None  # the form of sort keys that another program writes, which judges their items itself
        self.lock = threading.Lock()


class Oracle:
    """All of it, and what went wrong."""

    def __init__(self):
        self.tables = defaultdict(Table)
        self.counts = Counter()
        self.faults = Counter()
        self.examples = defaultdict(list)
        self.reported = set()
        self.pulses = {}
        self.lock = threading.Lock()

    # Writes.

    def begin(self, table, pk, sk, value):
        """A write is about to be sent. Returns what `end` takes."""
        known = self.tables[table]
        with known.lock:
            register = known.registers[pk].setdefault(sk, Register())
            return register, register.begin(value)

    def end(self, table, begun, outcome):
        register, attempt = begun
        register.end(attempt, outcome)
        self.count(table, outcome)

    def count(self, table, outcome):
        with self.lock:
            self.counts[outcome] += 1
        if outcome == ACKED:
            self.pulse(table).beat()

    def adding(self, table, key, amount):
        """An ADD is about to be sent. Returns what `added` takes."""
        number = self.tables[table].numbers[key]
        with number.lock:
            number.most += amount
        return number, amount

    def added(self, table, begun, outcome):
        number, amount = begun
        with number.lock:
            number.least += amount if outcome == ACKED else 0
            number.most -= amount if outcome == REFUSED else 0
        self.count(table, outcome)

    def dropping(self, table):
        """A table is about to be dropped."""
        known = self.tables[table]
        known.age += 1
        known.dropped = time.monotonic()

    def made_again(self, table):
        """It is there again, empty but for writes that were under way."""
        known = self.tables[table]
        with known.lock:
            for pk, rows in known.registers.items():
                known.former[pk].update(rows)
            known.registers = defaultdict(dict)
            known.age += 1

    # Reads.

    def age(self, table):
        return self.tables[table].age

    def shown(self, table, pk, rows, begin, end, age, what, sort_keys=None):
        """A strong read of a key showed these rows, `(sort key, value)`, and no others. With `sort_keys` it asked for those alone.
        Returns whether all is well."""
        known = self.tables[table]
        if age % 2 or known.age != age:
            return True
        seen = Counter(sk for sk, _ in rows)
        values = dict(rows)
        expected = known.registers.get(pk, {})
        well = True
        for sk, times in seen.items():
            if times > 1:
                well = self.fault("doubled", table, pk, sk, f"{what} showed it {times} times", expected.get(sk))
            if sk not in expected and not (known.foreign and known.foreign.search(sk)):
                last = known.former.get(pk, {}).get(sk)
                # Only a write that was under way when the table was dropped may have come to the new one.
                if last is None or (last.tries[-1].ended or end) < known.dropped:
                    well = self.fault("phantom", table, pk, sk, f"{what} showed {values[sk]!r}, which nobody wrote", last)
        asked = list(expected.items()) if sort_keys is None else [(sk, expected[sk]) for sk in sort_keys if sk in expected]
        for sk, register in asked:
            allowed = register.allowed(begin, end)
            value = values.get(sk, ABSENT)
            if value in allowed:
                continue
            tried = any(value == attempt.value for attempt in register.tries if attempt.outcome != REFUSED)
            kind = "lost" if tried else "phantom"
            well = self.fault(kind, table, pk, sk, f"{what} showed {value!r}, not {allowed[-1]!r}", register)
        return well

    def listed(self, table, status, rows, begin, end, age, what):
        """A Query of an index showed these rows of one status, `(partition key, sort key, value)`: a value begins with its status."""
        known = self.tables[table]
        if age % 2 or known.age != age:
            return
        seen = Counter((pk, sk) for pk, sk, _ in rows)
        values = {(pk, sk): value for pk, sk, value in rows}
        for (pk, sk), times in seen.items():
            register = known.registers.get(pk, {}).get(sk)
            if times > 1:
                self.fault("doubled", table, pk, sk, f"{what} of {status!r} showed it {times} times", register)
            if register is None:
                self.fault("phantom", table, pk, sk, f"{what} of {status!r} showed it, and nobody wrote it")
        for pk, keys in list(known.registers.items()):
            for sk, register in list(keys.items()):
                allowed = register.allowed(begin, end)
                if (pk, sk) in seen and values[pk, sk] not in allowed:
                    text = f"{what} of {status!r} showed {values[pk, sk]!r}, not {allowed[-1]!r}"
                    self.fault("lost", table, pk, sk, text, register)
                elif (pk, sk) not in seen and all(value is not ABSENT and status_of(value) == status for value in allowed):
                    self.fault("lost", table, pk, sk, f"{what} of {status!r} did not show it", register)

    def least(self, table, key):
        """What a read of a counter that begins now must show at least."""
        return self.tables[table].numbers[key].least

    def summed(self, table, key, value, least, what):
        """A strong read of a counter has ended."""
        number = self.tables[table].numbers[key]
        most = number.most
        if value < least:
            self.fault("lost", table, *key, f"{what} showed {value}, and {least} were acknowledged", number)
        elif value > most:
            self.fault("doubled", table, *key, f"{what} showed {value}, and {most} were sent", number)

    def logical(self, table, item, what, names):
        """No key in an item of an answer may be a physical one."""
        for name in names:
            value = item.get(name, {}).get("S", "")
            if PHYSICAL.search(value):
                self.fault("shown", table, value, name, f"{what} showed the physical key {value!r}")

    def fault(self, kind, table, pk, sk, text, register=None):
        """Counts a fault, once for each item and kind. Returns False."""
        with self.lock:
            reported, once = (self.reported, (kind, table, pk, sk, text)) if register is None else (register.reported, kind)
            if once not in reported:
                reported.add(once)
                self.faults[kind] += 1
                if len(self.examples[kind]) < EXAMPLES:
                    self.examples[kind].append(f"{table} {pk}/{sk}: {text}")
        return False

    # Stretches without success.

    def pulse(self, table):
        pulse = self.pulses.get(table)
        if pulse is None:
            with self.lock:
                pulse = self.pulses.setdefault(table, Pulse())
        return pulse


class Pulse:
    """The longest stretch in which writes were tried and none succeeded."""

    def __init__(self):
        self.longest, self.last, self.lock = 0.0, None, threading.Lock()

    def watch(self):
        """Writers begin."""
        with self.lock:
            self.last = self.last or time.monotonic()

    def beat(self):
        with self.lock:
            now = time.monotonic()
            if self.last is not None:
                self.longest = max(self.longest, now - self.last)
                self.last = now

    def rest(self):
        """Writers end. Returns whether any were at it."""
        self.beat()
        with self.lock:
            watched, self.last = self.last is not None, None
            return watched
