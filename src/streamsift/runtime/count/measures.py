"""Convert the AGG clause and events to what each event adds to a match, and sums over matches back to Arrow columns.

A match's measures are three blocks. Integers: 1 for the match itself, then the exact addends of sums. Reals: the
size of each integer as a double, which shows an overflow of 64 bits, then the addends of real sums. Least: codes of
which the least counts, for MIN, and for MAX from above (`extremes`).

Nulls, NaN and infinities are counted apart. Which of these columns there are depends on the events, or, for totals that
are updated batch by batch, on the schema alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError
from streamsift.logical.bound import TIME, AggregateOutput, BoundQuery
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.count.extremes import NOTHING, NotIncremental, codes_by_rank, codes_by_value
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import fixed_width, integers, nulls, plain
from streamsift.runtime.expressions.values import as_float, column_value

LIMIT = 2.0**63
DOUBT = 1e-9  # the doubles are closer than this to what they stand for
LIMB = 32  # bits


class Totals(NamedTuple):
    """The measures of sets of matches, one per row."""

    integers: Int64  # [rows, 1 + integer sums]
    reals: Float64  # [rows, 1 + integer sums + real sums]
    least: Int64  # [rows, extremes]

    def at(self, rows: np.ndarray) -> Totals:
        return Totals(self.integers[rows], self.reals[rows], self.least[rows])

    def contiguous(self) -> Totals:
        """Return the same as kernels take it."""
        least = np.ascontiguousarray(self.least)
        return Totals(np.ascontiguousarray(self.integers), np.ascontiguousarray(self.reals), least)


def no_totals(rows: int, shape: tuple[int, int, int]) -> Totals:
    """Return empty totals whose blocks have these numbers of columns."""
    integers, reals, least = shape
    return Totals(np.zeros((rows, integers), np.int64), np.zeros((rows, reals)), np.full((rows, least), NOTHING))


@dataclass(slots=True)
class Measures:
    """What the aggregates need of each event. Values are [places]; `variables` say whose event it is."""

    events: Events
    query: BoundQuery
    always: frozenset[int]  # variables that every match binds
    by_schema: bool  # which measures there are does not depend on the events
    integer_variables: list[int] = field(default_factory=list)
    integer_values: list[Int64] = field(default_factory=list)
    real_variables: list[int] = field(default_factory=list)
    real_values: list[Float64] = field(default_factory=list)
    least_variables: list[int] = field(default_factory=list)
    least_values: list[Int64] = field(default_factory=list)
    _known: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the sizes of the blocks."""
        whole = 1 + len(self.integer_values)
        return whole, whole + len(self.real_values), len(self.least_values)

    def may_lack_values(self, name: str) -> bool:
        """Return True if room for nulls and NaN is made whether the column has any or not; times have none."""
        return self.by_schema and name not in (TIME, self.query.binding.time, self.query.binding.order)

    @property
    def is_count_alone(self) -> bool:
        return not (self.integer_values or self.real_values or self.least_values)

    def add_integer(self, variable: int, values: Int64) -> int:
        self.integer_variables.append(variable)
        self.integer_values.append(values)
        return len(self.integer_values)  # 0 is the match itself

    def add_real(self, variable: int, values: Float64) -> int:
        self.real_variables.append(variable)
        self.real_values.append(values)
        return len(self.real_values) - 1

    def add_least(self, variable: int, values: Int64) -> int:
        self.least_variables.append(variable)
        self.least_values.append(values)
        return len(self.least_values) - 1

    def column(self, name: str) -> pa.Array:
        """The column in the order of the stream."""
        rows = None if self.events.in_input_order else self.events.rows
        return self.events.columns.at(name, rows)

    def known(self, variable: int, name: str, column: pa.Array) -> int:
        """Return the integer that counts the matches in which the attribute is not null."""
        if column.null_count == 0 and variable in self.always and not self.may_lack_values(name):
            return 0
        if (variable, name) not in self._known:
            missing = nulls(column)
            values = np.ones(len(column), np.int64) if missing is None else (~missing).astype(np.int64)
            self._known[variable, name] = self.add_integer(variable, values)
        return self._known[variable, name]

    def of_matches(self, alternative: Alternative, places: Int32) -> Totals:
        """Each match as a set of one; places [steps, matches]."""
        step_of = {step.variable: number for number, step in enumerate(alternative.steps)}
        count = places.shape[1]

        def gathered(variables: list[int], values: Sequence[np.ndarray], absent: int, dtype: type) -> list[np.ndarray]:
            return [
                value[places[step_of[v]]] if v in step_of else np.full(count, absent, dtype)
                for v, value in zip(variables, values, strict=True)
            ]

        sums = [
            np.ones(count, np.int64),
            *gathered(self.integer_variables, self.integer_values, 0, np.int64),
        ]
        reals = [*(np.abs(s.astype(np.float64)) for s in sums)]
        reals += gathered(self.real_variables, self.real_values, 0, np.float64)
        least = gathered(self.least_variables, self.least_values, NOTHING, np.int64)
        return Totals(np.stack(sums, axis=1), np.stack(reals, axis=1), _columns(least, count))


