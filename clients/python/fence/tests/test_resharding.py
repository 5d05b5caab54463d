"""The schedule of troubles replays by its seed; the clients of `reshard` take what is right, and find each fault that is planted."""

import random
from itertools import islice
from types import SimpleNamespace

import pytest

from fence.cluster import SHORT
from fence.oracle import Oracle
from fence.resharding.indexes import IndexReader
from fence.resharding.items import Client
from fence.resharding.readers import Reader
from fence.resharding.scans import SegmentReader
from fence.resharding.schedule import STAND_STILL, schedule
from fence.resharding.streams import StreamReader
from fence.tests.table import Table


def play(plant, reader):
    """Faults by kind after some hundreds of calls of a client and of a reader."""
    oracle, table, rng = Oracle(), Table(plant), random.Random(1)
    clients = SimpleNamespace(rest=lambda _: None, stopping=SimpleNamespace(is_set=lambda: False))
    stage = SimpleNamespace(oracle=oracle, cluster=SimpleNamespace(seed=1), clients=clients, raw=table, until=until)
    client = Client(stage, "Moves", 0, [table, table], ["hot", "calm"], partiql=False)
    if reader is StreamReader:
        one = StreamReader(stage, "Moves", [table, table])
    else:
        one = reader(stage, "Moves", 1, [table, table], ["hot", "calm"], lambda *_: False)
    for _ in range(400 if reader in (IndexReader, SegmentReader) else 1000):
        client.act(rng)
        # The stream is read at the end, in whole pages.
        reader is StreamReader or one.act(rng)
    if reader is StreamReader:
        one.finish(rng)
    return {kind for kind, times in oracle.faults.items() if times}


def until(condition, _):
    """So much is enough to read every record."""
    any(condition() for _ in range(1000))


READERS = [Reader, IndexReader, SegmentReader, StreamReader]


@pytest.mark.parametrize("reader", READERS)
def test_what_is_right_is_taken(reader):
    assert play(None, reader) == set()


@pytest.mark.parametrize("reader, plant, kind", [
    (Reader, "put lost", "lost"), (Reader, "delete lost", "lost"), (Reader, "condition ignored", "accepted"),
    (Reader, "token forgotten", "phantom"), (Reader, "page out of order", "disordered"), (Reader, "item left out", "lost"),
    (Reader, "item shown twice", "doubled"), (IndexReader, "page out of order", "disordered"), (IndexReader, "item left out", "lost"),
    (IndexReader, "item shown twice", "doubled"), (SegmentReader, "item left out", "lost"), (SegmentReader, "item shown twice", "doubled"),
    (StreamReader, "record left out", "lost"), (StreamReader, "records out of order", "disordered"),
])
def test_what_is_planted_is_found(reader, plant, kind):
    assert kind in play(plant, reader)


def test_a_seed_gives_the_same_schedule_and_reaches_past_every_bound():
    one, again, other = (list(islice(schedule(random.Random(seed), SHORT, 3), 200)) for seed in (5, 5, 6))
    assert one == again != other
    lengths = [trouble.length for trouble in one if trouble.kind == STAND_STILL]
    assert min(lengths) < 0.3 and max(lengths) > SHORT.lease
