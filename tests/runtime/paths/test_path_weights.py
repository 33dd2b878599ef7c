"""The sum of a path's weights ranks it as its score does, up to the error."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamsift as ss
from streamsift.physical.plan.plan import PathPlan, RankPlan
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.paths.weights import path_weights

TENTHS = st.integers(-9, 9).map(lambda n: n / 10)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "integers": (pa.int64(), st.integers(-5, 5) | st.integers(2**53 - 3, 2**53 + 3) | st.integers(-(2**60), 2**60)),
    "doubles": (pa.float64(), TENTHS | st.floats(-1e9, 1e9)),
    "decimals": (pa.decimal128(10, 2), st.integers(-500, 500).map(lambda n: Decimal(n) / 100)),
}
# A score, and the same in Python: exact for exact numbers, rounded as written for doubles.
SCORES: dict[str, Callable[[Any, Any], Any]] = {
    "MAX[a.x + b.x]": lambda a, b: a + b,
    "MIN[2 * a.x - b.x]": lambda a, b: -(2 * a - b),
    "MAX[a.x - 3 * b.x + 7]": lambda a, b: a - 3 * b + 7,
}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("values", VALUES)
@given(data=st.data())
def test_sums_rank_as_scores_do(values: str, score: str, data: st.DataObject) -> None:
    kind, numbers = VALUES[values]
    x = data.draw(st.lists(numbers, min_size=8, max_size=8))
    table = pa.table({"t": range(8), "kind": list("AAAABBBB"), "x": pa.array(x, kind)})
    plan = ss.query(f"PATTERN SEQ(A a, B b) PREF {score} RETURN 1").plan(table.schema, "t", "kind", None)
    assert isinstance(plan, RankPlan)
    (branch,) = plan.branches
    assert isinstance(branch, PathPlan)
    events = prepare(plan.query, table)
    places = candidates(branch.alternative, events)
    weights = path_weights(branch.score, branch.alternative, events, places)
    sums = [float(one + other) for one, other in product(*weights.steps)]
    scores = [float(SCORES[score](x[a], x[b])) for a, b in product(*places)]
    constant = float(branch.score.constant)
    for total, value in zip(sums, scores, strict=True):
        assert abs(total * weights.unit + constant - value) <= max(weights.error, 1e-12 * abs(value))
    if weights.error == 0:
        by_sum, by_score = np.array(sums)[:, None], np.array(scores)[:, None]
        assert (np.sign(by_sum - by_sum.T) == np.sign(by_score - by_score.T)).all()
