"""Read the time column of a table as numbers, and tell the types of times in results."""

from __future__ import annotations

import pyarrow as pa

from streamsift.logical.bound import TIME, BoundQuery, TimeKind
from streamsift.logical.durations import TEXT_TIME


def time_type(query: BoundQuery) -> pa.DataType:
    """The type of `match_start`: the time column's own, or timestamps for texts."""
    if query.binding.time_kind is TimeKind.TEXT:
        return TEXT_TIME
    return query.schema.field(query.binding.time).type


def time_column(query: BoundQuery) -> str:
    """Return the column that results show as times: the query's own, or what its texts stand for."""
    return TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time
