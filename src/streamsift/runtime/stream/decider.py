"""Define the interface of one query to the engine: the rows that become final, and the events to retain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.watermark import Tick, WatermarkStep

MAX_SHARE = 0.5  # of the rows in the store: to find more of them by key costs more than to take all

# Rows, and the steps that finalizing events are bound to; None: any row may be one.
Finalizing = tuple[slice | None, BoundQuery, tuple[Step, ...]]


class Decider(ABC):
    schema: pa.Schema
    keys: tuple[str, ...] = ()  # columns by which it finds rows in the store

    @property
    def follows(self) -> bool:
        """Return True if the final rows depend on the events in the store alone."""
        return True

    @property
    def nbytes(self) -> int:
        """Return how much memory it uses beside the events and its state."""
        return 0

    def state(self) -> dict[str, KeyedVectors]:
        """Return the state to write beside the events."""
        return {}

    @abstractmethod
    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        """Return the rows that a step makes final; rows of the store from `arrived` on came with it."""

    @abstractmethod
    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        """Return the first row, or which rows, a later result may read."""

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        """Return the earliest time whose passing would make a row final or let one be evicted; None: nothing waits."""
        return None

    def affected(self, store: EventStore, finalizing: Iterable[Finalizing]) -> pa.Table:
        """Return the rows that share a key with a row that may make a result final; all, if that costs less."""
        if store.index is None or store.index.columns != self.keys:
            return store.events.whole()
        hashes: list[np.ndarray] = [np.empty(0, np.uint64)]
        for rows, query, steps in finalizing:
            if rows is None:
                return store.events.whole()
            if rows.start < rows.stop:
                events = prepare(query, store.events.take(np.arange(rows.start, rows.stop)))
                places = candidates(Alternative(query, steps, ()), events)
                hashes.append(store.index.hashes(rows)[np.concatenate(places)])
        wanted = distinct(np.concatenate(hashes))
        affected = None
        if store.index.share_with(wanted) <= MAX_SHARE:
            affected = store.index.rows_with(wanted, int(MAX_SHARE * store.rows))
        return store.events.whole() if affected is None else store.events.take(affected)
