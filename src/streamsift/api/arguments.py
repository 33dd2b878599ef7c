"""Check arguments, and convert data to Arrow tables and schemas."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from streamsift.errors import QueryError

BadRowsPolicy = Literal["fail", "drop"]
_SIZE = re.compile(r"\s*(?P<number>\d+(\.\d+)?)\s*((?P<unit>[KMGT]?)(?P<binary>i?)B)?\s*", re.IGNORECASE)


class Roles(NamedTuple):
    """The columns that are the time, the class name and the order among equal times."""

    time: str
    type: str | None
    order: str | None


def is_spark(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.sql")


def type_name(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"


def check_batch(lateness: str | float | None) -> None:
    if lateness is not None:
        raise QueryError("lateness requires a streaming DataFrame", hint="remove lateness: no row of a batch is late.")


def check_policy(bad_rows: str) -> None:
    if bad_rows not in ("fail", "drop"):
        raise QueryError(f"invalid value for bad_rows: {bad_rows!r}", hint='expected "fail" or "drop".')


def check_limit(limit: int | None) -> int | None:
    """Return the maximum number of rows; raise if it is not a positive integer or None."""
    if limit is None or (_is_integer(limit) and limit >= 1):
        return None if limit is None else int(limit)
    raise QueryError(f"invalid value for limit: {limit!r}", hint="expected an integer of at least 1, or None.")


def check_no_limits(limit: int | None, memory_limit: int | str | None) -> None:
    """Raise if a limit that applies to this process is given for a Spark DataFrame."""
    if limit is not None:
        raise QueryError("limit is not supported on Spark", hint="call .limit(n) on the resulting DataFrame.")
    if memory_limit is not None:
        raise QueryError("memory_limit is not supported on Spark", hint="set spark.executor.pyspark.memory instead.")


def memory_bytes(memory_limit: int | str | None) -> int:
    """Return the memory limit in bytes; the default is half of the memory available to the process.

    >>> memory_bytes("1.5 GB"), memory_bytes("512 MiB"), memory_bytes(10_000)
    (1500000000, 536870912, 10000)
    """
    if memory_limit is None:
        from streamsift.runtime import default_limit

        return default_limit()
    size = int(memory_limit) if _is_integer(memory_limit) else 0
    if isinstance(memory_limit, str) and (parts := _SIZE.fullmatch(memory_limit)):
        base = 1024 if parts["binary"] else 1000
        size = int(Decimal(parts["number"]) * base ** (" KMGT".index((parts["unit"] or " ").upper())))
    if size < 1:
        hint = 'expected a number of bytes, or text such as "2 GB".'
        raise QueryError(f"invalid value for memory_limit: {memory_limit!r}", hint=hint)
    return size


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def check_names(**names: Any) -> None:
    for role, name in names.items():
        if not isinstance(name, str) and (name is not None or role == "time"):
            raise TypeError(f"`{role}` must be a column name, not {type_name(name)}")


def check_columns(names: list[str]) -> None:
    """Raise if column names differ only by case: Spark cannot read such columns unless it is case-sensitive."""
    counts = Counter(name.lower() for name in names)
    twice = ", ".join(f"`{name}`" for name in names if counts[name.lower()] > 1)
    if twice:
        raise QueryError(f"Spark cannot distinguish these columns: {twice}", hint="rename or drop all but one.")


def as_table(data: Any) -> pa.Table:
    match data:
        case pa.Table():
            return data
        case pa.RecordBatch():
            return pa.Table.from_batches([data])
        case pa.RecordBatchReader():
            return data.read_all()
    if type(data).__module__.startswith("pandas."):
        from streamsift.runtime.input import table_of_frame

        return table_of_frame(data)
    if hasattr(data, "__arrow_c_stream__") and not is_spark(data):
        return pa.table(data)
    other = type_name(data)
    raise TypeError(f"run_local() takes a pyarrow or pandas table, not {other}; use run() for a Spark DataFrame")


def schema_of(data: Any) -> tuple[pa.Schema, dict[str, Any]]:
    """Return the Arrow schema of the data, and the Spark session settings that affect names and times."""
    if not is_spark(data):
        return data if isinstance(data, pa.Schema) else as_table(data).schema, {}
    from streamsift import spark

    return spark.arrow_schema(data.schema), spark.session_settings(data.sparkSession)
