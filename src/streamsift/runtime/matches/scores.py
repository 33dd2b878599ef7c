"""Evaluate the objectives of a ranking, and merge them into the score of each match.

A score is a double. Each objective is rounded to the nearest double and negated for MIN; then the objectives are merged
from left to right. A score is NaN if an objective is null or NaN, or if infinities cancel out; such matches are
filtered out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import islice

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundObjective, Kind, Ranking
from streamsift.logical.durations import units_per_second
from streamsift.runtime.arrays.dtypes import Float64
from streamsift.runtime.expressions.columns import nulls
from streamsift.runtime.expressions.evaluate import Rows, evaluate
from streamsift.runtime.expressions.values import DEFAULT_TYPES, as_float


def objective_values(ranking: Ranking, matches: Rows) -> list[pa.Array]:
    """Return the value of each objective for each match; durations are in seconds."""
    return [_as_written(objective, evaluate(objective.expression, matches)) for objective in ranking.objectives]


def _as_written(objective: BoundObjective, value: pa.Array) -> pa.Array:
    if pa.types.is_null(value.type):
        return value.cast(DEFAULT_TYPES[Kind.FLOAT])
    if pa.types.is_duration(value.type):
        seconds = np.asarray(value.cast(pa.int64()).fill_null(0)) / units_per_second(value.type)
        return pa.array(seconds, mask=nulls(value))
    return value.cast(pa.float64()) if objective.expression.kind in (Kind.DURATION, Kind.NULL) else value


def scores(ranking: Ranking, values: Sequence[pa.Array]) -> Float64:
    """Return the score of each match; NaN if it has none."""
    return merged_scores(ranking, [_score(o, v) for o, v in zip(ranking.objectives, values, strict=True)])


def merged_scores(ranking: Ranking, each: Sequence[Float64]) -> Float64:
    """Merge the scores of the objectives into one."""
    parts = iter(each)
    with np.errstate(invalid="ignore", over="ignore"):  # these NumPy functions propagate NaN
        return reduce(np.minimum, [_MERGED[m.function](list(islice(parts, m.count))) for m in ranking.merges])


def objective_score(objective: BoundObjective, value: pa.Array) -> Float64:
    """Return the score of one objective from its evaluated expression; NaN if it has none."""
    return _score(objective, _as_written(objective, value))


def _score(objective: BoundObjective, value: pa.Array) -> Float64:
    numbers, missing = np.array(as_float(value).fill_null(0.0), np.float64), nulls(value)
    if missing is not None:
        numbers[missing] = np.nan
    return numbers if objective.maximise else -numbers


_MERGED = {
    "MIN": lambda parts: reduce(np.minimum, parts),
    "MAX": lambda parts: reduce(np.maximum, parts),
    "SUM": lambda parts: reduce(np.add, parts),
    "AVG": lambda parts: reduce(np.add, parts) / len(parts),
    "PRODUCT": lambda parts: reduce(np.multiply, parts),
}
