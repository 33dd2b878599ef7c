"""The best matches in, Arrow record batches of the ranking out: window_end, group, rank, score, objectives, match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import TIME, BoundQuery, TimeKind
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.times import time_type
from streamsift.runtime.events.update_ticks import UpdateTicks, tick_type, tick_values
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

ROWS = 1 << 16  # of a batch


def rank_schema(query: BoundQuery) -> pa.Schema:
    """The schema of a ranking, the same for every input, empty ones too."""
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


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """All that the output needs beside the matches. A bucket is `group * ticks + (tick - first_tick)`."""

    query: BoundQuery
    alternatives: Sequence[Alternative]
    events: Events
    ticks: UpdateTicks | None
    first_tick: int
    tick_count: int

    def tick_of(self, buckets: Int64) -> Int64:
        return buckets % self.tick_count + self.first_tick

    def batches(self, best: Scored, *, ties: bool = False) -> Iterator[pa.RecordBatch]:
        """The matches (by bucket, best first) as result rows, in order of their ticks.

        With `ties`, beside them what ties are broken by: other tasks may have matches of the same bucket.
        """
        schema = rank_schema(self.query)
        starts = np.searchsorted(best.bucket, best.bucket, side="left")
        rank = np.arange(1, best.bucket.size + 1) - starts
        order = np.lexsort([rank, best.bucket, self.tick_order(best.bucket)])
        for begin in range(0, order.size, ROWS):
            which = order[begin : begin + ROWS]
            batch = self._batch(best.at(which), rank[which], schema)
            yield self._with_ties(batch, best.at(which)) if ties else batch

    def tick_order(self, buckets: Int64) -> Int64:
        if self.ticks is None:
            return np.zeros(buckets.size, np.int64)
        ticks = self.tick_of(buckets)
        return self.ticks.row_places[ticks].astype(np.int64) if self.ticks.row_places.size else ticks

    def _batch(self, best: Scored, rank: Int64, schema: pa.Schema) -> pa.RecordBatch:
        first = best.places[(best.places >= 0).argmax(axis=0), np.arange(best.score.size)]
        leading = self.leading(best.bucket, rank, best.score, self.events.rows_at(first))
        leading = [cast_to(array, schema.field(number).type) for number, array in enumerate(leading)]
        rest = self._matches(best, pa.schema(list(schema)[len(leading) :]))
        return pa.RecordBatch.from_arrays([*leading, *rest], schema=schema)

    def leading(self, bucket: Int64, rank: Int64, score: Float64, rows: Int32) -> list[pa.Array]:
        """window_end, the group, rank and score; `rows` are those of any event of each match."""
        found = [tick_values(self.query, self.events, self.ticks, self.tick_of(bucket))] if self.ticks else []
        found += [self.events.columns.at(column, rows) for column in self.query.group_by]
        return [*found, pa.array(rank, pa.int64()), pa.array(score)]

    def _with_ties(self, batch: pa.RecordBatch, best: Scored) -> pa.RecordBatch:
        binding = self.query.binding
        time = TIME if binding.time_kind is TimeKind.TEXT else binding.time
        arrays = []
        for name in (time, *([binding.order] if binding.order else [])):
            for places in best.places:
                rows = pa.array(self.events.rows_at(np.maximum(places, 0)), mask=places < 0)
                arrays.append(self.events.columns.whole(name).take(rows))
        return pa.RecordBatch.from_arrays(
            [*batch.columns, *arrays], names=[*batch.schema.names, *tie_names(self.query)]
        )

    def _matches(self, best: Scored, schema: pa.Schema) -> list[pa.Array]:
        """Objectives and match columns: alternative by alternative, then put back in order."""
        query, parts, order = self.query, [], []
        assert query.ranking is not None
        for number in np.unique(best.alternative):
            alternative = self.alternatives[number]
            which = np.flatnonzero(best.alternative == number)
            order.append(which)
            places = best.places[variable_rows(alternative)][:, which]
            values = objective_values(query.ranking, match_columns(alternative, self.events, places))
            found = pa.Table.from_batches(
                result_batches(
                    alternative,
                    match_schema(query),
                    self.events,
                    GroupMatches.of_places(places),
                    known_columns(alternative),
                )
            )
            columns = [*values, *(column.combine_chunks() for column in found.columns)]
            parts.append([cast_to(c, f.type) for c, f in zip(columns, schema, strict=True)])
        if len(parts) == 1:
            return parts[0]
        back = pa.array(np.argsort(np.concatenate(order), kind="stable"))
        return [pa.concat_arrays(list(column)).take(back) for column in zip(*parts, strict=True)]


def tie_names(query: BoundQuery) -> list[str]:
    """The columns that ties are broken by: the time of each variable's event, then its `order`."""
    count = sum(variable.positive for variable in query.variables)
    kinds = ["time", "order"] if query.binding.order else ["time"]
    return [f"${kind} {number}" for kind in kinds for number in range(count)]


def variable_rows(alternative: Alternative) -> list[int]:
    """For each step the row of its variable among all positive variables, in order of appearance."""
    positive = [variable.index for variable in alternative.query.variables if variable.positive]
    return [positive.index(step.variable) for step in alternative.steps]


def cast_to(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array if array.type == kind else array.cast(kind)
