"""Merge the rows that buckets have computed for the same tick, in the micro-batch in which it becomes final.

Contract: all buckets return their rows of a tick in the same micro-batch. With data, every bucket gets a message and
advances to the same time. Without data, only the buckets whose timers have expired are called, and they advance to the
last time for which all timers have expired (`EventTime.expired`), so that no bucket can still have rows of a tick that
others return (tests/spark/stream/test_stateful.py). A task of Spark then reads the rows of all buckets, after the
shuffle; it keeps no state, and a retried micro-batch returns the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.physical import Plan
from streamsift.runtime.stream import merged_rows
from streamsift.spark.stream.packing import ROWS_PER_RESULT, message_of, table_of
from streamsift.spark.workers import for_workers

Batches = Iterator[pa.RecordBatch]


def merged(results: DataFrame, plans: Mapping[str, Plan], are_all: bool, tasks: int, schema: str) -> DataFrame:
    """Merge the results of the plans, each in one task, and return the other results as they are.

    `are_all` says that there are no others.
    """
    if not plans:
        return results
    if are_all:
        gathered = results.repartition(1)
    else:
        is_merged = F.col("query").isin(*plans)
        task = F.when(is_merged, F.col("query")).otherwise(F.xxhash64("message").cast("string"))
        gathered = results.repartition(tasks, task)
    return gathered.mapInArrow(for_workers(Merger(dict(plans))), schema)


@dataclass(frozen=True, slots=True)
class Merger:
    """Merge the results of a task."""

    plans: dict[str, Plan]

    def __call__(self, batches: Batches) -> Batches:
        parts: dict[str, list[pa.Table]] = {}
        schema = None
        for batch in batches:
            schema, query = batch.schema, batch.column("query")
            is_merged = pc.fill_null(pc.is_in(query, pa.array(list(self.plans), query.type)), False)
            for name, message in zip(*(batch.filter(is_merged).column(c) for c in ("query", "message")), strict=True):
                parts.setdefault(name.as_py(), []).append(table_of(message.as_py()))
            yield batch.filter(pc.invert(is_merged))
        for name, tables in parts.items():
            assert schema is not None
            rows = merged_rows(self.plans[name], tables)
            for start in range(0, rows.num_rows, ROWS_PER_RESULT):
                part = rows.slice(start, ROWS_PER_RESULT)
                values = {"query": name, "message": message_of(part), "matches": part.num_rows}
                row = [dict.fromkeys(schema.names, 0) | {"all_buckets": None} | values]
                yield pa.RecordBatch.from_pylist(row, schema)
