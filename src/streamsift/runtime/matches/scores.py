"""The rows of matches in, each objective as written and the merged score out.

A score is a double: each objective's nearest one, negated for MIN, then merged from left to right. NaN means that the
match is left out: an objective is null or NaN, or they cancel out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundObjective, Kind, Ranking
from streamsift.logical.durations import units_per_second
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Float64, Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import nulls, take
from streamsift.runtime.expressions.evaluate import Rows, evaluate
from streamsift.runtime.expressions.values import DEFAULT_TYPES, as_float


def match_columns(plan: Alternative, events: Events, rows: Int32) -> Rows:
    """What an expression sees of the matches whose events are the table rows rows[step, match]."""
    indices = {step.variable: pa.array(rows[number]) for number, step in enumerate(plan.steps)}
    gathered: dict[tuple[int, str], pa.Array] = {}

    def column(variable: int, name: str) -> pa.Array:
        if variable not in indices:  # of a branch not taken
            return pa.nulls(rows.shape[1], events.columns.whole(name).type)
        if (variable, name) not in gathered:
            gathered[variable, name] = take(events.columns.whole(name), indices[variable])
        return gathered[variable, name]

    return Rows(column, rows.shape[1], plan.query.text)


def objective_values(ranking: Ranking, seen: Rows) -> list[pa.Array]:
    """The value of each objective in each match; a duration in seconds."""
    return [_as_written(objective, evaluate(objective.expression, seen)) for objective in ranking.objectives]


def objective_type(objective: BoundObjective, value: pa.DataType) -> pa.DataType:
    return pa.float64() if objective.expression.kind in (Kind.DURATION, Kind.NULL) else value


def _as_written(objective: BoundObjective, value: pa.Array) -> pa.Array:
    if pa.types.is_null(value.type):
        return value.cast(DEFAULT_TYPES[Kind.FLOAT])
    if pa.types.is_duration(value.type):
        seconds = np.asarray(value.cast(pa.int64()).fill_null(0)) / units_per_second(value.type)
        return pa.array(seconds, mask=nulls(value))
    return value.cast(objective_type(objective, value.type))


def scores(ranking: Ranking, values: Sequence[pa.Array]) -> Float64:
    """The score of each match; NaN where it has none."""
    return merged_scores(ranking, [_score(o, v) for o, v in zip(ranking.objectives, values, strict=True)])


def merged_scores(ranking: Ranking, each: Sequence[Float64]) -> Float64:
    """The scores of the objectives as one."""
    merged, taken = [], 0
    for merge in ranking.merges:
        parts = each[taken : taken + merge.count]
        taken += merge.count
        merged.append(_MERGED[merge.function](parts))
    with np.errstate(invalid="ignore"):
        # np.minimum and its like keep NaN.
        return reduce(np.minimum, merged)


def objective_score(objective: BoundObjective, value: pa.Array) -> Float64:
    """The score of one objective's value, as it is evaluated; NaN where it has none."""
    return _score(objective, _as_written(objective, value))


def _score(objective: BoundObjective, value: pa.Array) -> Float64:
    found = as_float(value)
    missing = nulls(value)
    numbers = np.array(found.fill_null(0.0) if missing is not None else found, np.float64)
    if missing is not None:
        numbers[missing] = np.nan
    return numbers if objective.maximise else -numbers


def _sum(parts: Sequence[Float64]) -> Float64:
    with np.errstate(invalid="ignore", over="ignore"):
        return reduce(np.add, parts)


def _product(parts: Sequence[Float64]) -> Float64:
    with np.errstate(invalid="ignore", over="ignore"):
        return reduce(np.multiply, parts)


_MERGED = {
    "MIN": lambda parts: reduce(np.minimum, parts),
    "MAX": lambda parts: reduce(np.maximum, parts),
    "SUM": _sum,
    "AVG": lambda parts: _sum(parts) / len(parts),
    "PRODUCT": _product,
}
