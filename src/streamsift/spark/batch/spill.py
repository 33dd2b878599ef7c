"""Split the rows of a task into tables of bounded size, each with whole shards (`distribute/routing.py`).

A small task is one table. A larger task is hashed by shard into spill partitions on disk and read back a few partitions
at a time; a partition that is too large is split again. Only the events of one shard must fit in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.runtime import tables_of
from streamsift.spark.batch.memory import gathered

MAX_ROWS, MAX_BYTES = 1 << 20, 1 << 28  # of a table, unless a single shard is larger
_PARTITION_BITS = 6
_SPILLED_ROWS, _SPILLED_BYTES = 1 << 18, 1 << 25  # written to spill partitions at a time
_MAX_DEPTH = 64 // _PARTITION_BITS
_ODD = np.uint64(0x9E3779B97F4A7C15)  # multiplying by it mixes bits, the upper ones most
_TEMPORARY = "SPARK_LOCAL_DIRS"  # Spark's local directories on a cluster


def tables(batches: Iterable[pa.RecordBatch], shard: int, keys: Sequence[int]) -> Iterator[pa.Table]:
    """Yield all rows of a task. `shard` is the column of shards; `keys` are the columns that an error names."""
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    try:
        yield from _tables(counted(), shard, keys, 0)
    except (MemoryError, pa.ArrowMemoryError) as error:
        hint = "increase spark.executor.pyspark.memory, or run fewer workers per executor (spark.executor.cores)."
        raise BadInputError(
            f"a Python worker ran out of memory after {rows:,} events of its task\nHint: {hint}"
        ) from error


def _tables(batches: Iterator[pa.RecordBatch], shard: int, keys: Sequence[int], depth: int) -> Iterator[pa.Table]:
    first = next(tables_of(batches, MAX_ROWS, MAX_BYTES), None)
    if first is None:
        return
    following = next(batches, None)
    if following is None:
        yield first
        return
    folder = os.environ.get(_TEMPORARY, "").split(",")[0] or None  # None: the system default
    with TemporaryFile(dir=folder) as file:
        partitions = _spilled(chain(first.to_batches(), [following], batches), file, shard, depth)
        del first, following
        yield from _read_back(partitions, shard, keys, depth)


@dataclass(slots=True)
class _SpillPartition:
    """Rows in a file: the positions of their pieces, their number, and the range of their shards."""

    file: IO[bytes]
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    pieces: list[tuple[int, int]] = field(default_factory=list)  # offset and length of each
    rows: int = 0
    bytes: int = 0
    lowest: int = np.iinfo(np.int64).max
    highest: int = np.iinfo(np.int64).min

    @property
    def is_too_large(self) -> bool:
        return self.rows > MAX_ROWS or self.bytes > MAX_BYTES

    def write(self, piece: pa.RecordBatch, shards: np.ndarray) -> None:
        begin = self.file.tell()
        written = self.file.write(piece.serialize())
        self.schema = piece.schema
        self.pieces.append((begin, written))
        self.rows, self.bytes = self.rows + piece.num_rows, self.bytes + written
        self.lowest, self.highest = min(self.lowest, int(shards.min())), max(self.highest, int(shards.max()))

    def with_partition(self, other: _SpillPartition) -> _SpillPartition:
        pieces = [*self.pieces, *other.pieces]
        return _SpillPartition(self.file, other.schema, pieces, self.rows + other.rows, self.bytes + other.bytes)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for begin, length in self.pieces:
            piece = os.pread(self.file.fileno(), length, begin)
            yield pa.ipc.read_record_batch(pa.py_buffer(piece), self.schema)


def _spilled(batches: Iterator[pa.RecordBatch], file: IO[bytes], shard: int, depth: int) -> list[_SpillPartition]:
    partitions = [_SpillPartition(file) for _ in range(1 << _PARTITION_BITS)]
    shift, mask = np.uint64(64 - _PARTITION_BITS * (depth + 1)), np.uint8((1 << _PARTITION_BITS) - 1)
    for table in tables_of(batches, _SPILLED_ROWS, _SPILLED_BYTES):
        shards = table.column(shard).combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
        partition_of = (shards.view(np.uint64) * _ODD >> shift).astype(np.uint8) & mask
        order = np.argsort(partition_of, kind="stable")
        ends = np.cumsum(np.bincount(partition_of, minlength=len(partitions)))
        (sorted_rows,) = table.take(pa.array(order)).combine_chunks().to_batches()
        for partition, low, high in zip(partitions, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            if low < high:
                partition.write(sorted_rows.slice(low, high - low), shards[order[low:high]])
    file.flush()
    return partitions


def _read_back(partitions: list[_SpillPartition], shard: int, keys: Sequence[int], depth: int) -> Iterator[pa.Table]:
    """Yield small partitions together. Split a large partition again, unless it has only one shard."""
    together = _SpillPartition(partitions[0].file)
    for partition in partitions:
        if partition.is_too_large and partition.lowest < partition.highest and depth + 1 < _MAX_DEPTH:
            yield from _tables(partition.batches(), shard, keys, depth + 1)
        elif partition.is_too_large:
            yield gathered(partition.batches(), keys)
        elif together.with_partition(partition).is_too_large:
            yield pa.Table.from_batches(together.batches())
            together = partition
        elif partition.rows:
            together = together.with_partition(partition)
    if together.rows:
        yield pa.Table.from_batches(together.batches())
