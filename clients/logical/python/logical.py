"""Logical keys of what is read past Heatsink: records of a DynamoDB Stream, of Kinesis, items of an export. Copy this one file.

    from logical import SUFFIX, Table, logical, record

    logical({"S": "game_x#~3"})                       # Logical({"S": "game_x"}, shard=3, bucket=None)
    record(one, Table(key="pk"))                      # the stream record with logical keys; None for what is no change of an item

How physical keys are written is a *form*: `SUFFIX` under rules (numbers included), `BUCKETS` where a rule has buckets, `WHOLE` where rules name only
indexes, `recorded(...)` where no rule names the table's keys and single ones were resharded, `templates(...)` where a rule has a template.
It is told, not guessed: `game_x#~3` is a client's own key in a table that is not sharded.

Values are attribute values of DynamoDB JSON; binary ones are base64 (Lambda, Kinesis) or bytes (boto3), and come back as they came.
"""

import base64
import re
from typing import Callable, Mapping, NamedTuple, Optional, Sequence


MOVED = "heatsink:moved"  # the attribute of an old copy


class Logical(NamedTuple):
    value: dict  # the logical key, an attribute value; numbers in canonical text
    shard: int = 0
    bucket: Optional[str] = None  # as ISO 8601: 2026-06-22T01, 2026-06-22, 2026-06 or 2026-W26


class Rule(NamedTuple):
    """A rule of a table with templates, in the order of the rules. One without a template keeps its keys whole."""
    template: Optional[str]
    shards: int = 1
    bucket: Optional[str] = None  # "hour", "day", "week" or "month"
    keys: Callable[[str], bool] = lambda key: True  # which logical keys it names


class Form(NamedTuple):
    kind: str
    reserved: Callable[[str], Optional[int]] = lambda key: None
    rules: Sequence[Rule] = ()


SUFFIX, BUCKETS, WHOLE = Form("suffix"), Form("buckets"), Form("whole")


def recorded(reserved):
    """Only keys on record have shards: `reserved(key)` is the `reserved` of `heatsink reshard status TABLE --output json`, None for other keys.
    Keys are given as it prints them: binary ones in base64, numbers in canonical text. `lambda key: 65536` takes every key that is written like
    a shard for one: right where no client has keys that end in `#~` and a number."""
    return Form("recorded", reserved=reserved)


def templates(*rules):
    return Form("templates", rules=rules)


class Table(NamedTuple):
    key: str  # the partition key's name
    form: Form = SUFFIX
    attributes: Mapping[str, Form] = {}  # spread keys of indexes: SUFFIX by a rule, recorded(...) by `reshard --index`
    is_counter: Callable[[str], bool] = lambda key: False  # which logical keys hold counters


def logical(value, form=SUFFIX):
    """The logical key, shard and bucket of a physical key."""
    kind, stored = next(iter(value.items()))
    if kind not in ("S", "N", "B"):
        return Logical(value)
    in_base64 = kind == "B" and isinstance(stored, str)
    physical = base64.b64decode(stored) if in_base64 else bytes(stored) if kind == "B" else stored.encode()
    if kind == "N":
        physical = _canonical(physical) or physical
    key, shard, bucket = _decode(physical, kind, form)
    return Logical({kind: base64.b64encode(key).decode() if in_base64 else key if kind == "B" else key.decode()}, shard, bucket)


def record(one, table):
    """A stream record with logical keys in Keys, NewImage and OldImage; None if it is of a part of a counter, which is no item of its own, or of
    the old copy of an item that moved to another shard."""
    change = dict(one["dynamodb"])
    if any(MOVED in (change.get(image) or ()) for image in ("NewImage", "OldImage")):
        return None
    key = logical(change["Keys"][table.key], table.form)
    if (key.shard or key.bucket) and table.is_counter(_text(key.value)):
        return None
    for image in ("Keys", "NewImage", "OldImage"):
        if change.get(image):
            change[image] = item(change[image], table)
    return {**one, "dynamodb": change}


def item(stored, table):
    """An item with its logical key, and logical values of the keys of indexes; numbers of these are never spread."""
    changed = dict(stored)
    for name, form in [*table.attributes.items(), (table.key, table.form)]:
        if name in stored and (name == table.key or "N" not in stored[name]):
            changed[name] = logical(stored[name], form).value
    return changed


def _text(value):
    (stored,) = value.values()
    return stored if isinstance(stored, str) else base64.b64encode(stored).decode()


def _decode(physical, kind, form):
    if form.kind == "whole":
        return physical, 0, None
    if form.kind == "templates":
        return _by_templates(physical, kind, form.rules)
    rest, shard = _shard_of_number(physical) if kind == "N" else _shard(physical)
    if form.kind == "recorded":
        named = base64.b64encode(rest).decode() if kind == "B" else rest.decode()
        return (rest, shard, None) if shard < (form.reserved(named) or 1) else (physical, 0, None)
    if kind == "N":
        return rest, shard, None
    rest, bucket = _bucket(rest) if form.kind == "buckets" else (rest, None)
    logical, number = _split(rest)
    escaped = number == 0 and (_split(logical)[1] is not None or form.kind == "buckets" and _bucket(logical)[1] is not None)
    return logical if escaped else rest, shard, bucket