def _columns(parts: list[Int64], count: int) -> Int64:
    return np.stack(parts, axis=1) if parts else np.empty((count, 0), np.int64)


Decoder = Callable[[Totals], pa.Array]


def measures_of(
    query: BoundQuery, alternatives: tuple[Alternative, ...], events: Events, *, by_schema: bool = False
) -> tuple[Measures, list[Decoder]]:
    """Return the measures that the query's aggregates need, and for each aggregate how totals become its column.

    `by_schema`: which measures there are and what their codes mean is the same for all events of the schema.
    """
    bound = [{step.variable for step in alternative.steps} for alternative in alternatives]
    measures = Measures(events, query, frozenset(set.intersection(*bound)), by_schema)
    return measures, [_decoder(measures, aggregate) for aggregate in query.aggregates]


def aggregate_type(query: BoundQuery, aggregate: AggregateOutput, kind: pa.DataType | None) -> pa.DataType:
    """The type of an aggregate's column, from that of its attribute."""
    if kind is None:
        return pa.int64()
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if aggregate.function in ("MIN", "MAX") or pa.types.is_null(kind) or pa.types.is_duration(kind):
        return kind
    if aggregate.function == "AVG" or pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_decimal(kind) or pa.types.is_uint64(kind):
        return pa.decimal128(38, kind.scale if pa.types.is_decimal(kind) else 0)
    return pa.int64()


# --- from events to measures, and back -----------------------------------------------------------------------------


def _decoder(measures: Measures, aggregate: AggregateOutput) -> Decoder:
    if aggregate.variable is None or aggregate.column is None:
        return lambda totals: pa.array(_exact(totals, 0, "COUNT"))
    raw = plain(measures.column(aggregate.column))
    if pa.types.is_null(raw.type):
        return lambda totals: pa.nulls(len(totals.integers))
    known = measures.known(aggregate.variable, aggregate.column, raw)
    if aggregate.function in ("MIN", "MAX"):
        values, value_of = (codes_by_value if measures.by_schema else codes_by_rank)(aggregate, raw)
        number = measures.add_least(aggregate.variable, values)
        return lambda totals: value_of(totals.least[:, number])
    variable = measures.query.variables[aggregate.variable].name
    name = f"{aggregate.function}({variable}.{aggregate.column})"
    column = column_value(raw)
    if pa.types.is_floating(column.type):
        total = _real_sum(measures, aggregate.variable, column, measures.may_lack_values(aggregate.column))
    elif pa.types.is_decimal(column.type):
        total = _decimal_sum(measures, aggregate.variable, column, name)
    else:
        total = _integer_sum(measures, aggregate.variable, column, name)

    def decode(totals: Totals) -> pa.Array:
        nothing = totals.reals[:, known] == 0
        found = total(totals)
        if aggregate.function == "AVG":
            found = _average(found, _exact(totals, known, name), nothing)
        return pc.if_else(pa.array(nothing), pa.scalar(None, found.type), found) if nothing.any() else found

    return decode


def _average(total: pa.Array, counts: Int64, nothing: np.ndarray) -> pa.Array:
    divisor = np.where(nothing, 1, counts)
    if pa.types.is_duration(total.type):
        ticks = total.cast(pa.int64()).to_numpy()
        return pa.array(np.rint(ticks / divisor).astype(np.int64)).cast(total.type)
    return pa.array(as_float(total).to_numpy(zero_copy_only=False) / divisor)


