"""The oracle takes what is right, and finds each fault that is planted."""

import time

import pytest

from fence.oracle import ABSENT, ACKED, REFUSED, UNKNOWN, Oracle


@pytest.fixture
def oracle():
    return Oracle()


def write(oracle, sk, value, outcome=ACKED):
    oracle.end("t", oracle.begin("t", "k", sk, value), outcome)


def read(oracle, *rows, begin=None, age=0):
    now = time.monotonic()
    oracle.shown("t", "k", list(rows), now if begin is None else begin, now, age, "a read")
    return {kind: number for kind, number in oracle.faults.items() if number}


def test_what_was_acknowledged_must_be_shown(oracle):
    write(oracle, "a", "1")
    assert read(oracle, ("a", "1")) == {}
    assert read(oracle) == {"lost": 1}
    assert read(oracle) == {"lost": 1}, "each item is counted once"


def test_an_older_value_is_a_loss_of_the_newer(oracle):
    write(oracle, "a", "1")
    write(oracle, "a", "2")
    assert read(oracle, ("a", "1")) == {"lost": 1}


def test_a_read_that_began_before_may_show_the_older_value(oracle):
    write(oracle, "a", "1")
    begin = time.monotonic()
    write(oracle, "a", "2")
    assert read(oracle, ("a", "1"), begin=begin) == {}
    assert read(oracle, begin=begin) == {"lost": 1}


def test_a_deleted_item_must_not_come_back(oracle):
    write(oracle, "a", "1")
    write(oracle, "a", ABSENT)
    assert read(oracle) == {}
    assert read(oracle, ("a", "1")) == {"lost": 1}


def test_an_unknown_write_may_show_at_any_time_and_a_refused_one_never(oracle):
    write(oracle, "a", "1", UNKNOWN)
    assert read(oracle) == read(oracle, ("a", "1")) == {}
    write(oracle, "a", "2")
    assert read(oracle, ("a", "1")) == read(oracle, ("a", "2")) == {}
    write(oracle, "a", "3", REFUSED)
    assert read(oracle, ("a", "3")) == {"phantom": 1}


def test_a_write_under_way_may_show(oracle):
    oracle.begin("t", "k", "a", "1")
    assert read(oracle) == read(oracle, ("a", "1")) == {}


def test_each_item_shows_once(oracle):
    write(oracle, "a", "1")
    assert read(oracle, ("a", "1"), ("a", "1")) == {"doubled": 1}


def test_what_nobody_wrote_does_not_show(oracle):
    assert read(oracle, ("a", "1")) == {"phantom": 1}


def test_a_table_made_again_holds_nothing_of_the_one_before(oracle):
    write(oracle, "a", "1")
    late = oracle.begin("t", "k", "b", "1")
    oracle.dropping("t")
    assert read(oracle, age=0) == read(oracle, age=1) == {}, "what is read meanwhile is not judged"
    oracle.made_again("t")
    assert read(oracle, age=2) == {}
    write(oracle, "c", "1")
    oracle.end("t", late, ACKED)
    assert read(oracle, ("c", "1"), age=2) == read(oracle, ("b", "1"), ("c", "1"), age=2) == {}
    assert read(oracle, ("a", "1"), ("c", "1"), age=2) == {"phantom": 1}


def test_a_counter_lies_between_what_was_acknowledged_and_what_was_sent(oracle):
    for amount, outcome in ((5, ACKED), (3, UNKNOWN), (9, REFUSED)):
        oracle.added("t", oracle.adding("t", ("k", "a"), amount), outcome)
    oracle.adding("t", ("k", "a"), 1)
    least = oracle.least("t", ("k", "a"))
    for value in range(5, 10):
        oracle.summed("t", ("k", "a"), value, least, "a read")
    assert not oracle.faults
    oracle.summed("t", ("k", "a"), 4, least, "a read")
    assert oracle.faults == {"lost": 1}
    oracle.summed("t", ("k", "a"), 10, least, "a read")
    assert oracle.faults == {"lost": 1, "doubled": 1}


@pytest.mark.parametrize("rows, faults", [
    ([("k", "a", "open:1")], {}),
    ([], {"lost": 1}),
    ([("k", "a", "open:1")] * 2, {"doubled": 1}),
    ([("k", "a", "open:1"), ("k", "b", "done:1")], {}),
    ([("k", "a", "open:0")], {"lost": 1}),
    ([("k", "a", "open:1"), ("k", "z", "open:1")], {"phantom": 1}),
])
def test_a_query_of_an_index_shows_every_item_of_its_status_once(oracle, rows, faults):
    write(oracle, "a", "open:0")
    write(oracle, "a", "open:1")
    write(oracle, "b", "done:1")
    oracle.begin("t", "k", "b", "open:2")  # may be shown, or not yet
    now = time.monotonic()
    oracle.listed("t", "open", rows, now, now, 0, "a Query")
    assert oracle.faults == faults


@pytest.mark.parametrize("key", ["k#~3", "k#~2026-06-22", "k#~2026-06-22#~1", "k#~2026-W26"])
def test_physical_keys_are_seen(oracle, key):
    oracle.logical("t", {"pk": {"S": key}}, "a read", ["pk", "status"])
    assert oracle.faults == {"shown": 1}
    oracle.logical("t", {"pk": {"S": "k#3"}, "status": {"S": "open~1"}}, "a read", ["pk", "status"])
    assert oracle.faults == {"shown": 1}


def test_the_longest_stretch_without_success_is_kept(oracle):
    pulse = oracle.pulse("t")
    pulse.beat()
    assert pulse.longest == 0, "nobody writes yet"
    pulse.watch()
    time.sleep(0.05)
    pulse.beat()
    pulse.rest()
    assert 0.05 <= pulse.longest < 1
