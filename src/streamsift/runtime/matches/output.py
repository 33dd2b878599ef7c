"""Build the Arrow record batches of the result: an event is a struct, a Kleene group a list of structs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import TIME, BoundQuery, Column, Computed, WholeEvent
from streamsift.physical.plan import Alternative
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.times import time_column, time_type
from streamsift.runtime.expressions.columns import Columns, take
from streamsift.runtime.expressions.evaluate import Rows, evaluate
from streamsift.runtime.expressions.group_functions import empty_aggregate
from streamsift.runtime.matches.group_matches import GroupMatches, parts_of
from streamsift.runtime.matches.values import NOTHING_DETERMINED, DeterminedColumns, GroupValues

BATCH_BYTES = 1 << 26  # approximate size of the whole events in a batch
BATCH_ELEMENTS = 1 << 20  # group elements in a batch
FEW_MATCHES = 1 << 10  # beyond this, columns that are constant or equal are not gathered
EVENT = "$event"  # name of the column with whole events


def match_schema(query: BoundQuery) -> pa.Schema:
    """Return the schema of matches; it is the same for every input, even an empty one."""
    fields = []
    for item in query.output:
        match item:
            case WholeEvent(variable=variable, name=name):
                event = event_type(query.schema)
                is_group = query.variables[variable].quantifier is not None
                fields.append(pa.field(name, pa.list_(event) if is_group else event))
            case Computed(expression=Column(name=column), name=name) if column == TIME:
                fields.append(pa.field(name, time_type(query)))
            case Computed(expression=Column(name=column), name=name) if column in query.schema.names:
                fields.append(pa.field(name, query.schema.field(column).type))
            case Computed(expression=expression, name=name):
                fields.append(pa.field(name, evaluate(expression, _no_rows(query)).type))
    if query.show_bounds:
        fields += [pa.field("match_start", time_type(query)), pa.field("match_end", time_type(query))]
    return pa.schema(fields)


def _no_rows(query: BoundQuery) -> Rows:
    """Return empty rows, over which expressions are evaluated to get their types."""
    empty = Columns(query.schema.empty_table()).with_array(TIME, pa.array([], time_type(query)))
    return Rows(lambda _, name: empty.whole(name), 0, query.text, lambda group: empty_aggregate(group, empty))


def event_type(schema: pa.Schema) -> pa.DataType:
    """Return the type of a whole event: a struct of all columns of its row."""
    return pa.struct([pa.field(each.name, each.type) for each in schema])


def most_matches(query: BoundQuery, events: Events) -> int:
    """Return how many matches fit in a batch of BATCH_BYTES, given the average size of these events."""
    table, whole = events.columns.table, sum(isinstance(item, WholeEvent) for item in query.output)
    each = whole * table.nbytes / max(1, table.num_rows)
    return max(1, int(BATCH_BYTES / each)) if each else np.iinfo(np.int32).max


def result_batches(
    plan: Alternative,
    schema: pa.Schema,
    events: Events,
    matches: GroupMatches,
    columns: DeterminedColumns = NOTHING_DETERMINED,
) -> Iterator[pa.RecordBatch]:
    """Yield the result rows of the matches, with a limited number of group elements per batch."""
    pending = [matches.only(part) for part in reversed(parts_of(matches.sizes, BATCH_ELEMENTS))]
    while pending:
        part = pending.pop()
        try:
            yield _batch(plan, schema, events, part, columns)
        except pa.ArrowInvalid:
            # The strings of a batch exceed Arrow's limit of 2 GB: try half of the matches at a time.
            if len(part) < 2:
                raise
            half = len(part) // 2
            pending += [part.only(slice(half, None)), part.only(slice(half))]


def _batch(
    plan: Alternative, schema: pa.Schema, events: Events, matches: GroupMatches, columns: DeterminedColumns
) -> pa.RecordBatch:
    query, values = plan.query, GroupValues(plan.query, plan, events, matches, columns)
    arrays: list[pa.Array] = []
    for item, field in zip(query.output, schema, strict=False):
        match item:
            case WholeEvent(variable=variable) if not values.is_bound(variable):
                arrays.append(pa.nulls(len(matches), field.type))
            case WholeEvent(variable=variable):
                arrays.append(_whole(field.type, values, variable))
            case Computed(expression=Column(variable=variable, name=name)):
                arrays.append(_cast(values.column(variable, name), field.type))
            case Computed(expression=expression):
                arrays.append(_cast(evaluate(expression, values.rows()), field.type))
    if query.show_bounds and plan.groups is None and plan.is_sequence:
        arrays += [values.column(step.variable, time_column(query)) for step in (plan.steps[0], plan.steps[-1])]
    elif query.show_bounds:
        places = matches.events()
        ends = (places.min(axis=0), places.max(axis=0))
        arrays += [events.columns.at(time_column(query), events.rows_at(end)) for end in ends]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _whole(kind: pa.DataType, values: GroupValues, variable: int) -> pa.Array:
    if not values.is_group(variable) and len(values.matches) <= FEW_MATCHES:
        structs = _structs(kind, values.events.columns)
        if structs is not None:
            return take(structs, values.table_rows(variable))
    fields = list(kind.value_type if values.is_group(variable) else kind)
    parts = [_cast(values.column(variable, field.name), field.type) for field in fields]
    structs = pa.StructArray.from_arrays(parts, fields=fields)
    if not values.is_group(variable):
        return structs
    offsets = values.elements(variable)[1]
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), structs)


def _structs(kind: pa.DataType, columns: Columns) -> pa.Array | None:
    """Return all rows as structs, from which few matches are gathered in one call; None if columns need a cast."""
    if EVENT not in columns.arrays():
        parts = [columns.whole(field.name) for field in kind]
        if any(part.type != field.type for part, field in zip(parts, kind, strict=True)):
            return None
        columns.arrays()[EVENT] = pa.StructArray.from_arrays(parts, fields=list(kind))
    return columns.arrays()[EVENT]


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