def _exact(totals: Totals, number: int, name: str) -> Int64:
    """An integer block's column, if 64 bits hold it: the double beside it tells which multiple of 2^64 is left out."""
    sizes, values = totals.reals[:, number], totals.integers[:, number]
    fits = sizes < LIMIT * (1 - DOUBT)
    # So close to the limit, a count that passed it has wrapped to below zero.
    close = (number == 0) & (sizes < LIMIT * (1 + DOUBT)) & (values > 0)
    if not (fits | close).all():
        largest = f"{np.nanmax(sizes):.2g}"
        much = f"there are about {largest} of them" if number == 0 else f"without signs its terms are about {largest}"
        raise BadInputError(
            f"{name} passes 64 bits: {much}.\n"
            "Hint: a shorter window, a PARTITION BY or a predicate leaves fewer matches."
        )
    return values


def _integer_sum(measures: Measures, variable: int, column: pa.Array, name: str) -> Decoder:
    values = integers(column)
    assert values is not None
    missing = nulls(column)
    number = measures.add_integer(variable, values if missing is None else np.where(missing, 0, values))
    return lambda totals: pa.array(_exact(totals, number, name)).cast(column.type)


def _real_sum(measures: Measures, variable: int, column: pa.Array, may_lack_values: bool) -> Decoder:
    """Infinities and NaN are counted apart: in a product of sums and counts, 0 times infinity would be NaN."""
    values = fixed_width(column, np.dtype(np.float64))
    missing = nulls(column)
    values = values if missing is None else np.where(missing, 0.0, values)
    finite = np.isfinite(values)
    if finite.all() and not may_lack_values:
        number = measures.add_real(variable, values)
        return lambda totals: pa.array(_reals(measures, totals)[:, number])
    if measures.by_schema and not may_lack_values:
        raise NotIncremental("an infinite time cannot be summed without keeping its event: give a WITHIN")
    number = measures.add_real(variable, np.where(finite, values, 0.0))
    marks = [np.isnan(values), values == np.inf, values == -np.inf]
    nan, above, below = (measures.add_real(variable, mark.astype(np.float64)) for mark in marks)

    def decode(totals: Totals) -> pa.Array:
        reals = _reals(measures, totals)
        found = reals[:, number].copy()
        found[reals[:, above] > 0] = np.inf
        found[reals[:, below] > 0] = -np.inf
        found[(reals[:, nan] > 0) | ((reals[:, above] > 0) & (reals[:, below] > 0))] = np.nan
        return pa.array(found)

    return decode


def _reals(measures: Measures, totals: Totals) -> Float64:
    """The real sums, behind the sizes of the integers."""
    return totals.reals[:, 1 + len(measures.integer_values) :]


def _decimal_sum(measures: Measures, variable: int, column: pa.Array, name: str) -> Decoder:
    """The unscaled integers in limbs of 32 bits, each summed apart, so that 64 bits hold the sums of many."""
    scale = column.type.scale
    if pa.types.is_decimal256(column.type):
        column = column.cast(pa.decimal128(38, scale))
    words = np.frombuffer(column.buffers()[1] or b"", np.uint32, 4 * len(column), column.offset * 16).reshape(-1, 4)
    limbs = [words[:, 0].astype(np.int64), words[:, 1].astype(np.int64), words[:, 2].astype(np.int64)]
    limbs.append(words[:, 3].view(np.int32).astype(np.int64))
    if column.type.precision <= 18:
        limbs = [limbs[0], np.ascontiguousarray(words[:, 1]).view(np.int32).astype(np.int64)]
    missing = nulls(column)
    limbs = [limb if missing is None else np.where(missing, 0, limb) for limb in limbs]
    numbers = [measures.add_integer(variable, limb) for limb in limbs]

    def decode(totals: Totals) -> pa.Array:
        sums = [_exact(totals, number, name) for number in numbers]
        sums += [np.zeros_like(sums[0])] * (4 - len(sums))
        found = np.empty((sums[0].size, 4), np.uint32)
        carry = np.zeros_like(sums[0])
        for place, limb in enumerate(sums):
            full = limb + carry
            found[:, place] = (full & (2**LIMB - 1)).astype(np.uint32)
            carry = full >> LIMB
        array = pa.Array.from_buffers(pa.decimal128(38, scale), len(found), [None, pa.py_buffer(found.tobytes())])
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise BadInputError(f"{name} passes 38 digits: {error}") from error
        return array

    return decode
