"""Convert a time column that is written in a given format, or as a number of seconds or smaller units since 1970."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError, SetupError

UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # per second
INSTANT = pa.timestamp("us", "UTC")
MIN_SECONDS, MAX_SECONDS = -62_135_596_800, 253_402_300_800  # years 1 to 9999, from 1970
HINT_FORMAT = "\nHint: use strptime directives, such as --time-format '%d/%m/%Y %H:%M:%S'."


@dataclass(frozen=True, slots=True)
class TimeNotation:
    """How the time column is written: in a strptime format, or as a number in a unit since 1970-01-01 UTC."""

    column: str
    format: str | None = None
    unit: str | None = None  # of UNITS
    drops: bool = False  # a value that does not fit is null; otherwise it raises BadInputError

    @property
    def is_given(self) -> bool:
        return self.format is not None or self.unit is not None

    def __post_init__(self) -> None:
        if self.format is None:
            return
        if self.unit is not None:
            raise SetupError("--time-format and --time-unit exclude each other: a time is text or a number")
        if "%" not in self.format:
            raise SetupError(f"--time-format '{self.format}' contains no directive{HINT_FORMAT}")
        try:
            datetime.strptime("", self.format)
        except ValueError as error:
            if "does not match" not in str(error):
                raise SetupError(f"invalid --time-format: {error}{HINT_FORMAT}") from error


def with_times(table: pa.Table, notation: TimeNotation | None) -> pa.Table:
    """Return the table with its time column converted to timestamps."""
    if notation is None or notation.column not in table.column_names:
        return table
    number = table.column_names.index(notation.column)
    return table.set_column(number, notation.column, times_of(table.column(number), notation))


def times_of(values: pa.ChunkedArray, notation: TimeNotation) -> pa.ChunkedArray:
    """Convert a column to timestamps: of microseconds, or of nanoseconds if a number is finer."""
    if notation.format is not None:
        return _parsed(values, notation.format, notation)
    if notation.unit is not None:
        return _since_epoch(values, UNITS[notation.unit], notation)
    return values


def _parsed(values: pa.ChunkedArray, time_format: str, notation: TimeNotation) -> pa.ChunkedArray:
    """Parse texts with `datetime.strptime`, each distinct text once. Arrow's strptime accepts February 31."""
    if not (_is_text(values.type) or pa.types.is_integer(values.type) or pa.types.is_null(values.type)):
        raise BadInputError(
            f"--time-format needs a column of strings; `{notation.column}` is {values.type}\n"
            "Hint: remove --time-format."
        )
    codes = values.cast(pa.string()).combine_chunks().dictionary_encode()
    times: list[datetime | None] = []
    for text in codes.dictionary.to_pylist():
        try:
            time = datetime.strptime(text.strip(), time_format)
            times.append(time.astimezone(UTC) if time.tzinfo else time)
        except ValueError as error:
            if not notation.drops:
                raise _unusable(notation, repr(text), f"does not match --time-format '{time_format}'") from error
            times.append(None)
    kind = pa.timestamp("us", "UTC" if "%z" in time_format else None)
    return pa.chunked_array([pa.array(times, kind).take(codes.indices)], kind)


def _since_epoch(values: pa.ChunkedArray, per_second: int, notation: TimeNotation) -> pa.ChunkedArray:
    """Convert numbers to instants: exactly if they are integers or decimals, rounded to microseconds if doubles."""
    if pa.types.is_null(values.type):
        return values.cast(INSTANT)
    is_double = pa.types.is_floating(values.type)
    if not (is_double or pa.types.is_integer(values.type) or pa.types.is_decimal(values.type)):
        raise BadInputError(
            f"--time-unit needs a column of numbers; `{notation.column}` is {values.type}\nHint: remove --time-unit."
        )
    numbers = _in_range(values, per_second, notation)
    if is_double:
        return pc.round(pc.multiply(numbers, UNITS["us"] / per_second)).cast(pa.int64()).cast(INSTANT)
    exact = numbers.cast(pa.decimal256(48, getattr(values.type, "scale", 0)))
    for unit in ("us", "ns"):
        ratio = pa.scalar(Decimal(UNITS[unit]) / per_second, pa.decimal128(19, 9))
        try:
            return pc.multiply(exact, ratio).cast(pa.int64()).cast(pa.timestamp(unit, "UTC"))
        except pa.ArrowInvalid:  # finer than the unit
            continue
    raise BadInputError(f"column `{notation.column}` has times that are finer than nanoseconds, or too far from 1970")


def _in_range(values: pa.ChunkedArray, per_second: int, notation: TimeNotation) -> pa.ChunkedArray:
    """Return the numbers, without those that are outside the years 1 to 9999 or no numbers."""
    seconds = pc.divide(values.cast(pa.float64(), safe=False), per_second)
    is_usable = pc.and_(pc.greater_equal(seconds, MIN_SECONDS), pc.less(seconds, MAX_SECONDS))
    if pc.all(is_usable, min_count=0).as_py():
        return values
    if not notation.drops:
        first = values.filter(pc.invert(is_usable))[0].as_py()
        raise _unusable(notation, str(first), f"is outside the years 1 to 9999 in --time-unit {notation.unit}")
    return pc.if_else(is_usable, values, pa.scalar(None, values.type))


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _unusable(notation: TimeNotation, value: str, reason: str) -> BadInputError:
    return BadInputError(
        f"the time {value} in column `{notation.column}` {reason}\n"
        "Hint: correct the option or the data, or drop such rows with --bad-rows drop."
    )
