"""Write the best matches as Arrow record batches: window_end, group, rank, score, objectives, match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import TIME, BoundQuery, TimeKind
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.events.times import time_type
from streamsift.runtime.events.update_ticks import tick_type, tick_values
from streamsift.runtime.expressions.columns import Columns
from streamsift.runtime.expressions.evaluate import Rows
from streamsift.runtime.expressions.group_functions import empty_aggregate
from streamsift.runtime.matches import (
    GroupMatches,
    known_columns,
    match_columns,
    match_schema,
    objective_values,
    result_batches,
)
from streamsift.runtime.rank.best import Scored
from streamsift.runtime.rank.buckets import RankRun, ranks

ROWS = 1 << 16  # of a batch
# Objectives and columns of matches of a source (their alternative, or chunk), given as their places; with ties, what
# these are broken by; at last the table row of any event of each.
ColumnsOf = Callable[[int, Int32, bool], list[pa.Array]]


def rank_schema(query: BoundQuery) -> pa.Schema:
    """Return the schema of a ranking, the same for every input, empty ones too."""
    assert query.ranking is not None
    empty = Columns(query.schema.empty_table()).with_array(TIME, pa.array([], time_type(query)))
    no_rows = Rows(lambda _, name: empty.whole(name), 0, query.text, lambda group: empty_aggregate(group, empty))
    values = objective_values(query.ranking, no_rows)
    fields = [pa.field("window_end", tick_type(query))] if query.update else []
    for column, name in zip(query.group_by, query.group_names, strict=True):
        fields.append(pa.field(name, query.schema.field(column).type))
    fields += [pa.field("rank", pa.int64()), pa.field("score", pa.float64())]
    fields += [pa.field(o.name, v.type) for o, v in zip(query.ranking.objectives, values, strict=True)]
    return pa.schema([*fields, *match_schema(query)])


def rank_batches(run: RankRun, best: Scored, columns_of: ColumnsOf, *, ties: bool) -> Iterator[pa.RecordBatch]:
    """Yield the matches (by bucket, best first) as result rows, in order of their ticks.

    With `ties`, beside them what ties are broken by: other tasks may have matches of the same bucket.
    """
    query, rank, order = run.plan.query, ranks(best.bucket), run.output_order(best.bucket)
    schema = rank_schema(query)
    kinds = [field.type for field in list(schema)[-len(run.ranking.objectives) - len(match_schema(query)) :]]
    for begin in range(0, order.size, ROWS):
        which = order[begin : begin + ROWS]
        matches = best.at(which)
        parts, numbers = [], []
        for source in np.unique(matches.alternative):
            here = np.flatnonzero(matches.alternative == source)
            arrays = columns_of(int(source), matches.places[:, here], ties)
            numbers.append(here)
            parts.append([cast_to(array, kind) for array, kind in zip_longest(arrays, kinds)])
        columns = parts[0]
        if len(parts) > 1:
            back = pa.array(np.argsort(np.concatenate(numbers), kind="stable"))
            columns = [pa.concat_arrays(column).take(back) for column in zip(*parts, strict=True)]
        *columns, rows = columns
        leading = _leading_columns(run, matches.bucket, rank[which], matches.score, np.asarray(rows))
        leading = [cast_to(array, schema.field(number).type) for number, array in enumerate(leading)]
        fields = [
            pa.field(name, array.type) for name, array in zip(tie_names(query), columns[len(kinds) :], strict=False)
        ]
        yield pa.RecordBatch.from_arrays([*leading, *columns], schema=pa.schema([*schema, *fields]))


def _leading_columns(run: RankRun, bucket: Int64, rank: Int64, score: Float64, rows: Int32) -> list[pa.Array]:
    """Return window_end, the group, rank and score; `rows` are those of any event of each match."""
    query, events = run.plan.query, run.events
    ends = [tick_values(query, events, run.ticks, run.tick_of(bucket))] if run.ticks else []
    groups = [events.columns.at(column, rows) for column in query.group_by]
    return [*ends, *groups, pa.array(rank, pa.int64()), pa.array(score)]


def columns_of_matches(run: RankRun) -> ColumnsOf:
    """Return the columns of matches of single events, given as places [variables, m]."""

    def columns(number: int, places: Int32, ties: bool) -> list[pa.Array]:
        alternative, events = run.plan.alternatives[number], run.events
        bound_places = places[variable_rows(alternative)]
        arrays = objective_values(run.ranking, match_columns(alternative, events, bound_places))
        schema, computed = match_schema(run.plan.query), known_columns(alternative)
        found = GroupMatches.of_places(bound_places)
        matches = pa.Table.from_batches(result_batches(alternative, schema, events, found, computed))
        arrays = [*arrays, *matches.columns]
        for column in tie_columns(run.plan.query) if ties else []:
            for row in places:
                bound = pa.array(events.rows_at(np.maximum(row, 0)), mask=row < 0)
                arrays.append(events.columns.whole(column).take(bound))
        first = places[(places >= 0).argmax(axis=0), np.arange(places.shape[1])]
        return [*arrays, pa.array(events.rows_at(first))]

    return columns


def tie_columns(query: BoundQuery) -> list[str]:
    """Return the columns that ties are broken by: the time, and `order` if there is one."""
    time = TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time
    return [time, *([query.binding.order] if query.binding.order else [])]


def tie_names(query: BoundQuery) -> list[str]:
    """Return the names of the result columns for ties: the time of each variable's event, then its `order`."""
    count = sum(variable.positive for variable in query.variables)
    kinds = ["time", "order"] if query.binding.order else ["time"]
    return [f"${kind} {number}" for kind in kinds for number in range(count)]


def variable_rows(alternative: Alternative) -> list[int]:
    """Return for each step the row of its variable among all positive variables, in order of appearance."""
    positive = [variable.index for variable in alternative.query.variables if variable.positive]
    return [positive.index(step.variable) for step in alternative.steps]


def cast_to(array: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """Return one chunk of a type, or of the array's own."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array if kind is None or array.type == kind else array.cast(kind)