_RESERVED = re.compile(rb"#~(0|[1-9][0-9]{0,4})\Z")


def _split(key):
    """What stands before `#~` and a number, and that number."""
    found = _RESERVED.search(key)
    return (key[:found.start()], int(found[1])) if found else (key, None)


def _shard(physical):
    rest, shard = _split(physical)
    return (rest, shard) if shard is not None and 1 <= shard <= 65535 else (physical, 0)


_FORMATS = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
_FIELDS = re.compile("%([YGmdHV])")


def _pattern(format):
    """A pattern for the buckets of a format: a group for each field."""
    parts = _FIELDS.split(format)
    for at, part in enumerate(parts):
        parts[at] = f"(?P<{part}>[0-9]{{{4 if part in 'YG' else 2}}})" if at % 2 else re.escape(part)
    return "".join(parts).encode()


_BUCKETS = [re.compile(b"#~" + _pattern(format) + rb"\Z") for format in _FORMATS.values()]


def _bucket(key):
    """What stands before `#~` and a bucket, and that bucket."""
    for pattern in _BUCKETS:
        found = pattern.search(key)
        bucket = found and _calendar(found.groupdict())
        if bucket:
            return key[:found.start()], bucket
    return key, None


def _calendar(fields):
    """The bucket of these fields as ISO 8601 writes it; None if the calendar has none."""
    has = {name: int(digits) for name, digits in fields.items() if name in "YGmdHV"}
    if "G" in has:
        last = 53 if _weekday_before(has["G"]) == 4 or _weekday_before(has["G"] - 1) == 3 else 52
        return f"{has['G']:04}-W{has['V']:02}" if 1 <= has["V"] <= last else None
    year, month, day, hour = has["Y"], has["m"], has.get("d", 1), has.get("H", 0)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not 1 <= month <= 12 or not 1 <= day <= days[month - 1] or hour > 23:
        return None
    return f"{year:04}-{month:02}" + (f"-{day:02}" if "d" in has else "") + (f"T{hour:02}" if "H" in has else "")


def _weekday_before(year):
    """The day of the week of a year's last day, from Sunday, 0. The calendar repeats after 400 years."""
    year += 400
    return (year + year // 4 - year // 100 + year // 400) % 7


_NUMBER = re.compile(rb"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]{1,6}))?\Z")
_NUMBERED = re.compile(rb"(-?[0-9]{1,20})\.([0-9]{6})709551([0-9]{1,4})\Z")


def _canonical(text):
    """A number as DynamoDB writes it: no exponent, no needless zeros. None for what is none."""
    found = _NUMBER.match(text)
    if not found or not found[2] + found[3]:
        return None
    written = int(found[4] + found[5]) if found[5] else 0
    digits, exponent = (found[2] + found[3]).lstrip(b"0"), written - len(found[3])
    kept = digits.rstrip(b"0")
    exponent += len(digits) - len(kept)
    if len(kept) > 38 or not -130 <= exponent + max(len(kept), 1) - 1 <= 125:
        return None
    if not kept:
        return b"0"
    point = len(kept) + exponent
    if exponent >= 0:
        plain = kept + b"0" * exponent
    elif point > 0:
        plain = kept[:point] + b"." + kept[point:]
    else:
        plain = b"0." + b"0" * -point + kept
    return b"-" + plain if found[1] == b"-" else plain


def _shard_of_number(physical):
    """The logical key 12.5 in shard 3 is 12.5000007095510003."""
    found = _NUMBERED.match(physical)
    if not found:
        return physical, 0
    own, shard = found[2].rstrip(b"0"), int(found[3].ljust(4, b"0"))
    logical = found[1] + b"." + own if own else found[1]
    return (logical, shard) if shard and logical != b"-0" else (physical, 0)


_PIECES = re.compile(r"\{(pk|shard|bucket)(?:\+([0-9]+))?(?::([^}]*))?\}")


def _by_templates(physical, kind, rules):
    for rule in rules:
        read = rule.template is not None and _by_template(physical, rule)
        if not read:
            continue
        named = base64.b64encode(read[0]).decode() if kind == "B" else read[0].decode()
        if next((other for other in rules if other.keys(named)), None) is rule:
            return read
    return physical, 0, None


def _by_template(physical, rule):
    pattern, end, start, width = b"", 0, 0, 1
    for piece in _PIECES.finditer(rule.template):
        pattern += re.escape(rule.template[end:piece.start()].encode())
        end = piece.end()
        if piece[1] == "pk":
            pattern += b"(?P<pk>.+)"
        elif piece[1] == "shard":
            pattern += b"(?P<shard>[0-9]{1,5})"
            start, width = int(piece[2] or 0), int((piece[3] or "1").rstrip("d"))
        else:
            pattern += _pattern(piece[3] or _FORMATS[rule.bucket])
    found = re.fullmatch(pattern + re.escape(rule.template[end:].encode()), physical, re.DOTALL)
    if not found:
        return None
    fields = found.groupdict()
    logical, digits = fields.pop("pk"), fields.pop("shard", None)
    shard = int(digits) - start if digits else 0
    bucket = _calendar(fields) if fields else None
    is_written_so = not digits or digits == str(shard + start).zfill(width).encode()
    if not is_written_so or not 0 <= shard < rule.shards or fields and not bucket:
        return None
    return logical, shard, bucket
