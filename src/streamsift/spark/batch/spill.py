"""Record batches of a task in, tables of bounded size out: whole stops each (`spark/distribute/sharding.py`), none in two tables.

A task with no more events than a table may have is one table. Those of a larger one wait on disk, in piles by a hash of
their stops, and come back a few piles at a time; a pile that is too large is divided once more. Only the events of one
stop must fit into memory.
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

from streamsift.spark.batch.memory import gathered, no_memory

MOST_ROWS, MOST_BYTES = 1 << 20, 1 << 28  # of a table, unless a single stop has more
PILES_BITS = 6
_DEALT_ROWS, _DEALT_BYTES = 1 << 18, 1 << 25  # that are put on piles at a time
_DEEPEST = 64 // PILES_BITS
_ODD = np.uint64(0x9E3779B97F4A7C15)  # whose products have their bits mixed, the upper ones most
_TEMPORARY = "SPARK_LOCAL_DIRS"  # where Spark's own files are, on a cluster


def tables(batches: Iterable[pa.RecordBatch], stop: int, keys: Sequence[int]) -> Iterator[pa.Table]:
    """All rows of a task. `stop` is the column of stops, `keys` are those that an error should show."""
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    try:
        yield from _tables(counted(), stop, keys, 0)
    except (MemoryError, pa.ArrowMemoryError) as error:
        raise no_memory(rows) from error


def _tables(batches: Iterable[pa.RecordBatch], stop: int, keys: Sequence[int], depth: int) -> Iterator[pa.Table]:
    arriving = iter(batches)
    first = next(_gatherings(arriving, MOST_ROWS, MOST_BYTES), None)
    following = None if first is None else next(arriving, None)
    if first is None or following is None:
        if first is not None:
            yield first
        return
    with TemporaryFile(dir=_folder()) as file:
        piles = _piled(chain(first.to_batches(), [following], arriving), file, stop, depth)
        del first, following
        yield from _unpiled(piles, file, stop, keys, depth)


def _gatherings(batches: Iterator[pa.RecordBatch], most_rows: int, most_bytes: int) -> Iterator[pa.Table]:
    """The batches, put together up to about these sizes."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= most_rows or size >= most_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


@dataclass(slots=True)
class _Pile:
    """Rows in a file: where their pieces are, how many they are, and the stops that they lie between."""

    pieces: list[tuple[int, int]] = field(default_factory=list)  # where each begins, and its length
    rows: int = 0
    bytes: int = 0
    lowest: int = np.iinfo(np.int64).max
    highest: int = np.iinfo(np.int64).min

    @property
    def is_too_large(self) -> bool:
        return self.rows > MOST_ROWS or self.bytes > MOST_BYTES

    def with_pile(self, other: _Pile) -> _Pile:
        return _Pile([*self.pieces, *other.pieces], self.rows + other.rows, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class _Piles:
    schema: pa.Schema
    piles: list[_Pile]

    def batches(self, pile: _Pile, file: IO[bytes]) -> Iterator[pa.RecordBatch]:
        for begin, length in pile.pieces:
            piece = os.pread(file.fileno(), length, begin)
            yield pa.ipc.read_record_batch(pa.py_buffer(piece), self.schema)


def _piled(batches: Iterator[pa.RecordBatch], file: IO[bytes], stop: int, depth: int) -> _Piles:
    piles = [_Pile() for _ in range(1 << PILES_BITS)]
    schema, end = pa.schema([]), 0
    for table in _gatherings(batches, _DEALT_ROWS, _DEALT_BYTES):
        schema = table.schema
        stops = table.column(stop).combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
        shift = np.uint64(64 - PILES_BITS * (depth + 1))
        number = (stops.view(np.uint64) * _ODD >> shift).astype(np.uint8) & np.uint8((1 << PILES_BITS) - 1)
        order = np.argsort(number, kind="stable")
        ends = np.cumsum(np.bincount(number, minlength=len(piles)))
        (sorted_rows,) = table.take(pa.array(order)).combine_chunks().to_batches()
        for pile, low, high in zip(piles, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            if low == high:
                continue
            written = file.write(sorted_rows.slice(low, high - low).serialize())
            here = stops[order[low:high]]
            pile.pieces.append((end, written))
            pile.rows, pile.bytes, end = pile.rows + high - low, pile.bytes + written, end + written
            pile.lowest, pile.highest = min(pile.lowest, int(here.min())), max(pile.highest, int(here.max()))
    file.flush()
    return _Piles(schema, piles)


def _unpiled(piles: _Piles, file: IO[bytes], stop: int, keys: Sequence[int], depth: int) -> Iterator[pa.Table]:
    """Small piles together; a large one divided again, or, of a single stop, as it is."""
    together = _Pile()
    for pile in piles.piles:
        if pile.is_too_large and pile.lowest < pile.highest and depth + 1 < _DEEPEST:
            yield from _tables(piles.batches(pile, file), stop, keys, depth + 1)
        elif pile.is_too_large:
            yield gathered(piles.batches(pile, file), keys)
        elif together.with_pile(pile).is_too_large:
            yield pa.Table.from_batches(piles.batches(together, file))
            together = pile
        else:
            together = together.with_pile(pile)
    if together.rows:
        yield pa.Table.from_batches(piles.batches(together, file))


def _folder() -> str | None:
    """A folder for large files that are soon gone; None: the system's."""
    return os.environ[_TEMPORARY].split(",")[0] if os.environ.get(_TEMPORARY) else None
