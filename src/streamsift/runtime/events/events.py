"""A table and its binding in, its usable rows in order of time out, with ranks and window positions for times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError, BadRowsWarning, warn
from streamsift.logical.bound import TIME, Binding, BoundQuery, BoundWindow, EventClass, TimeKind, WindowKind
from streamsift.logical.durations import LARGEST_COUNT, LARGEST_DIFFERENCE, TEXT_TIME, width_in_units
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Int32, Int64, Times
from streamsift.runtime.arrays.grouping import positions_in_group
from streamsift.runtime.events.order_kernels import dense_rank, is_ordered, limits_by_bound, limits_by_float
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.columns import Columns, fixed_width, integers, nulls, plain, truths
from streamsift.runtime.expressions.values import decimal_type

NO_LIMIT = np.iinfo(np.int32).max
SHOWN_ROWS, SHOWN_COLUMNS, SHOWN_CHARACTERS = 5, 6, 60  # of bad rows, in errors and warnings


@dataclass(frozen=True, slots=True)
class BadRows:
    """Rows that cannot be placed in time: how many, and what the first few hold."""

    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        shown = "".join(f"\n  {example}" for example in self.examples)
        more = f"\n  and {self.count - len(self.examples):,} more" if self.count > len(self.examples) else ""
        return f"{self.count:,} {'row has' if self.count == 1 else 'rows have'} no usable time or order:{shown}{more}"


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

    def rows_at(self, places: Int32) -> Int32:
        """The table rows of these places."""
        return places if self.in_input_order else self.rows[places]

    def window_limit(self, starts: Int32) -> Int32:
        """For each of these places (ascending) the largest window position that a match starting there may hold."""
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
    raw_time = columns.whole(binding.time)
    time = parse_text_times(raw_time) if binding.time_kind is TimeKind.TEXT else raw_time
    columns = columns.with_array(TIME, time)
    order = codes([columns.whole(binding.order)])[0] if binding.order else np.empty(0, np.int64)
    bad = _bad_mask(plain(time), order)
    if bad is not None:
        _handle_bad_rows(bad, binding, columns, bad_rows, report)
        keep = np.flatnonzero(~bad)
        ticks, unit = _ticks(plain(time.take(pa.array(keep))), binding)
        order = order[keep] if binding.order else order
    else:
        keep = None
        ticks, unit = _ticks(plain(time), binding)
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
    width = 0 if window is None else _width(window, unit)
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


def parse_text_times(array: pa.Array) -> pa.Array:
    """ISO-8601 texts as timestamps in UTC; without a zone they are UTC already; null where a text is no time."""
    texts = plain(array)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), TEXT_TIME)
    # pandas would also read "now" and "today", and cut off what is finer than microseconds.
    texts = _only(texts, pc.match_substring_regex(texts, r"^\s*\d"))
    texts = _only(texts, pc.invert(pc.match_substring_regex(texts, r"[.,]\d{6}\d*[1-9]")))
    # pandas reads a text without a zone in the zone of the text before it: those with one are read apart.
    zoned = pc.match_substring_regex(texts, r"(?i)\d[T ].*(Z|[+-][\d:]+)\s*$")
    parsed = pc.coalesce(_parsed(_only(texts, zoned)), _parsed(_only(texts, pc.invert(zoned))))
    if parsed.null_count == texts.null_count:
        return parsed
    # pandas reads the years 1678 to 2261 only: what it left out is read by Python, once per distinct text.
    encoded = _only(texts, pc.is_null(parsed)).dictionary_encode()
    others = pa.array([_instant(text) for text in encoded.dictionary.to_pylist()], TEXT_TIME)
    return pc.coalesce(parsed, others.take(encoded.indices))


def _only(texts: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(where, texts, pa.scalar(None, texts.type))


def _parsed(texts: pa.Array) -> pa.Array:
    """The texts that pandas reads; null elsewhere."""
    import pandas as pd  # only text times need it, and it is slow to import

    if texts.null_count == len(texts):
        return pa.nulls(len(texts), TEXT_TIME)
    read = pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True, errors="coerce")
    return pa.array(read.dt.as_unit("us"), TEXT_TIME)


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _bad_mask(time: pa.Array, order: Int64) -> Bool | None:
    bad = nulls(time)
    if pa.types.is_floating(time.type):
        nan = np.isnan(fixed_width(time.cast(pa.float64()), np.dtype(np.float64)))
        bad = nan if bad is None else bad | nan
    if order.size:
        bad = (order == UNKNOWN) if bad is None else bad | (order == UNKNOWN)
    return bad if bad is not None and bad.any() else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def find_bad_rows(query: BoundQuery, table: pa.Table) -> tuple[Bool, BadRows] | None:
    """Which rows of a table have no usable time or order, and what to say of them; None if there are none."""
    binding, columns = query.binding, Columns(table)
    raw_time = columns.whole(binding.time)
    time = parse_text_times(raw_time) if binding.time_kind is TimeKind.TEXT else raw_time
    order = codes([columns.whole(binding.order)])[0] if binding.order else np.empty(0, np.int64)
    bad = _bad_mask(plain(time), order)
    return None if bad is None else (bad, _described(bad, binding, columns))


def bad_rows_error(found: BadRows, binding: Binding) -> BadInputError:
    text = f"`{binding.time}` is text and is read as ISO-8601 timestamps; " * (binding.time_kind is TimeKind.TEXT)
    return BadInputError(f'{found}\nHint: {text}repair them, or leave them out with bad_rows="drop".')


def _described(bad: Bool, binding: Binding, columns: Columns) -> BadRows:
    first = np.flatnonzero(bad)[:SHOWN_ROWS]
    # The time and the order first, then enough of the other columns to find the row by.
    known = [name for name in (binding.time, binding.order, binding.type) if name is not None]
    names = [*known, *(name for name in columns.table.column_names if name not in known)][:SHOWN_COLUMNS]
    shown = [columns.at(name, first.astype(np.int32)).to_pylist() for name in names]
    examples = tuple(
        ", ".join(f"{name} = {_shown(value)}" for name, value in zip(names, values, strict=True))
        for values in zip(*shown, strict=True)
    )
    return BadRows(int(bad.sum()), examples)


def _handle_bad_rows(
    bad: Bool, binding: Binding, columns: Columns, bad_rows: str, report: Callable[[BadRows], None] | None
) -> None:
    found = _described(bad, binding, columns)
    if bad_rows == "fail":
        raise bad_rows_error(found, binding)
    if report is not None:
        report(found)
    else:
        warn(f"Dropped: {found}", BadRowsWarning)


def ticks_of(times: pa.Array, binding: Binding) -> Times:
    """Times as numbers that compare and subtract as those of any other call do."""
    if binding.time_kind is TimeKind.TEXT and not pa.types.is_timestamp(times.type):
        times = parse_text_times(times)
    if times.null_count:
        raise BadInputError(f"{times.null_count:,} rows have no usable time in `{binding.time}`")
    ticks, kind = _ticks(plain(times), binding)
    if kind != plain(times).type:
        raise BadInputError(f"`{binding.time}` is a {times.type}: cast it to fewer digits to take events bit by bit")
    return ticks


def _ticks(time: pa.Array, binding: Binding) -> tuple[Times, pa.DataType]:
    """Times as numbers, and the type that tells what they count."""
    if pa.types.is_floating(time.type):
        return fixed_width(time.cast(pa.float64()), np.dtype(np.float64)), time.type
    ticks = integers(time)
    kind = time.type
    # Decimals of many digits, such as Spark's decimal(38,18): most have fewer places than their type.
    for scale in range(kind.scale if ticks is None else 0):
        kind = decimal_type(time.type.precision, scale)
        try:
            ticks = integers(time.cast(kind))
        except pa.ArrowInvalid:
            continue  # a time has more places than that
        break
    if ticks is None:
        digits = f"{time.type} column `{binding.time}` holds a time that does not fit 64 bits"
        raise BadInputError(f"The {digits} (as a count of its last decimal). Cast it to fewer digits.")
    return ticks, kind


def window_width(window: BoundWindow, events: Events) -> int | float:
    """The width of any window in the units of the events' ticks."""
    return _width(window, events.unit)


def _width(window: BoundWindow, unit: pa.DataType) -> int | float:
    """The largest difference of times (or number of rows) that is inside the window, in the units of the ticks."""
    if window.kind is WindowKind.COUNT:
        return min(int(window.length), NO_LIMIT)
    return width_in_units(window, unit)


def saturating_sum(values: Int64, width: int) -> Int64:
    """Return values + width, or the largest int64 where the sum is larger. The width may be larger itself."""
    if width >= LARGEST_DIFFERENCE:
        return np.full(values.size, LARGEST_COUNT, np.int64)
    if width <= LARGEST_COUNT and values.size and int(values.max()) <= LARGEST_COUNT - width:
        return values + width
    # As unsigned numbers LARGEST_COUNT - value is exact for every value.
    headroom = np.uint64(LARGEST_COUNT) - values.view(np.uint64)
    total = (values.view(np.uint64) + np.uint64(width)).view(np.int64)
    return np.where(headroom <= np.uint64(width), LARGEST_COUNT, total)


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
