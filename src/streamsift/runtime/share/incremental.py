"""Update the totals of queries that share a prefix tree batch by batch: `IncrementalTotals` for several queries.

The state is the two stacks of each key, which all queries share; it is kept in memory only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import Alternative, Plan
from streamsift.physical.share import SharedTree
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.count import (
    SPARE_KEYS,
    AggregateInput,
    Visit,
    WindowKeys,
    check_finite,
    in_times,
    key_rows,
    result_batch,
)
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.share.prefixes import counted_tree
from streamsift.runtime.state import KeyedVectors


class SharedTotals:
    """The totals of the queries of a tree, which have a time window and no UPDATE. Raises NotIncremental."""

    def __init__(self, shared: SharedTree, plans: Mapping[str, Plan]) -> None:
        self.shared, self._plans = shared, {name: plans[name] for name in shared.members}
        self._steps = Alternative(shared.query, tuple(node.step for node in shared.nodes), ())
        self._no_events = self._input(shared.query.schema.empty_table())
        self.reset()

    def reset(self) -> None:
        """Drop all state."""
        query = self.shared.query
        self._groups = KeyedVectors(pa.schema([query.schema.field(name) for name in query.group_by]), 0, 0)
        self._keys = WindowKeys(counted_tree(self.shared), self._no_events)
        self._max_keys = SPARE_KEYS

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes

    def _input(self, table: pa.Table) -> AggregateInput:
        return AggregateInput.of(self.shared.query, (self._steps,), prepare(self.shared.query, table), by_schema=True)

    def add(self, table: pa.Table, *, shows: bool = True) -> dict[str, pa.RecordBatch | None]:
        """Add events that are later than all earlier ones; return the new result rows of each query, if `shows`."""
        if not table.num_rows:
            return {}
        given = self._input(table)
        if given.events.width < 0:
            return {}
        check_finite(given.events)
        numbers = np.full(given.first_of_group.size, -1, np.int64)
        present = distinct(given.group_of[given.group_of >= 0])
        rows = key_rows(given.events, given.first_of_group[present], self.shared.query.group_by)
        numbers[present] = self._groups.numbers(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap; the doubles detect it
            given, times = in_times(given)
            counted = self._keys.count_all(given, numbers, (0, times.size - 1), times, Visit.NEW)
        results = {}
        for name, node in self.shared.terminals.items() if shows else ():
            timeline = counted[node].at(np.argsort(counted[node].group, kind="stable"))
            decoders = [given.decoders[number] for number in self.shared.aggregates[name]]
            own = replace(given, decoders=decoders)
            results[name] = result_batch(self._plans[name], own, timeline, keys_of=self._keys_of)
        return results

    def _keys_of(self, groups: Int32) -> list[pa.Array]:
        keys = self._groups.at(groups.astype(np.int64))
        return [keys.column(name).combine_chunks() for name in self.shared.query.group_by]

    def evict_keys(self) -> bool:
        """If most keys have expired, reset and return True: see `IncrementalTotals.evict_keys`."""
        if self._keys.keys.count > self._max_keys:
            self._max_keys = 2 * self._keys.live() + SPARE_KEYS
        if must_reset := self._keys.keys.count > self._max_keys:
            most = self._max_keys
            self.reset()
            self._max_keys = most
        return must_reset
