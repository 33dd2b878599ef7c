"""Test the cost model: expected rows of independent events, and the tree chosen for given rates."""

from __future__ import annotations

import pytest

from streamsift.physical.detect.cost import CostModel, Statistics, cheapest
from streamsift.physical.plan.join_trees import Join, JoinLeaf, forced, is_left_deep, steps_of, units_of
from streamsift.physical.plan.options import Cache, PlanShape


def rates(*in_window: float, ordered: bool = True, other: dict[tuple[int, int], float] | None = None) -> Statistics:
    """Return the statistics of a stream of 100 windows."""
    return Statistics(tuple(100 * n for n in in_window), in_window, (), other or {}, ordered)


def test_rows_of_a_sequence() -> None:
    model = CostModel(rates(10, 20, 30, other={(0, 2): 0.5}))
    assert model.rows((0,)) == 1_000
    assert model.rows((0, 1)) == 1_000 * 20
    assert model.rows((0, 1, 2)) == pytest.approx(1_000 * 20 * 30 / 2 * 0.5)
    assert model.rows((0, 1, 2), compared=False) == pytest.approx(1_000 * 20 * 30 / 2)


def test_equal_values_are_counted_once_per_step() -> None:
    equal = ({(0, 1): 0.1, (0, 2): 0.1, (1, 2): 0.1},)
    model = CostModel(Statistics((100, 100, 100), (10, 10, 10), equal, {}))
    assert model.rows((0, 1, 2)) == pytest.approx(100 * 10 * 10 / 2 * 0.1 * 0.1)


def test_forced_shapes() -> None:
    a, b, c, d = map(JoinLeaf, range(4))
    assert forced(PlanShape.LEFT, range(4)) == Join(Join(Join(a, b), c), d)
    assert forced(PlanShape.RIGHT, range(4)) == Join(a, Join(b, Join(c, d, from_right=True)))
    assert forced(PlanShape.BUSHY, range(4)) == Join(Join(a, b), Join(c, d))
    assert forced(PlanShape.INNER, range(4)) == Join(a, Join(Join(b, c), d))


def test_the_order_of_binding() -> None:
    assert units_of(forced(PlanShape.RIGHT, range(3))) == [JoinLeaf(2), JoinLeaf(1), JoinLeaf(0)]
    assert units_of(forced(PlanShape.BUSHY, range(4))) == [JoinLeaf(0), JoinLeaf(1), Join(JoinLeaf(2), JoinLeaf(3))]
    assert is_left_deep(forced(PlanShape.LEFT, range(5)))


def test_a_rare_last_event_is_found_first() -> None:
    tree = cheapest(rates(100, 100, 100, 0.001, other={(0, 3): 0.1, (1, 2): 0.9}))
    assert units_of(tree)[0] == JoinLeaf(3)


def test_plenty_of_everything_looks_ahead() -> None:
    assert is_left_deep(cheapest(rates(2, 2, 2, 2)))


def test_caching_is_taken_or_left_as_asked() -> None:
    statistics = rates(3, 3, 3, 3, 3)
    assert any(isinstance(unit, Join) for unit in units_of(cheapest(statistics, Cache.ON)))
    assert all(isinstance(unit, JoinLeaf) for unit in units_of(cheapest(rates(50, 50, 50, 50, 50), Cache.OFF)))


def test_a_conjunction_binds_rare_events_first() -> None:
    assert units_of(cheapest(rates(100, 0.01, 50, ordered=False)))[0] == JoinLeaf(1)


def test_two_hundred_steps_are_planned_at_once() -> None:
    assert len(steps_of(cheapest(rates(*[5.0] * 200)))) == 200
