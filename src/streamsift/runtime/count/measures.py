"""Convert aggregates to numeric measures of matches, and totals of these measures back to Arrow columns.

The measures of a match are three blocks of numbers:

- integers: 1 for the match itself, then the exact terms of integer sums
- reals: the absolute value of each integer as a double, to detect a 64-bit overflow, then the terms of real sums
- least: codes for MIN and MAX, of which the smallest is the result (`extremes`)

Nulls, NaN and infinities are counted in columns of their own. By default, the events determine which of these columns
exist; for totals that are updated batch by batch, the schema alone does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError
from streamsift.logical.bound import TIME, AggregateOutput, BoundQuery
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Float64, Int64
from streamsift.runtime.count.extremes import NOTHING, NotIncremental, codes_by_rank, codes_by_value
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import fixed_width, integers, nulls, plain
from streamsift.runtime.expressions.values import as_float, column_value
from streamsift.runtime.matches import GroupMatches, GroupValues

LIMIT = 2.0**63
DOUBT = 1e-9  # upper bound of the relative error of the doubles
LIMB = 32  # bits
NO_VARIABLE = -1  # the measure counts matches and depends on no event


class Totals(NamedTuple):
    """The measures of sets of matches, one per row."""

    integers: Int64  # [rows, 1 + integer sums]
    reals: Float64  # [rows, 1 + integer sums + real sums]
    least: Int64  # [rows, extremes]

    def at(self, rows: np.ndarray) -> Totals:
        return Totals(*(block[rows] for block in self))


Decoder = Callable[[Totals], pa.Array]  # convert totals to the column of an aggregate
Addends = list[tuple[int, np.ndarray]]  # for each measure of a block: its variable and its terms [places]


def no_totals(rows: int, shape: tuple[int, int, int]) -> Totals:
    """Return the totals of no matches; `shape` is the number of columns of each block."""
    integers, reals, least = shape
    return Totals(np.zeros((rows, integers), np.int64), np.zeros((rows, reals)), np.full((rows, least), NOTHING))


@dataclass(slots=True)
class Measures:
    """The terms that each event contributes to the aggregates."""

    events: Events
    query: BoundQuery
    always: frozenset[int]  # variables that every match binds
    by_schema: bool  # the schema alone determines the measures
    integers: Addends = field(default_factory=list)
    sizes: Addends = field(default_factory=list)  # the absolute value of each integer as a double
    reals: Addends = field(default_factory=list)
    least: Addends = field(default_factory=list)
    _not_null: dict[tuple[int, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.add_integer(NO_VARIABLE, np.zeros(self.events.rank.size, np.int64))

    @property
    def blocks(self) -> tuple[Addends, Addends, Addends]:
        return self.integers, [*self.sizes, *self.reals], self.least

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the number of columns of each block; (1, 1, 0) for COUNT alone."""
        integers, reals, least = map(len, self.blocks)
        return integers, reals, least

    def may_lack_values(self, name: str) -> bool:
        """Return True if the column may have nulls or NaN in other batches; time columns have none."""
        return self.by_schema and name not in (TIME, self.query.binding.time, self.query.binding.order)

    def add_integer(self, variable: int, values: Int64) -> int:
        _add(self.sizes, variable, np.abs(values.astype(np.float64)))
        return _add(self.integers, variable, values)

    def count_not_null(self, variable: int, name: str, column: pa.Array) -> int:
        """Return the number of the integer measure that counts the matches in which the attribute is not null."""
        if column.null_count == 0 and variable in self.always and not self.may_lack_values(name):
            return 0
        if (variable, name) not in self._not_null:
            missing = nulls(column)
            values = np.ones(len(column), np.int64) if missing is None else (~missing).astype(np.int64)
            self._not_null[variable, name] = self.add_integer(variable, values)
        return self._not_null[variable, name]

    def of_matches(self, matches: GroupMatches, values: GroupValues) -> Totals:
        """Return the totals of each single match. Every element of a Kleene group contributes its term."""
        totals = no_totals(len(matches), self.shape)
        for block, fold, columns in zip(self.blocks, (np.add, np.add, np.minimum), totals, strict=True):
            for number, (variable, of_place) in enumerate(block):
                if variable in values.singles:
                    columns[:, number] = of_place[matches.singles[values.singles[variable]]]
                elif values.is_group(variable):
                    places, offsets = values.elements(variable)
                    sizes, elements = np.diff(offsets), of_place[places]
                    if of_place.dtype == np.float64:  # sequential: pairwise summation would round differently
                        columns[:, number] = np.bincount(np.repeat(np.arange(sizes.size), sizes), elements, sizes.size)
                    elif elements.size:
                        columns[sizes > 0, number] = fold.reduceat(elements, offsets[:-1][sizes > 0])
        totals.integers[:, 0], totals.reals[:, 0] = 1, 1.0
        return totals


