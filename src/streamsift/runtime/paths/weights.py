"""Compute the weights of each step's candidates from a linear score, and bound the rounding error of their sums.

Contract: the sum of a path's weights ranks it as its score does, up to `error`. With an error of 0, equal sums are
equal scores and greater sums are greater scores ("Preference Function and Vertex Weights" in the CPR thesis, with
rounding taken into account). Checked by tests/runtime/paths/test_path_weights.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.durations import units_per_second
from streamsift.physical.plan import Alternative, LinearScore, Term
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.events.candidates import step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import integers, nulls
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.expressions.values import as_float

EXACT = 2.0**49  # sums of integers up to this one stay exact and distinct, as 15-digit decimals do
BINARY_PLACES = 2.0**10  # doubles that are multiples of 1 / this are scaled to integers
ROUNDING = 2.0**-52


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights [candidates] for each step; NaN where a match would have no score.

    A score is `unit` times the sum of the weights, plus the constant, up to `error`.
    """

    steps: tuple[Float64, ...]
    error: float
    unit: float = 1.0


def path_weights(score: LinearScore, plan: Alternative, events: Events, places: Sequence[Int32]) -> Weights:
    step_of = {step.variable: number for number, step in enumerate(plan.steps)}
    arrays = [
        evaluate(term.column, step_rows(plan, events, events.rows_at(places[step_of[term.column.variable]])))
        for term in score.terms
    ]
    moment = _moment(arrays)
    exact = _exact(score, arrays, moment)
    values = exact[0] if exact else [_value(t, a, moment) for t, a in zip(score.terms, arrays, strict=True)]
    weights = [np.zeros(part.size) for part in places]
    with np.errstate(invalid="ignore", over="ignore"):
        for term, value in zip(score.terms, values, strict=True):
            weights[step_of[term.column.variable]] += value
    if exact:
        return Weights(tuple(weights), 0.0, exact[1])
    largest = sum((_largest(value) for value in values), abs(float(score.constant)))
    return Weights(tuple(weights), ROUNDING * (score.operations + 2 * len(places) + 8) * largest)


def _largest(values: Float64) -> float:
    return float(np.nanmax(np.abs(values), initial=0.0))


def _exact(score: LinearScore, arrays: Sequence[pa.Array], moment: int) -> tuple[list[Float64], float] | None:
    """Return the terms as integer multiples of a quantum, and the quantum; None if sums would not be exact."""
    quanta = [_quantum(array.type) for array in arrays]
    if not all(quanta) or any(term.coefficient.denominator > 1 for term in score.terms):
        return None
    finest, values = min(quanta, default=Fraction(1)), list[Float64]()
    for term, array, quantum in zip(score.terms, arrays, quanta, strict=True):
        whole = _whole(array, moment)
        factor = term.coefficient * quantum / finest
        if whole is None or factor.denominator > 1:
            return None
        values.append(whole * float(factor))
    constant = score.constant / finest
    if constant.denominator > 1 or sum(map(_largest, values)) + abs(float(constant)) >= EXACT:
        return None
    return values, float(finest)


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _quantum(kind: pa.DataType) -> Fraction:
    """Return the quantum of a type, of which every value is a multiple; 0 if there is none."""
    if pa.types.is_floating(kind):
        return Fraction(1, int(BINARY_PLACES))
    if pa.types.is_integer(kind):
        return Fraction(1)
    if pa.types.is_decimal(kind):
        return Fraction(1, 10**kind.scale)
    if (per_second := units_per_second(kind)) is not None:
        return Fraction(1, per_second)
    return Fraction(86_400 if pa.types.is_date32(kind) else 0)


def _whole(array: pa.Array, moment: int) -> Float64 | None:
    """Return the values in units of their quantum, NaN where null; None if they are not integers, or too large."""
    if pa.types.is_floating(array.type):
        values = np.array(pc.fill_null(array, np.nan), np.float64) * BINARY_PLACES
        is_whole = np.isnan(values) | (np.isfinite(values) & (values == np.rint(values)))
        return values if is_whole.all() else None
    units, base = integers(array), _base(array.type, moment)
    if units is None or any(abs(int(end(initial=base)) - base) >= EXACT for end in (units.min, units.max)):
        return None
    return _with_nulls(array, units - base)


def _base(kind: pa.DataType, moment: int) -> int:
    """Return the moment in units of an instant type; 0 for other types."""
    return int(moment / _quantum(kind)) if _is_instant(kind) else 0


def _with_nulls(array: pa.Array, units: Int64) -> Float64:
    """Return integers as doubles, NaN where the array is null."""
    values, missing = units.astype(np.float64), nulls(array)
    if missing is not None:
        values[missing] = np.nan
    return values


def _value(term: Term, array: pa.Array, moment: int) -> Float64:
    """Return coefficient * column as doubles, NaN where null. Instants are relative to a moment, which cancels out."""
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if pa.types.is_integer(array.type) or pa.types.is_decimal(array.type) or pa.types.is_floating(array.type):
        values = np.array(pc.fill_null(as_float(array), np.nan), np.float64)
    else:
        units = integers(array)
        assert units is not None
        values = _with_nulls(array, units - _base(array.type, moment)) * float(_quantum(array.type))
    with np.errstate(invalid="ignore", over="ignore"):
        return values * float(term.coefficient)


def _moment(arrays: Sequence[pa.Array]) -> int:
    """Return a midnight (in seconds) near the instants, so that differences are smaller than times since the epoch."""
    for array in arrays:
        values = array.drop_null() if _is_instant(array.type) else array[:0]
        if len(values):
            units = integers(values[:1])
            assert units is not None
            return int(int(units[0]) * _quantum(array.type) // 86_400) * 86_400
    return 0
