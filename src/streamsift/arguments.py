"""What callers hand over in, the same as Arrow tables and checked names out, or an error that says what is wanted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from streamsift.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import Observation

BadRowsPolicy = Literal["fail", "drop"]


def is_spark(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.sql")


def type_name(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"


def check_streaming(observation: Observation | None) -> None:
    if observation is not None:
        raise QueryError("observation= on a stream", hint="a stream's counts are in its progress: see ss.metrics().")


def check_batch(lateness: str | float | None) -> None:
    if lateness is not None:
        raise QueryError("lateness= on a batch", hint="no row of it is late: leave it out.")


def check_policy(bad_rows: str) -> None:
    if bad_rows not in ("fail", "drop"):
        raise QueryError(f"bad_rows={bad_rows!r}", hint='it is "fail" or "drop".')


def check_names(**names: Any) -> None:
    for role, name in names.items():
        if not isinstance(name, str) and (name is not None or role == "time"):
            raise TypeError(f"`{role}` is the name of a column, not {type_name(name)}")


def check_columns(names: list[str]) -> None:
    """Spark cannot read `x` where there is an `X` too, unless it minds case."""
    counts = Counter(name.lower() for name in names)
    twice = ", ".join(f"`{name}`" for name in names if counts[name.lower()] > 1)
    if twice:
        raise QueryError(f"Spark cannot tell these columns apart: {twice}", hint="rename or drop all but one.")


def as_table(data: Any) -> pa.Table:
    match data:
        case pa.Table():
            return data
        case pa.RecordBatch():
            return pa.Table.from_batches([data])
        case pa.RecordBatchReader():
            return data.read_all()
    if type(data).__module__.startswith("pandas."):
        from streamsift.runtime.frames import table_of_frame

        return table_of_frame(data)
    if hasattr(data, "__arrow_c_stream__") and not is_spark(data):
        return pa.table(data)
    raise TypeError(
        f"run_local() takes a pyarrow or pandas table, not {type_name(data)}; run() takes a Spark DataFrame"
    )
