"""Pack rows of events into one Arrow message per task and bucket of keys, and unpack result messages into rows.

Spark's stateful operators pass rows to Python one by one. With messages these are a few rows per micro-batch, and
events and results stay in columns on the way from the source to the engine and from the engine to the sink.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical.bound import BoundQuery
from streamsift.runtime import tables_of
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.events.bad_rows import BadRows, find_bad_rows
from streamsift.runtime.events.times import ticks_of
from streamsift.spark.columns import EventTime
from streamsift.spark.stream.placing import PlacedBuckets

PACKED = "bucket int, seen timestamp_ltz, bad boolean, message binary"  # in some sessions `timestamp` is another type
_PACKED_TYPES = pa.schema(
    {"bucket": pa.int32(), "seen": pa.timestamp("us", "UTC"), "bad": pa.bool_(), "message": pa.binary()}
)
ROWS_PER_MESSAGE = 1 << 20
ROWS_PER_RESULT = 1 << 16
COPY = {"streamsift.copy": "1"}  # metadata of a message

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Packer:
    """Pack the rows of one task: the query's columns; for each placement, True if the row can affect a result, and the
    hash of its keys.

    An event is packed for each placement that can use it. All but the first are marked as copies. The first task adds
    an empty message for each bucket, so that in every micro-batch with data each bucket sees the watermark and reports
    the size of its state.
    """

    query: BoundQuery
    time: EventTime
    buckets: PlacedBuckets

    def __call__(self, batches: Batches) -> Batches:
        buckets = self.buckets.numbers()
        for table in tables_of(batches, ROWS_PER_MESSAGE):
            if table.num_rows:
                yield pa.RecordBatch.from_pylist(list(self._messages(table, buckets)), _PACKED_TYPES)
        context = TaskContext.get()
        if context is None or context.partitionId() == 0:
            empty = [{"bucket": bucket, "bad": False} for numbers in buckets for bucket in numbers]
            yield pa.RecordBatch.from_pylist(empty, _PACKED_TYPES)

    def _messages(self, table: pa.Table, buckets: tuple[tuple[int, ...], ...]) -> Iterator[dict[str, Any]]:
        """Yield a description of bad rows, the maximum time, and the events of each bucket."""
        schema = self.query.schema
        # By position. Timestamps arrive in the session's time zone; the cast keeps the instants.
        events = table.select(range(len(schema))).rename_columns(schema.names).cast(schema)
        bad = find_bad_rows(self.query, events)
        if bad is not None:
            described = json.dumps([bad[1].count, bad[1].examples]).encode()
            yield {"bucket": buckets[0][0], "bad": True, "message": described}
            table, events = (each.filter(pa.array(~bad[0])) for each in (table, events))
        if not events.num_rows:
            return
        ticks = ticks_of(events.column(self.query.binding.time).combine_chunks(), self.query.binding)
        yield {"bucket": buckets[0][0], "seen": self.time.seen(ticks.max().item()), "bad": False}
        is_packed = np.zeros(events.num_rows, np.bool_)
        for place, numbers in enumerate(buckets):
            matters, hashes = (table.column(len(schema) + 2 * place + nth).to_numpy() for nth in (0, 1))
            for is_copy in (False, True):
                kept = np.flatnonzero(matters & (is_packed == is_copy))
                for number, part in _of_buckets(events, kept, np.mod(hashes, len(numbers))):
                    yield {"bucket": numbers[number], "bad": False, "message": message_of(_marked(part, is_copy))}
            is_packed |= matters


def _of_buckets(events: pa.Table, kept: Int64, buckets: Int64) -> Iterator[tuple[int, pa.Table]]:
    """Yield the kept rows of each bucket."""
    order = kept[np.argsort(buckets[kept], kind="stable")]
    events = events.take(pa.array(order))
    used, starts = np.unique(buckets[order], return_index=True)
    ends = [*starts[1:], order.size]  # one too many if no row is kept
    for number, start, end in zip(used.tolist(), starts, ends, strict=False):
        yield number, events.slice(start, end - start)


def _marked(events: pa.Table, is_copy: bool) -> pa.Table:
    return events.replace_schema_metadata(COPY) if is_copy else events


def is_copy(events: pa.Table) -> bool:
    """Return True if the events were also packed for an earlier placement, which counts those that are late."""
    return bool(events.schema.metadata) and set(COPY) <= {key.decode() for key in events.schema.metadata}


def bad_rows_in(messages: list[bytes]) -> BadRows:
    """Combine the reports of all tasks on bad rows."""
    reports = [json.loads(message) for message in messages]
    examples = [example for _, some in reports for example in some]
    return BadRows(sum(count for count, _ in reports), tuple(examples[:5]))


def message_of(table: pa.Table) -> bytes:
    """Serialize a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def table_of(message: bytes) -> pa.Table:
    return pa.ipc.open_stream(message).read_all()


def messages_of(results: DataFrame, query: str) -> DataFrame:
    """Return the messages of one query."""
    return results.where(F.col("query") == query).select("message")


def unpack(batches: Batches) -> Batches:
    """Yield the rows of result messages, which are in the only column."""
    for batch in batches:
        for message in pc.drop_null(batch.column(0)):
            yield from pa.ipc.open_stream(message.as_buffer())
