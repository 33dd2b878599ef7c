"""Sort the usable rows of a table by time, and replace times by ranks and window positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from streamsift.errors import BadInputError
from streamsift.logical.bound import TIME, BoundQuery, BoundWindow, EventClass, WindowKind
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Int32, Int64, Times
from streamsift.runtime.arrays.grouping import gathered, positions_in_group
from streamsift.runtime.events.bad_rows import Report, bad_mask, handle_bad_rows
from streamsift.runtime.events.times import saturating_sum, time_and_order, time_numbers, window_width
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.expressions.columns import Columns, plain, truths

NO_ORDER = NO_BOUNDS = np.empty(0, np.int64)  # order by time alone; the window is given by its width


@dataclass(frozen=True, slots=True)
class Events:
    """The events sorted by (time, order, input order). Place i in that order is row rows[i] of the table.

    `rank` says which events come before, after or at the same time. A match that starts at place i can contain place j
    exactly if window_position[j] <= window_limit of i. Kernels need no other information about time.
    """

    columns: Columns
    rows: Int32  # [n]
    rank: Int32  # [n] dense rank of time, or of (time, order)
    window_position: Int32  # [n]; -1 for a row without a partition
    ticks: Times  # [n] times as numbers, ascending
    window: BoundWindow | None
    width: int | float  # of a time window in the units of `ticks`; of a count window in rows
    in_input_order: bool  # rows[i] == i for all i
    unit: pa.DataType  # the unit of `ticks`: timestamps of a unit, dates, decimals of a scale, numbers
    by_class: Mapping[EventClass, Int32] = field(default_factory=dict)  # places of classes, as far as computed

    def partitions(self, keys: Sequence[str]) -> tuple[Int32, int]:
        """Return the partition of each place by the key columns (-1 for none), and the number of partitions."""
        if not keys:
            return np.zeros(self.rank.size, np.int32), 1
        rows = None if self.in_input_order and self.rank.size == self.columns.table.num_rows else self.rows
        (codes,), count = group_codes([[self.columns.at(key, rows)] for key in keys])
        return codes, count

    def rows_at(self, places: Int32) -> Int32:
        """Return the table rows of these places."""
        return places if self.in_input_order else gathered(self.rows, places.astype(np.int32, copy=False))

    def window_limit(self, starts: Int32) -> Int32:
        """Return, for a match that starts at each of these ascending places, the largest window position it can use."""
        if self.window is None:
            return np.full(starts.size, NO_LIMIT, np.int32)
        if self.window.kind is WindowKind.COUNT:
            last = self.window_position[starts].astype(np.int64) + (int(self.width) - 1)
            return np.minimum(last, NO_LIMIT).astype(np.int32)
        if self.width < 0:
            return np.full(starts.size, -1, np.int32)
        if self.ticks.dtype == np.float64:
            return _last_in_window(self.ticks, starts, NO_BOUNDS, float(self.width))
        ticks = self.ticks if starts.size == self.ticks.size else self.ticks[starts]
        bounds = saturating_sum(ticks.view(np.int64), int(self.width))
        return _last_in_window(self.ticks, starts, bounds, 0.0)


def in_order(query: BoundQuery, table: pa.Table, bad_rows: str, report: Report) -> Events:
    """Sort the usable rows of a table by time; `prepare` adds the computed columns that a plan reads."""
    if table.num_rows > NO_LIMIT:
        raise BadInputError(
            f"a task can process at most {NO_LIMIT:,} rows, but the table has {table.num_rows:,}\nHint: run on Spark."
        )
    if not table.schema.equals(query.schema):
        table = table.select(query.schema.names).cast(query.schema)
    binding, window = query.binding, query.window
    columns = Columns(table)
    time, order = time_and_order(columns, binding)
    columns = columns.with_array(TIME, time)
    keep: Int64 | None = None  # the usable rows in order; None means all rows, in input order
    if (bad := bad_mask(time, order)) is not None:
        handle_bad_rows(bad, binding, columns, bad_rows, report)
        keep = np.flatnonzero(~bad)
        time, order = time.take(pa.array(keep)), order[keep] if order.size else order
    ticks, unit = time_numbers(plain(time), binding)
    if not is_ordered(ticks, order):
        places = np.lexsort((order, ticks)) if order.size else np.argsort(ticks, kind="stable")
        ticks, order = ticks[places], order[places] if order.size else order
        keep = places if keep is None else keep[places]
    rows = np.arange(ticks.size, dtype=np.int32) if keep is None else keep.astype(np.int32)
    return Events(
        columns=columns,
        rows=rows,
        rank=dense_rank(ticks, order),
        window_position=_positions(query, columns, rows),
        ticks=ticks,
        window=window,
        width=0 if window is None else window_width(window, unit),
        in_input_order=keep is None,
        unit=unit,
    )


def _positions(query: BoundQuery, columns: Columns, rows: Int32) -> Int32:
    """Return positions within the partition for a count window, else places; -1 for rows without a partition."""
    positions = np.arange(rows.size, dtype=np.int32)
    if query.partition_by and query.window is not None and query.window.kind is WindowKind.COUNT:
        (groups,), count = group_codes([[columns.at(key, rows)] for key in query.partition_by])
        positions = np.maximum(positions_in_group(groups, count), 0)
    for key in query.partition_by:
        if columns.whole(key).null_count:
            positions[truths(pc.is_null(columns.at(key, rows)))] = -1
    return positions


def tie_levels(events: Events) -> list[Int32]:
    """Return the tie breakers time, `order` and input order, each [places + 1]; the last entry stands for no event."""
    places = np.arange(events.rank.size, dtype=np.int32)
    times = dense_rank(events.ticks, NO_ORDER)
    levels = [times] if times.size and times[-1] < times.size - 1 else []
    if levels and events.rank[-1] > times[-1]:
        levels.append(events.rank)
    return [np.append(level, np.int32(-1)) for level in (*levels, places)]


# --- kernels: dtypes do not depend on the query, so nothing is recompiled; only these kernels read times -------------


@njit(cache=True, nogil=True)
def earliest_ends(ranks: Int32, next_ranks: Int32, next_ends: Int32, never: int) -> Int32:
    """Return for each entry of a step the first place at which a match through it can end; `never` if there is none.

    That is the end of the next step's first entry with a greater rank. Ranks ascend, and so do ends.
    """
    ends = np.empty(ranks.size, np.int32)
    j = 0
    for i in range(ranks.size):
        while j < next_ranks.size and next_ranks[j] <= ranks[i]:
            j += 1
        ends[i] = next_ends[j] if j < next_ranks.size else never
    return ends


@njit(cache=True, nogil=True)
def is_ordered(time: Times, order: Int64) -> bool:
    """Return True if the pairs (time, order) never decrease; an empty `order` means time alone."""
    for i in range(1, time.size):
        if time[i] < time[i - 1] or (order.size > 0 and time[i] == time[i - 1] and order[i] < order[i - 1]):
            return False
    return True


@njit(cache=True, nogil=True)
def dense_rank(time: Times, order: Int64) -> Int32:
    """Return the dense rank, from 0, of ascending pairs (time, order); an empty `order` means time alone."""
    rank = np.empty(time.size, np.int32)
    current = 0
    for i in range(time.size):
        if i > 0 and (time[i] != time[i - 1] or (order.size > 0 and order[i] != order[i - 1])):
            current += 1
        rank[i] = current
    return rank


@njit(cache=True, nogil=True)
def _last_in_window(time: Times, starts: Int32, bounds: Int64, width: float) -> Int32:
    """Return for each start i the last j with time[j] <= its bound; without bounds, with time[j] - time[i] <= width.

    Two pointers suffice: starts, bounds and times ascend, and rounded subtraction is monotone. The difference of equal
    times is 0, even if they are infinite.
    """
    last = np.empty(starts.size, np.int32)
    j = 0
    for n in range(starts.size):
        i = starts[n]
        j = max(j, i)
        if bounds.size > 0:
            while j + 1 < time.size and time[j + 1] <= bounds[n]:
                j += 1
        else:
            while j + 1 < time.size and (time[j + 1] == time[i] or time[j + 1] - time[i] <= width):
                j += 1
        last[n] = j
    return last
