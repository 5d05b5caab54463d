"""The arithmetic of the budget, and that it holds."""

import random

import pytest

from story import plan, prices
from story.meter import Meter, OverBudget, units
from story.prices import Use


def test_a_million_units_cost_what_the_price_list_says():
    assert Use(writes=1e6).dollars() == pytest.approx(0.625)
    assert Use(reads=1e6).dollars() == pytest.approx(0.125)
    assert Use(gb_hours=730).dollars() == pytest.approx(0.25)
    assert Use(gb_sent=1).dollars() == pytest.approx(0.09)


def test_another_region_costs_more_and_never_less():
    use = Use(1000, 1000, 1, 1)
    assert use.dollars("sa-east-1") == pytest.approx(prices.ELSEWHERE * use.dollars("us-east-1"))


def test_the_plan_by_hand():
    """1,000 units a second for 10 s before and after: every step computed anew, from the same sentences."""
    steps = plan.steps(1000, 10)
    hot = 1000 * (10 + 150 + 10) + 600 * (8 + 8 + 12)
    index = 2 * 1000 * (10 + 90 + 10) + 300 * (8 + 8 + 8 + 12)
    killed = 200 * 150 + 600 * (8 + 8 + 12)
    back = 600 * (8 + 8 + 12) + 300 * (8 + 8 + 8 + 12)
    assert [step.use.writes for step in steps[:5]] == [hot, index, killed, back, 0]
    assert plan.total(steps).dollars() == pytest.approx(sum(step.use.dollars() for step in steps))


def test_more_load_and_more_time_cost_more():
    cost = [plan.total(plan.steps(*of)).dollars() for of in [(500, 10), (1000, 10), (1000, 60), (4000, 600)]]
    assert cost == sorted(cost) and len(set(cost)) == 4


def test_the_statement_adds_up_and_names_its_prices():
    said = list(plan.lines(plan.steps(1500, 20), "eu-west-1"))
    dollars = [float(line.rsplit("$", 1)[1]) for line in said[:-1]]
    assert sum(dollars[:-1]) == pytest.approx(dollars[-1], abs=0.0005)
    assert prices.AS_OF in said[-1] and prices.SOURCE in said[-1] and "times 2 for eu-west-1" in said[-1]


def test_units_of_every_form_of_an_answer():
    assert units({}) == 0
    assert units({"ConsumedCapacity": {"CapacityUnits": 2.5}}) == 2.5
    assert units({"ConsumedCapacity": [{"CapacityUnits": 1}, {"CapacityUnits": 4}]}) == 5


def test_the_meter_stops_at_the_budget_and_not_before():
    meter, price = Meter(10 * prices.WRITE_UNIT), {"ConsumedCapacity": {"CapacityUnits": 1}}
    for _ in range(10):
        meter.write(price)
    with pytest.raises(OverBudget):
        meter.write(price)


def test_what_is_computed_counts_as_what_is_counted():
    meter = Meter(Use(writes=100, reads=100).dollars())
    meter.read({"ConsumedCapacity": {"CapacityUnits": 100}})
    meter.compute(Use(writes=99))
    meter.afford(Use(writes=1), "the last one")
    with pytest.raises(OverBudget, match="a move"):
        meter.afford(Use(writes=2), "a move")
    assert meter.computed.writes == 99, "what is asked for is not taken"


def test_dollars_never_fall_and_no_order_changes_them():
    rng = random.Random(1)
    uses = [Use(rng.randrange(100), rng.randrange(100), rng.random(), rng.random()) for _ in range(50)]
    one, other = Meter(1e9), Meter(1e9)
    last = 0.0
    for use in uses:
        one.compute(use)
        assert one.dollars() >= last
        last = one.dollars()
    for use in reversed(uses):
        other.compute(use)
    assert one.dollars() == pytest.approx(other.dollars())
