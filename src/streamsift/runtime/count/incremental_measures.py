"""The AGG clause and any events in, measures whose layout and codes are the same for every batch of events out.

How `measures` lays sums out depends on what the columns hold: nulls, NaN and infinities are counted apart where there
are any. So every batch is given examples of these, as rows that no step binds. Extremes are coded by rank in the batch;
here they are coded by value.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.logical.bound import TIME, AggregateOutput, BoundQuery
from streamsift.physical.plan import AggregatePlan
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int64
from streamsift.runtime.count.measures import NOTHING, Decoder, Measures, Totals, measures_of
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import integers, nulls, plain

NAN_CODE = NOTHING - 1  # above every number, as Spark has it
LARGEST = 1 << 62  # of whole values: beyond are the codes of nothing, and of what was not reached


class Unsteady(BadInputError):
    """A value that cannot be added up without keeping its event."""


def with_examples(query: BoundQuery, table: pa.Table) -> tuple[pa.Table, int]:
    """The table after rows at its first time with a null, and NaN, in every column that is aggregated; how many."""
    names = {
        a.column for a in query.aggregates if a.column not in (None, TIME, query.binding.time, query.binding.order)
    }
    first = table.slice(0, 1)
    if not first.num_rows or not names:
        return table, 0
    examples = []
    for value in (None, float("nan")):
        example = first
        for name in names:
            kind = table.schema.field(name).type
            shown = value if value is None or pa.types.is_floating(kind) else None
            number = table.schema.get_field_index(name)
            example = example.set_column(number, table.schema.field(name), pa.array([shown], kind))
        examples.append(example)
    return pa.concat_tables([*examples, table]), len(examples)


def any_event(query: BoundQuery) -> pa.Table:
    """One row that could be an event, of which nothing but time and order is known."""
    columns = []
    for field in query.schema:
        if field.name not in (query.binding.time, query.binding.order):
            columns.append(pa.nulls(1, field.type))
        elif pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            columns.append(pa.array(["1970-01-01"], field.type))
        elif pa.types.is_decimal(field.type):
            columns.append(pa.array([Decimal(0)], field.type))  # a cast of an integer asks for 19 digits
        else:
            narrow = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
            columns.append(pa.array([0], narrow).cast(field.type))
    return pa.table(columns, schema=query.schema)


class Steady(Measures):
    """Measures with the sizes of their blocks."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        whole = 1 + len(self.integer_values)
        return whole, whole + len(self.real_values), len(self.least_values)


def steady_measures(plan: AggregatePlan, events: Events) -> tuple[Steady, list[Decoder]]:
    """As `measures_of`, for events that begin with examples."""
    found, decoders = measures_of(plan.query, plan.alternatives, events)
    steady = Steady(*(getattr(found, name) for name in Measures.__slots__))
    number = 0
    for place, aggregate in enumerate(plan.query.aggregates):
        if aggregate.function not in ("MIN", "MAX") or aggregate.column is None:
            continue
        column = plain(found.column(aggregate.column))
        if not pa.types.is_null(column.type):
            steady.least_values[number] = _codes(aggregate, column)
            decoders[place] = _decoder(aggregate, number, column.type)
            number += 1
    return steady, decoders


def check_shape(measures: Steady, shape: tuple[int, int, int]) -> None:
    if measures.shape != shape:
        raise Unsteady("an infinite time cannot be summed without keeping its event: give a WITHIN")


def _codes(aggregate: AggregateOutput, column: pa.Array) -> Int64:
    missing = nulls(column)
    if pa.types.is_floating(column.type):
        (found,) = codes([column])
        found = np.where(found == UNKNOWN, NAN_CODE, found)
    else:
        whole = integers(column)
        assert whole is not None
        found = whole
        known = whole if missing is None else whole[~missing]
        if known.size and max(-int(known.min()), int(known.max())) >= LARGEST:
            raise Unsteady(f"{aggregate.name}: a value beyond ±2^62 cannot be kept without its event: give a WITHIN")
    found = found if aggregate.function == "MIN" else ~found
    return found if missing is None else np.where(missing, NOTHING, found)


def _decoder(aggregate: AggregateOutput, number: int, kind: pa.DataType) -> Decoder:
    def decode(totals: Totals) -> pa.Array:
        least = totals.least[:, number]
        empty = least == NOTHING
        values = np.where(empty, 0, least if aggregate.function == "MIN" else ~least)
        if not pa.types.is_floating(kind):
            return pa.array(values, mask=empty).cast(pa.int64()).cast(_wide(kind)).cast(kind)
        bits = np.where(values < 0, values ^ np.int64(NOTHING), values)
        reals = np.where(values == NAN_CODE, np.nan, bits.view(np.float64))
        return pa.array(reals, mask=empty).cast(kind)

    return decode


def _wide(kind: pa.DataType) -> pa.DataType:
    """What 64-bit counts of the type are cast through: dates count days in 32 bits."""
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()
