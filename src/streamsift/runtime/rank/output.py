"""Write the best matches as Arrow record batches: window_end, group, rank, score, objectives, match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def rank_batches(run: RankRun, best: Scored, *, ties: bool) -> Iterator[pa.RecordBatch]:
    """Yield the matches (by bucket, best first) as result rows, in order of their ticks.

    With `ties`, beside them what ties are broken by: other tasks may have matches of the same bucket.
    """
    query, schema, rank = run.plan.query, rank_schema(run.plan.query), ranks(best.bucket)
    order = run.output_order(best.bucket)
    for begin in range(0, order.size, ROWS):
        which = order[begin : begin + ROWS]
        matches = best.at(which)
        first = matches.places[(matches.places >= 0).argmax(axis=0), np.arange(which.size)]
        columns = leading_columns(run, matches.bucket, rank[which], matches.score, run.events.rows_at(first))
        columns = [cast_to(array, schema.field(number).type) for number, array in enumerate(columns)]
        columns += _match_columns(run, matches, list(schema)[len(columns) :])
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        if ties:
            for column in tie_columns(query):
                for places in matches.places:
                    rows = pa.array(run.events.rows_at(np.maximum(places, 0)), mask=places < 0)
                    columns.append(run.events.columns.whole(column).take(rows))
            batch = pa.RecordBatch.from_arrays(columns, names=[*schema.names, *tie_names(query)])
        yield batch


def leading_columns(run: RankRun, bucket: Int64, rank: Int64, score: Float64, rows: Int32) -> list[pa.Array]:
    """Return window_end, the group, rank and score; `rows` are those of any event of each match."""
    query, events = run.plan.query, run.events
    ends = [tick_values(query, events, run.ticks, run.tick_of(bucket))] if run.ticks else []
    groups = [events.columns.at(column, rows) for column in query.group_by]
    return [*ends, *groups, pa.array(rank, pa.int64()), pa.array(score)]


def _match_columns(run: RankRun, best: Scored, fields: Sequence[pa.Field]) -> list[pa.Array]:
    """Return objectives and match columns: alternative by alternative, then put back in order."""
    parts, order = [], []
    for number in np.unique(best.alternative):
        alternative = run.plan.alternatives[number]
        which = np.flatnonzero(best.alternative == number)
        order.append(which)
        places = best.places[variable_rows(alternative)][:, which]
        values = objective_values(run.ranking, match_columns(alternative, run.events, places))
        schema, computed = match_schema(run.plan.query), known_columns(alternative)
        found = GroupMatches.of_places(places)
        matches = pa.Table.from_batches(result_batches(alternative, schema, run.events, found, computed))
        columns = [*values, *(column.combine_chunks() for column in matches.columns)]
        parts.append([cast_to(c, f.type) for c, f in zip(columns, fields, strict=True)])
    if len(parts) == 1:
        return parts[0]
    back = pa.array(np.argsort(np.concatenate(order), kind="stable"))
    return [pa.concat_arrays(list(column)).take(back) for column in zip(*parts, strict=True)]


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


def cast_to(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array if array.type == kind else array.cast(kind)
