"""Tables of other libraries are inputs of `run_local`, as the documentation lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import streamsift as ss

EVENTS = pa.table({"ts": [1, 2, 3], "kind": ["A", "B", "B"], "id": [7, 7, 8]})
PAIRS = ss.query("PATTERN SEQ(A a, B b) WHERE [id] RETURN a.ts AS first, b.ts AS second")


class Exported:
    """A table of a library that is not installed, such as a Polars DataFrame: all that is known is the protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return EVENTS.__arrow_c_stream__(requested_schema)


TABLES: dict[str, Callable[[], Any]] = {
    "RecordBatch": lambda: EVENTS.to_batches()[0],
    "RecordBatchReader": EVENTS.to_reader,
    "Dataset": lambda: ds.dataset(EVENTS),
    "Scanner": lambda: ds.dataset(EVENTS).scanner(columns=["ts", "kind", "id"]),
    "pandas": EVENTS.to_pandas,
    "DuckDB relation": lambda: duckdb.connect().from_arrow(EVENTS),
    "Arrow PyCapsule": Exported,
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_run_local_takes_a_table(make: Callable[[], Any]) -> None:
    assert PAIRS.run_local(make(), time="ts", type="kind").to_pylist() == [{"first": 1, "second": 2}]
    assert "SEQ" in PAIRS.explain(make(), time="ts", type="kind")
