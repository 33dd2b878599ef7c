"""Reduce result rows to their number and a hash that does not depend on their order.

`engines/flink/Answer.java` computes the same hash, so that engines in other processes can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

Words = np.ndarray[tuple[int], np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The number of rows and their hash. Equal rows in any order give equal answers; others collide 1 in 2^64 times."""

    rows: int
    hash: int


def answer_of(columns: Sequence[np.ndarray | Words]) -> Answer:
    """Return the answer of columns: a row's hash covers its values in order, and the hashes of all rows are summed."""
    rows = len(columns[0])
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        hashes = _mixed(hashes + column.astype(np.uint64) + np.uint64(1))
    return Answer(rows, int(hashes.sum()) if rows else 0)


def answer_of_table(table: pa.Table, names: Sequence[str]) -> Answer:
    """Return the answer of a table; list columns are groups, whose elements can be in any order."""
    columns = [table.column(name).combine_chunks() for name in names]
    return answer_of([_group_sums(each) if _is_list(each.type) else np.asarray(each) for each in columns])


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _group_sums(groups: pa.ListArray) -> Words:
    """Return the sum of the elements' hashes per group; an event is represented by its column `n`."""
    elements = groups.flatten()
    if pa.types.is_struct(elements.type):
        elements = elements.field("n")
    hashes = _mixed(np.asarray(elements).astype(np.uint64) + np.uint64(1))
    until = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    offsets = np.asarray(groups.offsets) - groups.offsets[0].as_py()
    return until[offsets[1:]] - until[offsets[:-1]]


def _mixed(values: Words) -> Words:
    """Apply the finalizer of splitmix64; unsigned arithmetic is meant to wrap."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
