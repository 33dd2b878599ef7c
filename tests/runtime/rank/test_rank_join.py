"""Rank joins with moving windows agree with all matches, on streams that are too large for the oracle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamsift as ss
from streamsift.runtime.arrays.range_tree import NOTHING, greatest, tree_of
from streamsift.runtime.rank.join import RankJoin

PATTERNS = {
    "A a; B b": ["MAX[SQRT(a.x^2 + b.x^2)]", "MIN[a.x + b.x^2]", "MAX[GREATEST(a.x, b.x)]", "MIN[LEAST(a.x, b.x)]"],
    "A a; B b; C c WHERE a.id = c.id": ["MAX[SQRT(a.x^2 + c.x^2)]", "MAX[ABS(a.x) * ABS(b.x)] AND MIN[c.x] MERGE SUM"],
    "A a & B b": ["MAX[LEAST(a.x, b.x)]", "MAX[GREATEST(a.x, b.x)] AND MIN[SQRT(ABS(a.x) + ABS(b.x))]"],
    "A a; A b WHERE a.x <= b.x": ["MAX[SQRT(a.x^2 + b.x^2)]"],
}
VALUES = {
    "whole": [0.0, 1.0, 2.0, 3.0],
    "drift": None,  # the best of the stream says little of a window
    "odd": [1.0, 2.0, None, float("nan"), float("inf"), float("-inf"), -0.0, -3.0, 0.5],
}


def stream(values: str, seed: int, count: int = 120) -> pa.Table:
    random = np.random.default_rng(seed)
    known = VALUES[values]
    x = random.random(count) + np.arange(count) / 10 if known is None else pa.array(random.choice(known, count))
    kinds = pa.array(["A", "B", "C"]).take(pa.array(random.integers(0, 3, count)))
    times = np.sort(random.integers(0, count, count))
    return pa.table({"t": times, "kind": kinds, "id": random.integers(0, 3, count), "x": x})


@pytest.mark.parametrize(("pattern", "preference"), [(p, each) for p, many in PATTERNS.items() for each in many])
@pytest.mark.parametrize(
    "window", ["WITHIN 30 UPDATE 2", "WITHIN 40 EVENTS UPDATE 3 EVENTS", "WITHIN 10 UPDATE 12", "WITHIN 9", ""]
)
@pytest.mark.parametrize("values", VALUES)
def test_moves_agree(pattern: str, preference: str, window: str, values: str) -> None:
    for limit, seed in ((1, 6), (4, 7)):
        query, table = ss.query(f"{pattern} PREF {preference} {window} RETURN {limit}"), stream(values, seed)
        wanted, found = (query.run_local(table, time="t", type="kind", rank=by) for by in ("enumerate", "join"))
        assert str(found.to_pylist()) == str(wanted.to_pylist())  # NaN equals NaN


def test_moves_keep_what_was_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = []
    monkeypatch.setattr(RankJoin, "_join", lambda self, limit, join=RankJoin._join: joined.append(join(self, limit)))
    query = ss.query("A a; B b PREF MAX[SQRT(a.x^2 + b.x^2)] WITHIN 1000 EVENTS UPDATE 10 EVENTS RETURN 5")
    table = pa.table({"t": np.arange(5000), "kind": ["A", "B"] * 2500, "x": np.random.default_rng(1).random(5000)})
    assert query.run_local(table, time="t", type="kind", rank="join").num_rows > 2000
    assert len(joined) < 50, "of 500 windows few are joined anew"


@given(st.lists(st.integers(-3, 9), max_size=40), st.integers(0, 40), st.integers(0, 40), st.integers(-4, 9))
def test_greatest_of_a_stretch(values: list[int], low: int, high: int, floor: int) -> None:
    numbers = np.array(values, np.int64)
    numbers[numbers < -1] = NOTHING
    low, high = min(low, numbers.size), min(high, numbers.size)
    wanted = sorted((v for v in numbers[low:high].tolist() if v >= floor and v != NOTHING), reverse=True)
    for most in (1, 3, 100):
        found = greatest(tree_of(numbers), low, high, floor, most)
        assert numbers[found].tolist() == wanted[:most]
        assert len(set(found.tolist())) == found.size
        assert ((found >= low) & (found < high)).all()
