"""Rows of matches in, Arrow record batches of the result out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import TIME, BoundQuery, ClassRule, Column, Computed, Kind, TimeKind, WholeEvent
from streamsift.physical.plan import Alternative, Pair
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.times import time_type
from streamsift.runtime.expressions.columns import Columns, take
from streamsift.runtime.expressions.evaluate import Rows, evaluate
from streamsift.runtime.expressions.group_functions import empty_aggregate

Attribute = tuple[int, str]  # a variable and a column of its event
BATCH_BYTES = 1 << 26  # of whole events, about


@dataclass(frozen=True, slots=True)
class Known:
    """What is the same for every batch of a result."""

    fields: list[pa.Field]  # of a whole event
    types: list[tuple[str, pa.DataType]]  # the same, as names and types
    texts: dict[Attribute, str]  # attributes with one value for all matches
    equals: dict[Attribute, Attribute]  # attributes equal to an earlier one: gathered once
    repeated: dict[str, pa.Array] = field(default_factory=dict)  # the longest array of each text that was asked for

    def constant(self, attribute: Attribute, length: int) -> pa.Array | None:
        """The attribute's one value so many times; None if it has several."""
        text = self.texts.get(attribute)
        if text is None:
            return None
        if text not in self.repeated or len(self.repeated[text]) < length:
            self.repeated[text] = pa.repeat(text, length)
        return self.repeated[text].slice(0, length)


def match_schema(query: BoundQuery) -> pa.Schema:
    """The schema of matches, the same for every input, empty ones too."""
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
    """What tells the type of an expression."""
    empty = Columns(query.schema.empty_table()).with_array(TIME, pa.array([], time_type(query)))
    return Rows(lambda _, name: empty.whole(name), 0, query.text, lambda group: empty_aggregate(group, empty))


def event_type(schema: pa.Schema) -> pa.DataType:
    """A whole event: a struct of all columns of its row."""
    return pa.struct([pa.field(each.name, each.type) for each in schema])


def known_columns(plan: Alternative) -> Known:
    """The type of a class by type is one text; `[id]` makes columns equal."""
    name = plan.query.binding.type
    typed = name is not None and pa.types.is_string(plan.query.schema.field(name).type)
    texts: dict[Attribute, str] = {}
    equals: dict[Attribute, Attribute] = {}
    for step in plan.steps:
        event_class = plan.query.variables[step.variable].event_class
        if name is not None and typed and event_class.rule is ClassRule.TYPE:
            texts[step.variable, name] = event_class.name
        for pair in step.compared:
            match pair:
                case Pair(op="=", earlier_side=Column() as earlier, this_side=Column() as this):
                    # Equal floats may differ (0.0 and -0.0), and so may equal columns of different types.
                    if earlier.name == this.name and earlier.kind is not Kind.FLOAT:
                        first = (earlier.variable, earlier.name)
                        equals[this.variable, this.name] = equals.get(first, first)
    fields = list(event_type(plan.query.schema))
    return Known(fields, [(each.name, each.type) for each in fields], texts, equals)


def most_matches(query: BoundQuery, events: Events) -> int:
    """How many matches make a batch of BATCH_BYTES, as wide as these events are."""
    table, whole = events.columns.table, sum(isinstance(item, WholeEvent) for item in query.output)
    each = whole * table.nbytes / max(1, table.num_rows)
    return max(1, int(BATCH_BYTES / each)) if each else np.iinfo(np.int32).max


def result_batches(
    plan: Alternative, schema: pa.Schema, events: Events, known: Known, rows: Int32
) -> Iterator[pa.RecordBatch]:
    """The result of the matches whose events are the table rows rows[step, match]."""
    try:
        yield _batch(plan, schema, events, known, rows)
    except pa.ArrowInvalid:
        # Texts so long that a batch of them passes Arrow's 2 GB: half the matches at a time.
        if rows.shape[1] < 2:
            raise
        half = rows.shape[1] // 2
        yield from result_batches(plan, schema, events, known, rows[:, :half])
        yield from result_batches(plan, schema, events, known, rows[:, half:])


def _batch(plan: Alternative, schema: pa.Schema, events: Events, known: Known, rows: Int32) -> pa.RecordBatch:
    query = plan.query
    count = rows.shape[1]
    indices = {step.variable: pa.array(rows[number]) for number, step in enumerate(plan.steps)}
    gathered: dict[Attribute, pa.Array] = {}

    def column(variable: int, name: str) -> pa.Array:
        if variable not in indices:  # of a branch not taken
            return pa.nulls(count, events.columns.whole(name).type)
        attribute = known.equals.get((variable, name), (variable, name))
        if attribute not in gathered:
            constant = known.constant(attribute, count)
            gathered[attribute] = (
                take(events.columns.whole(name), indices[attribute[0]]) if constant is None else constant
            )
        return gathered[attribute]

    seen = Rows(column, rows.shape[1], query.text)
    arrays: list[pa.Array] = []
    for item in query.output:
        match item:
            case WholeEvent(variable=variable) if variable not in indices:
                arrays.append(pa.nulls(count, schema.field(len(arrays)).type))
            case WholeEvent(variable=variable):
                parts = [_cast(column(variable, name), wanted) for name, wanted in known.types]
                arrays.append(pa.StructArray.from_arrays(parts, fields=known.fields))
            case Computed(expression=Column(variable=variable, name=name)):
                arrays.append(_cast(column(variable, name), schema.field(len(arrays)).type))
            case Computed(expression=expression):
                arrays.append(_cast(evaluate(expression, seen), schema.field(len(arrays)).type))
    if query.show_bounds:
        time = TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time
        if plan.is_sequence:
            arrays += [column(step.variable, time) for step in (plan.steps[0], plan.steps[-1])]
        else:
            arrays += [take(events.columns.whole(time), pa.array(ends)) for ends in first_and_last(events, rows)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def first_and_last(events: Events, rows: Int32) -> tuple[Int32, Int32]:
    """The table rows of each match's earliest and latest event."""
    ranks = np.empty(events.columns.table.num_rows, np.int32)
    ranks[events.rows] = events.rank
    of_match, numbers = ranks[rows], np.arange(rows.shape[1])
    return rows[of_match.argmin(axis=0), numbers], rows[of_match.argmax(axis=0), numbers]


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