def _add(block: Addends, variable: int, values: np.ndarray) -> int:
    """Add a measure; return its number in the block."""
    block.append((variable, values))
    return len(block) - 1


def measures_of(
    query: BoundQuery, alternatives: tuple[Alternative, ...], events: Events, *, by_schema: bool = False
) -> tuple[Measures, list[Decoder]]:
    """Return the measures of the query's aggregates, and the decoder of each aggregate.

    With `by_schema`, the measures and the meaning of their codes are the same for all events of the schema.
    """
    bound = [{step.variable for step in alternative.steps} for alternative in alternatives]
    measures = Measures(events, query, frozenset(set.intersection(*bound)), by_schema)
    return measures, [_decoder(measures, aggregate) for aggregate in query.aggregates]


def aggregate_type(aggregate: AggregateOutput, kind: pa.DataType | None) -> pa.DataType:
    """Return the type of an aggregate's column; `kind` is the type of its attribute, None for COUNT of matches."""
    if kind is None or aggregate.function == "COUNT":
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
    events = measures.events
    raw = plain(events.columns.at(aggregate.column, None if events.in_input_order else events.rows))
    if pa.types.is_null(raw.type):
        return lambda totals: pa.nulls(len(totals.integers))
    not_null = measures.count_not_null(aggregate.variable, aggregate.column, raw)
    if aggregate.function in ("MIN", "MAX"):
        values, value_of = (codes_by_value if measures.by_schema else codes_by_rank)(aggregate, raw)
        number = _add(measures.least, aggregate.variable, values)
        return lambda totals: value_of(totals.least[:, number])
    variable = measures.query.variables[aggregate.variable].name
    if aggregate.function == "COUNT":  # of the matches in which the attribute is not null
        return lambda totals: pa.array(_exact(totals, not_null, f"COUNT({variable}.{aggregate.column})"))
    name = f"{aggregate.function}({variable}.{aggregate.column})"
    column = column_value(raw)
    if pa.types.is_floating(column.type):
        total = _real_sum(measures, aggregate.variable, column, measures.may_lack_values(aggregate.column))
    elif pa.types.is_decimal(column.type):
        total = _decimal_sum(measures, aggregate.variable, column, name)
    else:
        total = _integer_sum(measures, aggregate.variable, column, name)

    def decode(totals: Totals) -> pa.Array:
        nothing = totals.reals[:, not_null] == 0
        result = total(totals)
        if aggregate.function == "AVG":
            result = average(result, _exact(totals, not_null, name), nothing)
        return pc.if_else(pa.array(nothing), pa.scalar(None, result.type), result) if nothing.any() else result

    return decode


def average(total: pa.Array, counts: Int64, nothing: np.ndarray) -> pa.Array:
    """Divide sums by counts, except where there is nothing."""
    divisor = np.where(nothing, 1, counts)
    if pa.types.is_duration(total.type):
        ticks = total.cast(pa.int64()).to_numpy()
        return pa.array(np.rint(ticks / divisor).astype(np.int64)).cast(total.type)
    return pa.array(as_float(total).to_numpy(zero_copy_only=False) / divisor)


