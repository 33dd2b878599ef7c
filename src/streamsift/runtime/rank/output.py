"""Build the Arrow record batches of a ranking: window_end, group, rank, score, objectives, match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import TIME, BoundQuery, TimeKind
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.events.times import time_type
from streamsift.runtime.events.update_ticks import tick_type, tick_values
from streamsift.runtime.expressions.columns import Columns
from streamsift.runtime.expressions.evaluate import Rows
from streamsift.runtime.expressions.group_functions import empty_aggregate
from streamsift.runtime.matches import (
    GroupMatches,
    GroupValues,
    determined_columns,
    match_schema,
    objective_values,
    result_batches,
)
from streamsift.runtime.rank.best import RankRun, Scored, ranks

ROWS = 1 << 16  # of a batch
MatchesOf = Callable[[int, Int32], tuple[int, GroupMatches]]  # (source, places) -> alternative and matches


def rank_schema(query: BoundQuery) -> pa.Schema:
    """Return the schema of a ranking; it is the same for every input, even an empty one."""
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


def rank_batches(run: RankRun, best: Scored, matches_of: MatchesOf, *, ties: bool) -> Iterator[pa.RecordBatch]:
    """Yield the matches, which are sorted by bucket, best first, as result rows in order of their ticks.

    With `ties`, add the tie breakers, because other tasks may have matches of the same bucket.
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
            arrays = _match_arrays(run, *matches_of(int(source), matches.places[:, here]), ties)
            numbers.append(here)
            parts.append([cast_to(array, kind) for array, kind in zip_longest(arrays, kinds)])
        columns = parts[0]
        if len(parts) > 1:
            back = pa.array(np.argsort(np.concatenate(numbers), kind="stable"))
            columns = [pa.concat_arrays(column).take(back) for column in zip(*parts, strict=True)]
        *columns, rows = columns
        ends = [tick_values(query, run.events, run.ticks, run.tick_of(matches.bucket))] if run.ticks else []
        groups = [run.events.columns.at(column, np.asarray(rows)) for column in query.group_by]
        leading = [*ends, *groups, pa.array(rank[which], pa.int64()), pa.array(matches.score)]
        leading = [cast_to(array, schema.field(number).type) for number, array in enumerate(leading)]
        fields = [
            pa.field(name, array.type) for name, array in zip(tie_names(query), columns[len(kinds) :], strict=False)
        ]
        yield pa.RecordBatch.from_arrays([*leading, *columns], schema=pa.schema([*schema, *fields]))


def _match_arrays(run: RankRun, number: int, matches: GroupMatches, ties: bool) -> list[pa.Array]:
    """Return the objectives and columns of matches, with `ties` the tie breakers, and the row of an event."""
    query, alternative = run.plan.query, run.plan.alternatives[number]
    computed = determined_columns(alternative)
    values = GroupValues(alternative.query, alternative, run.events, matches, computed)
    batches = result_batches(alternative, match_schema(query), run.events, matches, computed)
    arrays = [*objective_values(run.ranking, values.rows()), *pa.Table.from_batches(batches).columns]
    for name in tie_columns(query) if ties else []:
        for variable in (variable for variable in query.variables if variable.positive):
            if values.is_group(variable.index):
                offsets = values.elements(variable.index)[1]
                empty = np.append(np.diff(offsets) == 0, False)  # an empty group sorts first, like a missing event
                starts = pa.array(offsets.astype(np.int32), mask=empty)
                arrays.append(pa.ListArray.from_arrays(starts, values.column(variable.index, name)))
            elif variable.quantifier is not None and not values.is_bound(variable.index):
                arrays.append(pa.nulls(len(matches), pa.list_(run.events.columns.whole(name).type)))
            else:
                arrays.append(values.column(variable.index, name))
    return [*arrays, pa.array(run.events.rows_at(matches.events()[0]))]


def tie_columns(query: BoundQuery) -> list[str]:
    """Return the columns that break ties: the time, and `order` if there is one."""
    time = TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time
    return [time, *([query.binding.order] if query.binding.order else [])]


def tie_names(query: BoundQuery) -> list[str]:
    """Return the names of the tie-breaker columns: the time of each variable's event, then its `order`."""
    count = sum(variable.positive for variable in query.variables)
    kinds = ["time", "order"] if query.binding.order else ["time"]
    return [f"${kind} {number}" for kind in kinds for number in range(count)]


def variable_rows(alternative: Alternative) -> list[int]:
    """Return for each step the row of its variable among all positive variables, in order of appearance."""
    positive = [variable.index for variable in alternative.query.variables if variable.positive]
    return [positive.index(step.variable) for step in alternative.steps]


def cast_to(array: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """Return the array as one chunk, cast to the type if there is one."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array if kind is None or array.type == kind else array.cast(kind)
