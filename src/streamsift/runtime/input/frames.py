"""Convert a pandas DataFrame to an Arrow table without rounding the values of object columns.

pyarrow infers the type of a column from its first object: it truncates nanoseconds of timestamps, drops the time of day
from a timestamp that follows a date, and has no type for integers beyond 64 bits.
"""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral
from typing import Any

import pyarrow as pa

from streamsift.errors import BadInputError

MAX_INTEGER_DIGITS = 76  # of Arrow's widest decimal


def table_of_frame(frame: Any) -> pa.Table:
    """Convert a DataFrame. Raises BadInputError if the objects of a column have no common type."""
    import pandas as pd

    if isinstance(frame, pd.Series):
        raise TypeError("run_local() takes a pandas DataFrame, not a Series; use series.to_frame()")
    if twice := list(frame.columns[frame.columns.duplicated()]):
        raise BadInputError(f"two columns are named `{twice[0]}`\nHint: rename or drop one of them.")
    is_object = [pd.api.types.is_object_dtype(kind) for kind in frame.dtypes]
    columns = pa.Table.from_pandas(frame.loc[:, [not o for o in is_object]], preserve_index=False).columns
    for n in (n for n, o in enumerate(is_object) if o):
        columns.insert(n, _array(str(frame.columns[n]), frame.iloc[:, n]))
    return pa.table(columns, names=[str(name) for name in frame.columns])


def _array(name: str, series: Any) -> pa.Array:
    try:
        array = pa.array(series, from_pandas=True)
    except OverflowError:
        array = _large_integers(name, series)
    except pa.ArrowInvalid as error:
        raise _mixed(name, str(error)) from error
    if not pa.types.is_temporal(array.type) or _holds(array, series):
        return array
    zone = getattr(array.type, "tz", None)
    wide = pa.duration("ns") if pa.types.is_duration(array.type) else pa.timestamp("ns", zone)
    try:
        array = pa.array(series, wide, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise _mixed(name, str(error)) from error
    if not _holds(array, series):
        raise _mixed(name, f"not all values fit {array.type}")
    return array


def _large_integers(name: str, series: Any) -> pa.Array:
    values = series.dropna()
    if not all(isinstance(value, Integral) for value in values):
        raise _mixed(name, "integers beyond 64 bits, and other objects")
    digits = max(len(str(abs(int(value)))) for value in values)
    if digits > MAX_INTEGER_DIGITS:
        raise _mixed(name, f"an integer has {digits} digits; the maximum is {MAX_INTEGER_DIGITS}")
    kind = pa.decimal128(38, 0) if digits <= 38 else pa.decimal256(MAX_INTEGER_DIGITS, 0)
    return pa.array([Decimal(int(v)) if isinstance(v, Integral) else None for v in series], kind)


def _holds(array: pa.Array, series: Any) -> bool:
    """Return True if the array holds the times of the series exactly."""
    pairs = zip(array.to_pylist(), series, strict=True)
    return all(value is None or value == original for value, original in pairs)


def _mixed(name: str, reason: str) -> BadInputError:
    return BadInputError(
        f"the objects in column `{name}` have no common type: {reason}\nHint: convert the column with astype()."
    )
