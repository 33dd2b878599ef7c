"""Hold the usable rows of a table in order of time, with ranks and window positions instead of times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError
from streamsift.logical.bound import TIME, BoundQuery, BoundWindow, EventClass, WindowKind
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Int32, Int64, Times
from streamsift.runtime.arrays.grouping import gathered, positions_in_group
from streamsift.runtime.events.bad_rows import BadRows, bad_mask, handle_bad_rows
from streamsift.runtime.events.order_kernels import dense_rank, is_ordered, limits_by_bound, limits_by_float
from streamsift.runtime.events.times import saturating_sum, time_and_order, time_numbers, window_width
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.expressions.columns import Columns, plain, truths


@dataclass(frozen=True, slots=True)
class Events:
    """The rows of a stream in the order (time, order, input). Place i in that order is row rows[i] of the table.

    All that comes before, after or at the same time is told by `rank`. A match that starts at place i may hold place j
    exactly if window_position[j] <= the limit of i. Times are not needed for anything else.
    """

    columns: Columns
    rows: Int32  # [n]
    rank: Int32  # [n] dense rank of time, or of (time, order)
    window_position: Int32  # [n]; -1 for a row that is in no partition
    ticks: Times  # [n] times, ascending
    window: BoundWindow | None
    width: int | float  # of a time window in the units of `ticks`; of a count window in rows
    in_input_order: bool  # rows[i] == i for all i
    unit: pa.DataType  # what `ticks` count: timestamps of a unit, dates, decimals of a scale, numbers
    by_class: Mapping[EventClass, Int32] = field(default_factory=dict)  # the places of classes that are known already

    def partitions(self, keys: Sequence[str]) -> tuple[Int32, int]:
        """Return the partition of each place by some columns, -1 for none, and how many there are."""
        if not keys:
            return np.zeros(self.rank.size, np.int32), 1
        (codes,), count = group_codes([[self.columns.at(key, self.rows)] for key in keys])
        return codes, count

    def rows_at(self, places: Int32) -> Int32:
        """Return the table rows of these places."""
        return places if self.in_input_order else gathered(self.rows, places.astype(np.int32, copy=False))

    def window_limit(self, starts: Int32) -> Int32:
        """Return the largest window position that a match starting at each of these ascending places may hold."""
        if self.window is None:
            return np.full(starts.size, NO_LIMIT, np.int32)
        if self.window.kind is WindowKind.COUNT:
            last = self.window_position[starts].astype(np.int64) + (int(self.width) - 1)
            return np.minimum(last, NO_LIMIT).astype(np.int32)
        if self.width < 0:
            return np.full(starts.size, -1, np.int32)
        if self.ticks.dtype == np.float64:
            return limits_by_float(self.ticks, starts, float(self.width))
        ticks = self.ticks if starts.size == self.ticks.size else self.ticks[starts]
        return limits_by_bound(self.ticks, starts, saturating_sum(ticks.view(np.int64), int(self.width)))


def in_order(query: BoundQuery, table: pa.Table, bad_rows: str, report: Callable[[BadRows], None] | None) -> Events:
    """Order the usable rows of a table by time; `prepare` adds the columns that a plan reads besides the table's."""
    if table.num_rows > NO_LIMIT:
        raise BadInputError(f"{table.num_rows} rows are more than one task can hold ({NO_LIMIT}): use Spark.")
    if not table.schema.equals(query.schema):
        table = table.select(query.schema.names)
        table = table if table.schema.equals(query.schema) else table.cast(query.schema)
    binding = query.binding
    columns = Columns(table)
    time, order = time_and_order(columns, binding)
    columns = columns.with_array(TIME, time)
    keep: Int64 | None = None
    if (bad := bad_mask(time, order)) is not None:
        handle_bad_rows(bad, binding, columns, bad_rows, report)
        keep = np.flatnonzero(~bad)
        time, order = time.take(pa.array(keep)), order[keep] if binding.order else order
    ticks, unit = time_numbers(plain(time), binding)
    return _ordered(query, columns, ticks, unit, order, keep)


def _ordered(
    query: BoundQuery, columns: Columns, ticks: Times, unit: pa.DataType, order: Int64, keep: Int64 | None
) -> Events:
    in_order = is_ordered(ticks, order)
    if not in_order:
        places = np.lexsort((order, ticks)) if order.size else np.argsort(ticks, kind="stable")
        ticks = ticks[places]
        order = order[places] if order.size else order
        keep = places if keep is None else keep[places]
    rows = np.arange(ticks.size, dtype=np.int32) if keep is None else keep.astype(np.int32)
    window = query.window
    width = 0 if window is None else window_width(window, unit)
    return Events(
        columns=columns,
        rows=rows,
        rank=dense_rank(ticks, order),
        window_position=_positions(query, columns, rows),
        ticks=ticks,
        window=window,
        width=width,
        in_input_order=keep is None,
        unit=unit,
    )


def _positions(query: BoundQuery, columns: Columns, rows: Int32) -> Int32:
    """A count window's positions within the partition; else the places themselves. -1 in no partition."""
    positions = np.arange(rows.size, dtype=np.int32)
    if query.partition_by and query.window is not None and query.window.kind is WindowKind.COUNT:
        (groups,), count = group_codes([[columns.at(key, rows)] for key in query.partition_by])
        positions = np.maximum(positions_in_group(groups, count), 0)
    for key in query.partition_by:
        if columns.whole(key).null_count:
            positions[truths(pc.is_null(columns.at(key, rows)))] = -1
    return positions
