"""Result rows as columns of integers in, their number and a hash that does not depend on their order out.

`engines/flink/Answer.java` computes the same, so that engines which share nothing can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

Words = np.ndarray[tuple[int], np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Two answers with the same rows, in any order, are equal; others are not, but for one chance in 2^64."""

    rows: int
    hash: int


def answer_of(columns: Sequence[np.ndarray | Words]) -> Answer:
    """A row's hash goes through its values in order; the hashes of all rows are added up."""
    rows = len(columns[0])
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        hashes = _mixed(hashes + column.astype(np.uint64) + np.uint64(1))
    return Answer(rows, int(hashes.sum()) if rows else 0)


def answer_of_table(table: pa.Table, names: Sequence[str]) -> Answer:
    """Columns of lists are groups: their elements in any order are the same group."""
    columns = [table.column(name).combine_chunks() for name in names]
    return answer_of([_group_sums(each) if _is_list(each.type) else np.asarray(each) for each in columns])


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _group_sums(groups: pa.ListArray) -> Words:
    """For each group the sum of its elements' hashes. An element that is an event counts by its column `n`."""
    elements = groups.flatten()
    if pa.types.is_struct(elements.type):
        elements = elements.field("n")
    hashes = _mixed(np.asarray(elements).astype(np.uint64) + np.uint64(1))
    until = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    offsets = np.asarray(groups.offsets) - groups.offsets[0].as_py()
    return until[offsets[1:]] - until[offsets[:-1]]


def _mixed(values: Words) -> Words:
    """The finalizer of splitmix64; unsigned arithmetic wraps, as it should."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
