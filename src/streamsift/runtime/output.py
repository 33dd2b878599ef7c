"""Rows of matches in, Arrow record batches of the result out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa

from streamsift.logical.bound import TIME, BoundQuery, ClassRule, Computed, TimeKind, WholeEvent
from streamsift.physical.plan import DetectPlan
from streamsift.runtime.columns import Columns, take
from streamsift.runtime.evaluate import Rows, evaluate
from streamsift.runtime.events import TEXT_TIME, Events
from streamsift.runtime.kernels import Int32


Known = dict[tuple[int, str], pa.Array]  # columns of a variable that are the same for every match


def output_schema(query: BoundQuery) -> pa.Schema:
    """The schema of the result, the same for every input, empty ones too."""
    empty = Columns(query.schema.empty_table()).with_array(TIME, pa.array([], time_type(query)))
    rows = Rows(lambda _, name: empty.whole(name), 0, query.text)
    fields = []
    for item in query.output:
        match item:
            case WholeEvent(name=name):
                fields.append(pa.field(name, event_type(query.schema)))
            case Computed(expression=expression, name=name):
                fields.append(pa.field(name, evaluate(expression, rows).type))
    if query.show_bounds:
        fields += [pa.field("match_start", time_type(query)), pa.field("match_end", time_type(query))]
    return pa.schema(fields)


def time_type(query: BoundQuery) -> pa.DataType:
    """The type of `match_start`: the time column's own, or timestamps for texts."""
    if query.binding.time_kind is TimeKind.TEXT:
        return TEXT_TIME
    return query.schema.field(query.binding.time).type


@lru_cache(maxsize=64)
def event_type(schema: pa.Schema) -> pa.DataType:
    """A whole event: a struct of all columns of its row."""
    return pa.struct([pa.field(field.name, field.type) for field in schema])


def known_columns(plan: DetectPlan, length: int) -> Known:
    """The type column of each variable whose class is its type: one text, repeated; there is nothing to gather."""
    name = plan.query.binding.type
    if name is None or not pa.types.is_string(plan.query.schema.field(name).type):
        return {}
    classes = {step.variable: plan.query.variables[step.variable].event_class for step in plan.steps}
    return {
        (variable, name): pa.repeat(event_class.name, length)
        for variable, event_class in classes.items()
        if event_class.rule is ClassRule.TYPE
    }


def result_batches(
    plan: DetectPlan, schema: pa.Schema, events: Events, constants: Known, rows: Int32
) -> Iterator[pa.RecordBatch]:
    """The result of the matches whose events are the table rows rows[step, match]."""
    try:
        yield _batch(plan, schema, events, constants, rows)
    except pa.ArrowInvalid:
        # Texts so long that a batch of them passes Arrow's 2 GB: half the matches at a time.
        if rows.shape[1] < 2:
            raise
        half = rows.shape[1] // 2
        yield from result_batches(plan, schema, events, constants, rows[:, :half])
        yield from result_batches(plan, schema, events, constants, rows[:, half:])


def _batch(plan: DetectPlan, schema: pa.Schema, events: Events, constants: Known, rows: Int32) -> pa.RecordBatch:
    query = plan.query
    indices = {step.variable: pa.array(rows[number]) for number, step in enumerate(plan.steps)}
    gathered: dict[tuple[int, str], pa.Array] = {}

    def column(variable: int, name: str) -> pa.Array:
        if (variable, name) not in gathered:
            constant = constants.get((variable, name))
            gathered[variable, name] = (
                take(events.columns.whole(name), indices[variable])
                if constant is None or len(constant) < rows.shape[1]
                else constant.slice(0, rows.shape[1])
            )
        return gathered[variable, name]

    seen = Rows(column, rows.shape[1], query.text)
    arrays = []
    for item in query.output:
        match item:
            case WholeEvent(variable=variable):
                kind = event_type(query.schema)
                parts = [_cast(column(variable, field.name), field.type) for field in kind]
                arrays.append(pa.StructArray.from_arrays(parts, fields=list(kind)))
            case Computed(expression=expression):
                arrays.append(evaluate(expression, seen))
    if query.show_bounds:
        time = TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time
        arrays += [column(plan.steps[0].variable, time), column(plan.steps[-1].variable, time)]
    arrays = [_cast(array, field.type) for array, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
