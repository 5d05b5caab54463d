"""What the story will take, computed before anything is made. All bounds are from above: a run that goes well takes less."""

import math
from dataclasses import dataclass

from story.prices import AS_OF, ELSEWHERE, REGION, SOURCE, Use

# Items of the hot key, and items with the hot value of the index. They are written over and over, so that moves stay cheap.
ITEMS, ORDERS = 600, 300
ITEM_KB = 4
# Shards of the key, shards for the move in which a gateway is killed, shards of the index's value.
SHARDS, MORE_SHARDS, INDEX_SHARDS = 8, 16, 8
GATEWAYS = 2
# The most seconds that a move may take under load: the first one makes the registry, later ones wait for a killed gateway's lease.
FIRST_MOVE, INDEX_MOVE, KILLED_MOVE, QUIET_MOVE = 150, 90, 150, 180
# Write units a second offered while a gateway is killed.
GENTLE = 200
# What one gateway takes of the registry in a second, while layouts change.
REGISTRY_SECOND = Use(writes=2, reads=6)
# Tables that it makes: its own, and the registry.
TABLES = 2


@dataclass(frozen=True)
class Step:
    name: str
    use: Use


def move_of_key(items, kb=ITEM_KB):
    """All items of a key change their slot: per item two transactions, a copy and a deletion, each with the check of a claim; and three readings."""
    return Use(writes=items * (2 * kb + 2 * kb + 2 * 6), reads=items * 3 * math.ceil(kb / 4) * 2)


def move_of_value(items, kb=ITEM_KB):
    """All items of a value are rewritten: a transaction per item with the check of a claim; the index deletes one row and puts another."""
    return Use(writes=items * (2 * kb + 2 * kb + 2 * kb + 2 * 6), reads=items * 3 * math.ceil(kb / 4) * 2)


def reading(items, kb=ITEM_KB):
    """Everything is read once, strongly, and up to nine times where two places are looked into. What is read is sent here."""
    return Use(reads=9 * items * math.ceil(kb / 4), gb_sent=9 * items * kb / 1e6)


def load(units, seconds, index=False):
    """Puts at a pace. Those of items with the index's key are written into the index too."""
    return Use(writes=units * seconds * (2 if index else 1))


def steps(units, seconds):
    """The steps of the story for `units` write units a second on what is hot, `seconds` before and after each move."""
    loaded = [2 * seconds + FIRST_MOVE, 2 * seconds + INDEX_MOVE, KILLED_MOVE]
    minutes = sum(loaded) + 2 * QUIET_MOVE + 300
    everything = ITEMS + ORDERS
    registry = Use(GATEWAYS * minutes * REGISTRY_SECOND.writes, GATEWAYS * minutes * REGISTRY_SECOND.reads)
    stored = Use(gb_hours=2 * everything * ITEM_KB / 1e6 * max(1.0, minutes / 3600))
    return [
        Step("one hot key, before, while and after it moves", load(units, loaded[0]) + move_of_key(ITEMS)),
        Step("one hot value of the index, likewise", load(units, loaded[1], index=True) + move_of_value(ORDERS)),
        Step("a gateway killed while the key moves", load(GENTLE, loaded[2]) + move_of_key(ITEMS)),
        Step("moved back", move_of_key(ITEMS) + move_of_value(ORDERS)),
        Step("everything read and verified, five times", Use(*(5 * x for x in vars(reading(everything)).values()))),
        Step(f"{GATEWAYS} gateways at the registry", registry),
        Step(f"{TABLES} tables stored", stored),
    ]


def total(planned):
    return sum((step.use for step in planned), Use())


def lines(planned, region):
    """The budget as it is stated before anything is made."""
    for step in planned:
        yield f"{step.name:<48} {step.use.writes:>10,.0f} write units {step.use.reads:>8,.0f} read units  ${step.use.dollars(region):.4f}"
    yield f"{'at most, together':<48} {total(planned).writes:>10,.0f} write units {total(planned).reads:>8,.0f} read units  ${total(planned).dollars(region):.4f}"
    yield f"Prices of {REGION} on demand since {AS_OF}, {SOURCE}" + ("" if region == REGION else f"; times {ELSEWHERE:g} for {region}")
