"""Rank the matches of each tick and group that were ranked for different keys (`physical.stream.part_plan`)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.bound import BoundQuery
from streamsift.runtime.expressions.columns import contiguous, plain
from streamsift.runtime.rank.output import rank_schema, tie_names


def merged_ranks(query: BoundQuery, parts: pa.Table) -> pa.Table:
    """Return the k best of each tick and group, from rows with tie breakers."""
    schema = rank_schema(query)
    if not parts.num_rows:
        return schema.empty_table()
    assert query.ranking is not None
    buckets = [f"bucket {number}" for number in range(1 + len(query.group_names))]
    score = pc.multiply(contiguous(parts.column("score")), -1.0)
    keys = {name: plain(contiguous(parts.column(number))) for number, name in enumerate(buckets)}
    keys |= {"score": pc.add(score, 0.0)}  # -0.0 equals 0.0
    keys |= {name: _comparable(contiguous(parts.column(name))) for name in tie_names(query)}
    sorted_by = [(name, "ascending") for name in keys]
    order = pc.sort_indices(pa.table(keys), sort_keys=sorted_by, null_placement="at_start")
    is_new = np.zeros(parts.num_rows, np.bool_)
    is_new[0] = True
    for name in buckets:
        values = keys[name].take(order)
        is_new[1:] |= pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(is_new)
    rank = np.arange(parts.num_rows) - starts[np.cumsum(is_new) - 1] + 1
    best = np.flatnonzero(rank <= query.ranking.limit)
    rows = parts.take(order.take(pa.array(best))).select(schema.names)
    return rows.set_column(schema.get_field_index("rank"), schema.field("rank"), pa.array(rank[best])).cast(schema)


def _comparable(column: pa.Array) -> pa.Array:
    """Return the times of groups of events as numbers in the same order: element by element, null first."""
    column = plain(column)
    if not pa.types.is_list(column.type):
        return column
    values = [None if value is None else tuple(value) for value in column.to_pylist()]
    numbers = {value: number for number, value in enumerate(sorted({value for value in values if value is not None}))}
    return pa.array([None if value is None else numbers[value] for value in values], pa.int64())
