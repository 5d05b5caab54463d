"""The oracle notices every fault that it is there for."""

import pytest

from story.known import Known


@pytest.fixture
def known():
    known = Known("key", 3)
    known.acked, known.maybe = [2, 1, 0], [None, 2, None]
    return known


def rows(known, *of):
    return [known.item(number, version) for number, version in of]


@pytest.mark.parametrize("of", [[(0, 2), (1, 1)], [(0, 2), (1, 2)]])
def test_what_was_acknowledged_and_what_may_be_is_right(known, of):
    assert known.judge(rows(known, *of)) == []


@pytest.mark.parametrize("of, kinds", [
    ([(1, 1)], ["lost"]),
    ([(0, 1), (1, 1)], ["stale"]),
    ([(0, 2), (0, 2), (1, 1)], ["doubled"]),
    ([(1, 1), (0, 2)], ["disordered"]),
    ([(0, 3), (1, 1)], ["phantom"]),
    ([(0, 2), (1, 1), (2, 1)], ["phantom"]),
    ([(0, 2), (1, 1), (7, 1)], ["phantom"]),
])
def test_faults(known, of, kinds):
    assert [kind for kind, _ in known.judge(rows(known, *of))] == kinds


@pytest.mark.parametrize("kind", ["key", "value"])
def test_an_item_takes_what_the_plan_says(kind):
    item = Known(kind, 1).item(0, 10**9)
    size = sum(len(name) + len(next(iter(value.values()))) for name, value in item.items())
    assert 3 * 1024 < size <= 4 * 1024
