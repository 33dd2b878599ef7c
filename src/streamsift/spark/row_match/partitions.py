"""Split the sorted rows of a task into tables of whole partitions; refuse a partition that does not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError
from streamsift.runtime.resources import default_limit

TABLE_ROWS, TABLE_BYTES = 1 << 20, 1 << 28  # of a table, unless a single partition is larger
# Memory of the matcher and of its output, in multiples of the size of a partition's rows.
_MEMORY_PER_BYTE = 4


@dataclass(slots=True)
class Partitions:
    """Rows that arrive sorted by the key columns. Yield tables of whole partitions."""

    keys: tuple[str, ...]
    max_bytes: int | None  # of one partition; None for a share of the worker's memory
    arrived: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    start: int = 0  # the row in `arrived` at which the last partition begins
    start_bytes: int = 0

    def tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        limit = self.max_bytes if self.max_bytes is not None else max(default_limit() // _MEMORY_PER_BYTE, 1 << 24)
        last_key: Any = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            key = self._key(batch, batch.num_rows - 1)
            if self.rows and key != last_key:
                offset = self._last_start(batch, last_key)
                self.start, self.start_bytes = self.rows + offset, self.bytes
                if offset and (self.rows >= TABLE_ROWS or self.bytes >= TABLE_BYTES):
                    yield from self._cut(batch, offset)
                    last_key = key
                    continue
            elif not self.rows:
                self.start = self._last_start(batch, None)
            last_key = key
            self.arrived.append(batch)
            self.rows, self.bytes = self.rows + batch.num_rows, self.bytes + batch.nbytes
            if self.bytes - self.start_bytes > limit and self.bytes > limit:
                self._check(limit, key)
            if (self.rows >= TABLE_ROWS or self.bytes >= TABLE_BYTES) and self.start > 0:
                yield from self._flush()
        if self.arrived:
            yield pa.Table.from_batches(self.arrived)

    def _cut(self, batch: pa.RecordBatch, offset: int) -> Iterator[pa.Table]:
        """Yield all rows before the partition that begins inside the batch, and keep the rest."""
        yield pa.Table.from_batches([*self.arrived, batch.slice(0, offset)])
        rest = batch.slice(offset)
        self.arrived, self.rows, self.bytes = [rest], rest.num_rows, rest.nbytes
        self.start = self.start_bytes = 0

    def _flush(self) -> Iterator[pa.Table]:
        """Yield the rows before the last partition, and keep that."""
        table = pa.Table.from_batches(self.arrived)
        yield table.slice(0, self.start)
        self.arrived = table.slice(self.start).to_batches()
        self.rows, self.bytes = sum(b.num_rows for b in self.arrived), sum(b.nbytes for b in self.arrived)
        self.start = self.start_bytes = 0

    def _check(self, limit: int, key: Any) -> None:
        """Raise if the last partition, so far, is larger than the limit."""
        if not self.start:
            size = self.bytes
        else:
            size = pa.Table.from_batches(self.arrived).slice(self.start).nbytes
        if size <= limit:
            return
        count = self.rows - self.start
        named = ", ".join(f"{name} = {value!r}" for name, value in zip(self.keys, key, strict=True))
        whose = f"the partition {named}" if named else "the only partition"
        hint = "partition by more columns, or increase the workers' memory (spark.executor.pyspark.memory)."
        if not named:
            hint = "add PARTITION BY, or increase the workers' memory (spark.executor.pyspark.memory)."
        raise BadInputError(
            f"{whose} is too large: more than {count:,} rows and {size / 1e6:,.0f} MB, and max_partition_bytes is "
            f"{limit:,}\nHint: {hint}"
        )

    def _key(self, batch: pa.RecordBatch, row: int) -> tuple[Any, ...]:
        values = (batch.column(name)[row].as_py() for name in self.keys)
        return tuple("NaN" if isinstance(value, float) and value != value else value for value in values)

    def _last_start(self, batch: pa.RecordBatch, before: Any) -> int:
        """Return the row of a batch at which its last partition begins."""
        length = batch.num_rows
        if self._key(batch, 0) == self._key(batch, length - 1):
            return 0
        changes = np.zeros(length - 1, np.bool_)
        for name in self.keys:
            column = batch.column(name)
            codes = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column, "encode")
            numbers = codes.indices.to_numpy(zero_copy_only=False)
            values = codes.dictionary
            if pa.types.is_floating(values.type):  # -0.0 and 0.0 are one key
                numbers = pc.dictionary_encode(pc.add(column, 0.0), "encode").indices.to_numpy(zero_copy_only=False)
            changes |= numbers[1:] != numbers[:-1]
        places = np.flatnonzero(changes)
        return int(places[-1]) + 1 if places.size else 0
