"""Check arguments, and convert data to Arrow tables and schemas."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from streamsift.errors import QueryError, SetupError

BadRowsPolicy = Literal["fail", "drop"]
_SIZE = re.compile(r"\s*(?P<number>\d+(\.\d+)?)\s*((?P<unit>[KMGT]?)(?P<binary>i?)B)?\s*", re.IGNORECASE)


class Roles(NamedTuple):
    """The columns that hold the time, the event class and the order of events with equal times."""

    time: str
    type: str | None
    order: str | None


def is_spark(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.sql")


def check_spark(call: str) -> None:
    """Raise if a call needs Spark and pyspark is not installed."""
    if find_spec("pyspark") is None:
        raise SetupError(
            f"{call} needs Spark, and pyspark is not installed\n"
            "Hint: pip install 'streamsift[spark]', or use run_local() on an Arrow or pandas table."
        )


def type_name(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"


def check_batch(**stream_arguments: Any) -> None:
    """Raise if an argument that applies only to streams is given."""
    for name, value in stream_arguments.items():
        if value is not None:
            raise QueryError(f"{name} applies only to a streaming DataFrame", hint=f"remove {name}.")


def check_policy(bad_rows: str) -> None:
    if bad_rows not in ("fail", "drop"):
        raise QueryError(f"invalid value for bad_rows: {bad_rows!r}", hint='expected "fail" or "drop".')


def check_limit(limit: int | None) -> int | None:
    """Return the limit on result rows; raise QueryError if it is invalid."""
    if limit is None or (_is_integer(limit) and limit >= 1):
        return None if limit is None else int(limit)
    hint = "expected a number of rows, 1 or more, or None for all rows."
    raise QueryError(f"invalid value for limit: {limit!r}", hint=hint)


def check_no_limits(limit: int | None, memory_limit: int | str | None) -> None:
    """Raise if a limit that applies only to this process is given for a run on Spark."""
    if limit is not None:
        raise QueryError("limit does not apply on Spark", hint="call `.limit(n)` on a result DataFrame.")
    if memory_limit is not None:
        hint = "set spark.executor.pyspark.memory to limit the Python workers."
        raise QueryError("memory_limit does not apply on Spark", hint=hint)


def memory_bytes(memory_limit: int | str | None) -> int:
    """Return the memory limit of a query in bytes; by default, half of the memory available to the process.

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
        hint = 'expected a number of bytes, or a string such as "2 GB".'
        raise QueryError(f"invalid value for memory_limit: {memory_limit!r}", hint=hint)
    return size


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def check_names(**names: Any) -> None:
    for role, name in names.items():
        if not isinstance(name, str) and (name is not None or role == "time"):
            raise TypeError(f"`{role}` must be the name of a column, not {type_name(name)}")


def check_columns(names: list[str]) -> None:
    """Raise if two column names differ only by case: Spark cannot read them unless it is case-sensitive."""
    counts = Counter(name.lower() for name in names)
    twice = ", ".join(f"`{name}`" for name in names if counts[name.lower()] > 1)
    if twice:
        hint = "rename or drop all but one, or set spark.sql.caseSensitive to true."
        raise QueryError(f"Spark cannot distinguish these columns: {twice}", hint=hint)


def as_table(data: Any, call: str = "run_local()") -> pa.Table:
    match data:
        case pa.Table():
            return data
        case pa.RecordBatch():
            return pa.Table.from_batches([data])
        case pa.RecordBatchReader():
            return data.read_all()
    if type(data).__module__ == "pyarrow._dataset":  # a Dataset or a Scanner
        return data.to_table()
    if type(data).__module__.startswith("pandas."):
        from streamsift.runtime.input import table_of_frame

        return table_of_frame(data)
    if hasattr(data, "__arrow_c_stream__") and not is_spark(data):
        return pa.table(data)
    other = type_name(data)
    raise TypeError(f"{call} takes a pyarrow or pandas table, not {other}; use run() for a Spark DataFrame")


def schema_of(data: Any) -> tuple[pa.Schema, dict[str, Any]]:
    """Return the Arrow schema of a DataFrame, table or schema, and the settings of its Spark session."""
    if not is_spark(data):
        return data if isinstance(data, pa.Schema) else as_table(data).schema, {}
    from streamsift import spark

    return spark.arrow_schema(data.schema), spark.session_settings(data.sparkSession)