def _exact(totals: Totals, number: int, name: str) -> Int64:
    """Return a column of integers; raise BadInputError if the doubles show that an integer overflowed 64 bits."""
    sizes, values = totals.reals[:, number], totals.integers[:, number]
    fits = sizes < LIMIT * (1 - DOUBT)
    # A count that is just above the limit has wrapped to a negative number.
    close = (number == 0) & (sizes < LIMIT * (1 + DOUBT)) & (values > 0)
    if not (fits | close).all():
        largest = f"{np.nanmax(sizes):.2g}"
        size = f"about {largest} matches" if number == 0 else f"its terms sum to about {largest} in absolute value"
        raise BadInputError(
            f"{name} exceeds the 64-bit integer range: {size}\n"
            "Hint: reduce the number of matches with a shorter WITHIN, PARTITION BY or a predicate."
        )
    return values


def _zero_at_nulls(column: pa.Array, values: np.ndarray) -> np.ndarray:
    missing = nulls(column)
    return values if missing is None else np.where(missing, np.zeros(1, values.dtype), values)


def _integer_sum(measures: Measures, variable: int, column: pa.Array, name: str) -> Decoder:
    values = integers(column)
    assert values is not None
    number = measures.add_integer(variable, _zero_at_nulls(column, values))
    return lambda totals: pa.array(_exact(totals, number, name)).cast(column.type)


def _real_sum(measures: Measures, variable: int, column: pa.Array, may_lack_values: bool) -> Decoder:
    """Count infinities and NaN in measures of their own: in a product of sums and counts, 0 times infinity is NaN."""
    values = _zero_at_nulls(column, fixed_width(column, np.dtype(np.float64)))

    def added(values: np.ndarray) -> Callable[[Totals], Float64]:
        """Add a real measure; return a function that reads its totals."""
        number = _add(measures.reals, variable, values.astype(np.float64, copy=False))
        return lambda totals: totals.reals[:, len(measures.sizes) + number]

    finite = np.isfinite(values)
    if finite.all() and not may_lack_values:
        total = added(values)
        return lambda totals: pa.array(total(totals))
    if measures.by_schema and not may_lack_values:
        raise NotIncremental("an infinite time cannot be summed without keeping its event: give a WITHIN")
    parts = [np.where(finite, values, 0.0), np.isnan(values), values == np.inf, values == -np.inf]
    total, nan, above, below = map(added, parts)

    def decode(totals: Totals) -> pa.Array:
        result, is_above, is_below = total(totals).copy(), above(totals) > 0, below(totals) > 0
        result[is_above] = np.inf
        result[is_below] = -np.inf
        result[(nan(totals) > 0) | (is_above & is_below)] = np.nan
        return pa.array(result)

    return decode


def _decimal_sum(measures: Measures, variable: int, column: pa.Array, name: str) -> Decoder:
    """Sum each 32-bit limb of the unscaled integers separately, so that a 64-bit integer holds the sum of many."""
    scale = column.type.scale
    if pa.types.is_decimal256(column.type):
        column = column.cast(pa.decimal128(38, scale))
    words = np.frombuffer(column.buffers()[1] or b"", np.uint32, 4 * len(column), column.offset * 16).reshape(-1, 4)
    *low, high = words.T[:2] if column.type.precision <= 18 else words.T
    limbs = [limb.astype(np.int64) for limb in (*low, np.ascontiguousarray(high).view(np.int32))]
    numbers = [measures.add_integer(variable, _zero_at_nulls(column, limb)) for limb in limbs]

    def decode(totals: Totals) -> pa.Array:
        sums = [_exact(totals, number, name) for number in numbers]
        sums += [np.zeros_like(sums[0])] * (4 - len(sums))
        result = np.empty((sums[0].size, 4), np.uint32)
        carry = np.zeros_like(sums[0])
        for place, limb in enumerate(sums):
            full = limb + carry
            result[:, place] = (full & (2**LIMB - 1)).astype(np.uint32)
            carry = full >> LIMB
        array = pa.Array.from_buffers(pa.decimal128(38, scale), len(result), [None, pa.py_buffer(result.tobytes())])
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise BadInputError(f"{name} exceeds 38 digits: {error}") from error
        return array

    return decode
