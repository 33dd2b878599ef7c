"""Pack rows of events into one Arrow message per task and bucket of keys, and unpack result messages into rows.

Spark's stateful operators pass rows to Python one by one. With messages these are a few rows per micro-batch, and
events and results stay in columns on the way from the source to the engine and from the engine to the sink.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
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
from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.events.bad_rows import BadRows, find_bad_rows
from streamsift.runtime.events.times import ticks_of
from streamsift.spark.columns import EventTime
from streamsift.spark.stream.placing import PlacedBuckets

PACKED = "bucket int, seen timestamp_ltz, bad boolean, message binary"  # in some sessions `timestamp` is another type
_PACKED_TYPES = pa.schema(
    {"bucket": pa.int32(), "seen": pa.timestamp("us", "UTC"), "bad": pa.bool_(), "message": pa.binary()}
)
ROWS_PER_MESSAGE = 1 << 20
BYTES_PER_BATCH = 1 << 28  # of contents; a batch may have one message more
ROWS_PER_RESULT = 1 << 16
COPY = {"streamsift.copy": "1"}  # metadata of a message

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Message:
    """A row that is sent to a bucket: events, a description of bad rows, the maximum time, or a mere call."""

    bucket: int
    seen: Any = None  # the maximum time, as Spark's watermark expects it
    is_bad: bool = False
    content: pa.Table | bytes | None = None


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
                yield from _batches_of(self._messages(table, buckets))
        context = TaskContext.get()
        if context is None or context.partitionId() == 0:
            yield from _batches_of(Message(bucket) for numbers in buckets for bucket in numbers)

    def _messages(self, table: pa.Table, buckets: tuple[tuple[int, ...], ...]) -> Iterator[Message]:
        """Yield a description of bad rows, the maximum time, and the events of each bucket."""
        schema = self.query.schema
        # By position. Timestamps arrive in the session's time zone; the cast keeps the instants.
        events = table.select(range(len(schema))).rename_columns(schema.names).cast(schema)
        bad = find_bad_rows(self.query, events)
        if bad is not None:
            described = json.dumps([bad[1].count, bad[1].examples]).encode()
            yield Message(buckets[0][0], is_bad=True, content=described)
            table, events = (each.filter(pa.array(~bad[0])) for each in (table, events))
        if not events.num_rows:
            return
        ticks = ticks_of(events.column(self.query.binding.time).combine_chunks(), self.query.binding)
        yield Message(buckets[0][0], seen=self.time.seen(ticks.max().item()))
        is_packed = np.zeros(events.num_rows, np.bool_)
        for place, numbers in enumerate(buckets):
            matters, hashes = (table.column(len(schema) + 2 * place + nth).to_numpy() for nth in (0, 1))
            for is_copy in (False, True)[: 1 + place]:
                kept = matters & (is_packed == is_copy)
                for number, part in _of_buckets(events, kept, hashes, len(numbers)):
                    yield Message(numbers[number], content=_marked(part, is_copy))
            is_packed |= matters


def _of_buckets(events: pa.Table, kept: Bool, hashes: Int64, count: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield the kept rows of each bucket that has some."""
    # Small integers, because NumPy sorts up to 16 bits by radix.
    buckets = np.mod(hashes, count).astype(np.uint16 if count <= 1 << 16 else np.int64)
    if not kept.all():
        rows = np.flatnonzero(kept)
        buckets = buckets[rows]
        events = events.take(pa.array(rows[np.argsort(buckets, kind="stable")]))
    elif count > 1:
        events = events.take(pa.array(np.argsort(buckets, kind="stable")))
    start = 0
    for bucket, size in enumerate(np.bincount(buckets, minlength=count).tolist()):
        if size:
            yield bucket, events.slice(start, size)
        start += size


def _marked(events: pa.Table, is_copy: bool) -> pa.Table:
    return events.replace_schema_metadata(COPY) if is_copy else events


def is_copy(events: pa.Table) -> bool:
    """Return True if the events were also packed for an earlier placement, which counts those that are late."""
    return bool(events.schema.metadata) and set(COPY) <= {key.decode() for key in events.schema.metadata}


def _batches_of(messages: Iterable[Message]) -> Batches:
    """Yield batches of messages. Their contents are written into one buffer, which is not copied."""
    written: list[Message] = []
    sink, ends = pa.BufferOutputStream(), [0]
    for message in messages:
        if isinstance(message.content, pa.Table):
            _write(message.content, sink)
        elif message.content is not None:
            sink.write(message.content)
        written.append(message)
        ends.append(sink.tell())
        if ends[-1] > BYTES_PER_BATCH:
            yield _batch(written, ends, sink.getvalue())
            written, sink, ends = [], pa.BufferOutputStream(), [0]
    if written:
        yield _batch(written, ends, sink.getvalue())


def _batch(messages: list[Message], ends: list[int], contents: pa.Buffer) -> pa.RecordBatch:
    present = np.packbits([message.content is not None for message in messages], bitorder="little")
    buffers = [pa.py_buffer(present), pa.py_buffer(np.array(ends, np.int32)), contents]
    columns = [
        pa.array([message.bucket for message in messages], pa.int32()),
        pa.array([message.seen for message in messages], pa.timestamp("us", "UTC")),
        pa.array([message.is_bad for message in messages], pa.bool_()),
        pa.Array.from_buffers(pa.binary(), len(messages), buffers),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED_TYPES)


def bad_rows_in(messages: list[bytes]) -> BadRows:
    """Combine the reports of all tasks on bad rows."""
    reports = [json.loads(message) for message in messages]
    examples = [example for _, some in reports for example in some]
    return BadRows(sum(count for count, _ in reports), tuple(examples[:5]))


def message_of(table: pa.Table) -> bytes:
    """Serialize a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    _write(table, sink)
    return sink.getvalue().to_pybytes()


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


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
