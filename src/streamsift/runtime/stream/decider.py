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

MAX_SHARE = 0.5  # of the rows in the store; beyond this, reading all rows is cheaper than finding them by key

# Candidate rows of finalizing events (None: any row), with their query and steps.
Finalizing = tuple[slice | None, BoundQuery, tuple[Step, ...]]


class Decider(ABC):
    """One query of the engine."""

    schema: pa.Schema
    keys: tuple[str, ...] = ()  # columns of the key index that it needs

    @property
    def follows(self) -> bool:
        """Return True if the final rows depend only on the events in the store."""
        return True

    @property
    def nbytes(self) -> int:
        """Return the memory in use besides the events and the state."""
        return 0

    def state(self) -> dict[str, KeyedVectors]:
        """Return the state to write besides the events."""
        return {}

    @abstractmethod
    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        """Return the rows that a step makes final. Rows of the store from `arrived` on are new in this step."""

    @abstractmethod
    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        """Return the rows that a later result may read: a mask, or the first row of a suffix."""

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        """Return the earliest time at which a row becomes final or can be evicted; None if nothing waits."""
        return None

    def affected(self, store: EventStore, finalizing: Iterable[Finalizing]) -> pa.Table:
        """Return the rows that share a key with a possible finalizing event, or all rows if that is cheaper."""
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
