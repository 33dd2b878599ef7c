"""A part in, what picks its own rows from totals out: those whose times lie in its slices, of each group its own.

The stop of a row is the sum of its slice and its group's number. That number is a hash that only the JVM makes; but an
event of the group is at home at the sum of its own slice and the number, so it is known from that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.expressions.codes import group_codes
from streamsift.spark.distribute.sharding import NOWHERE, Part, is_in
from streamsift.spark.distribute.slices import Slices, slice_numbers

Picked = Callable[[pa.RecordBatch], pa.RecordBatch]


def picks_own(query: BoundQuery, how: Slices, part: Part) -> Picked:
    groups, numbers = _groups(query, how, part)

    def picked(totals: pa.RecordBatch) -> pa.RecordBatch:
        stops = slice_numbers(totals.column("time"), query, how)
        if query.group_by:
            columns = [totals.column(name) for name in query.group_names]
            of_group, of_row = group_codes(list(zip(groups, columns, strict=True)))[0]
            by_code = np.zeros(max(of_group.max(initial=0), of_row.max(initial=0)) + 1, np.int64)
            by_code[of_group] = numbers
            stops = stops + by_code[of_row]
        return totals.filter(pa.array(is_in(stops, part.stops)))

    return picked


def _groups(query: BoundQuery, how: Slices, part: Part) -> tuple[list[pa.Array], Int64]:
    """The groups' values, one array for each column, and their numbers."""
    if not query.group_by:
        return [], np.zeros(1, np.int64)
    good = np.flatnonzero(part.home != NOWHERE)
    columns = [part.events.column(name).combine_chunks().take(pa.array(good)) for name in query.group_by]
    (codes,), _ = group_codes([[column] for column in columns])
    code, some = np.unique(codes, return_index=True)  # an event of each
    some = some[code >= 0]  # what equals nothing is in no group
    times = part.events.column(query.binding.time).combine_chunks().take(pa.array(good[some]))
    numbers = part.home[good[some]] - slice_numbers(times, query, how)
    return [column.take(pa.array(some)) for column in columns], numbers
