"""Pack rows of events into one Arrow message per task and bucket of keys, and unpack result messages into rows.

A stateful operator of Spark hands each row to Python on its own. Messages make that a few rows per micro-batch: the
events in them stay columns from the source to the engine, and the results from the engine to the sink.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical.bound import BoundQuery
from streamsift.runtime import tables_of
from streamsift.runtime.events.bad_rows import BadRows, find_bad_rows
from streamsift.runtime.events.times import ticks_of
from streamsift.spark.columns import EventTime

PACKED = "bucket int, seen timestamp_ltz, bad boolean, message binary"  # a session may mean another type by `timestamp`
ROWS_PER_MESSAGE = 1 << 20
EVENT_TIME = pa.timestamp("us", "UTC")

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Packer:
    """Packs the rows of one task: the query's columns, then whether a row can matter, then the number of its bucket.

    A bucket is called by one of `buckets`. The first task also has an empty message for each of them: so every bucket
    is told of the time in every micro-batch that has data, and its state is counted.
    """

    query: BoundQuery
    time: EventTime
    buckets: tuple[int, ...]

    def __call__(self, batches: Batches) -> Batches:
        for table in tables_of(batches, ROWS_PER_MESSAGE):
            if table.num_rows:
                yield self._packed(table)
        context = TaskContext.get()
        if context is None or context.partitionId() == 0:
            yield _messages([(bucket, None, False, None) for bucket in self.buckets])

    def _packed(self, table: pa.Table) -> pa.RecordBatch:
        schema = self.query.schema
        # By position, and with the session's time zone in the arriving type: the same instants are meant.
        events = table.select(range(len(schema))).rename_columns(schema.names).cast(schema)
        matters = table.column(len(schema)).combine_chunks().to_numpy(zero_copy_only=False).astype(np.bool_)
        numbers = table.column(len(schema) + 1).combine_chunks().to_numpy(zero_copy_only=False)
        packed: list[tuple[int, int | None, bool, bytes | None]] = []
        bad = find_bad_rows(self.query, events)
        if bad is not None:
            described = json.dumps([bad[1].count, bad[1].examples]).encode()
            packed.append((self.buckets[0], None, True, described))
            good = pa.array(~bad[0])
            events, matters, numbers = events.filter(good), matters[~bad[0]], numbers[~bad[0]]
        if events.num_rows:
            ticks = ticks_of(events.column(self.query.binding.time).combine_chunks(), self.query.binding)
            packed.append((self.buckets[0], self.time.seen(ticks.max().item()), False, None))
            packed += self._by_bucket(events, matters, numbers)
        return _messages(packed)

    def _by_bucket(
        self, events: pa.Table, matters: np.ndarray, numbers: np.ndarray
    ) -> Iterator[tuple[int, None, bool, bytes]]:
        kept = np.flatnonzero(matters)
        if not kept.size:
            return
        order = kept[np.argsort(numbers[kept], kind="stable")]
        events = events.take(pa.array(order))
        ends = np.flatnonzero(np.diff(numbers[order], append=-1)) + 1
        start = 0
        for end in ends.tolist():
            yield self.buckets[int(numbers[order[start]])], None, False, message_of(events.slice(start, end - start))
            start = end


def _messages(rows: list[tuple[int, int | None, bool, bytes | None]]) -> pa.RecordBatch:
    buckets, seen, bad, messages = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = [
        pa.array(buckets, pa.int32()),
        pa.array(seen, pa.int64()).cast(EVENT_TIME),
        pa.array(bad, pa.bool_()),
        pa.array(messages, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, ["bucket", "seen", "bad", "message"])


def bad_rows_in(messages: list[bytes]) -> BadRows:
    """Add up what all tasks say of rows that cannot be used."""
    reports = [json.loads(message) for message in messages]
    examples = [example for _, some in reports for example in some]
    return BadRows(sum(count for count, _ in reports), tuple(examples[:5]))


def message_of(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def table_of(message: bytes) -> pa.Table:
    return pa.ipc.open_stream(message).read_all()


def messages_of(results: DataFrame, query: str) -> DataFrame:
    """Return the messages of one query, among those of several."""
    return results.where(F.col("query") == query).select("message")


def unpack(batches: Batches) -> Batches:
    """Yield the rows in result messages, which are the only column."""
    for batch in batches:
        for message in pc.drop_null(batch.column(0)):
            yield from pa.ipc.open_stream(message.as_buffer())
