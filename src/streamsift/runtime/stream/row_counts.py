"""Count the rows of each partition since the beginning: ticks of UPDATE n EVENTS are after every n-th row.

Rows are evicted in multiples of n, so those that are held always begin with the first row after a tick.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import positions_in_group
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.expressions.columns import contiguous
from streamsift.runtime.state import EventStore, KeyedVectors, the_only_key


class RowCounts:
    def __init__(self, schema: pa.Schema, keys: tuple[str, ...], step: int) -> None:
        self.keys, self.step = keys, step
        self.vectors = KeyedVectors(pa.schema([schema.field(key) for key in keys]), whole=1, real=0)

    def add(self, rows: pa.Table) -> None:
        """Count rows that came."""
        groups, count = self._partitions(rows)
        more = np.bincount(groups[groups >= 0], minlength=count)
        present = np.flatnonzero(more)
        numbers = self._numbers(rows, groups, count)[present]
        whole = self.vectors.whole[numbers] + more[present, None]
        self.vectors.set(numbers, whole, self.vectors.real[numbers])

    def needed(self, store: EventStore, rows: int) -> Bool:
        """Return the last `rows` rows of each partition, and those since the tick before them."""
        table = store.events.whole()
        groups, count = self._partitions(table)
        known = groups >= 0
        had = self.vectors.whole[self._numbers(table, groups, count), 0]
        held = np.bincount(groups[known], minlength=count)
        first = np.maximum(had - rows, 0) // self.step * self.step - (had - held)  # by position among those held
        found: Bool = known & (positions_in_group(groups, count) >= first[groups])
        return found

    def _partitions(self, rows: pa.Table) -> tuple[Int32, int]:
        if not self.keys:
            return np.zeros(rows.num_rows, np.int32), 1
        (groups,), count = group_codes([[contiguous(rows.column(key))] for key in self.keys])
        return groups, max(count, 1)

    def _numbers(self, rows: pa.Table, groups: Int32, count: int) -> Int64:
        """Return the number of each partition that has a row; 0 for others."""
        found = np.zeros(count, np.int64)
        known = np.flatnonzero(groups >= 0)
        present, first = np.unique(groups[known], return_index=True)
        if present.size:
            keys = rows.select(self.keys).take(pa.array(known[first])) if self.keys else the_only_key(1)
            found[present] = self.vectors.numbers(keys)
        return found
