"""Define the interface of one query to the engine: the rows that become final, and the events to retain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.state import EventStore, KeyedVectors, RetainedEvents
from streamsift.runtime.stream.watermark import Tick, WatermarkStep

MAX_SHARE = 0.5  # of the rows in the store; beyond this, reading all rows is cheaper than finding them by key


class Decider(ABC):
    """One query of the engine whose rows wait for the watermark."""

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


def bound_by(store: RetainedEvents, rows: Int64, query: BoundQuery, steps: Sequence[Step]) -> Int64:
    """Return those of the rows of the store, from 0, that one of the steps can bind."""
    if not rows.size:
        return rows
    events = prepare(query, store.events.take(rows))
    places = np.concatenate(candidates(Alternative(query, tuple(steps), ()), events))
    return np.sort(rows[distinct(events.rows[places])])


def affected_rows(store: RetainedEvents, keys: tuple[str, ...], starting: Iterable[Int64 | None]) -> Int64 | None:
    """Return the rows of the store, from 0, that share a key with one of `starting`; None for all rows.

    All rows are read if any row can be a starting one, or if most rows share a key with one.
    """
    groups = list(starting)
    if not any(rows is None or rows.size for rows in groups):
        return np.empty(0, np.int64)
    if store.index is None or not set(store.index.columns) <= set(keys) or any(rows is None for rows in groups):
        return None
    hashes = [store.index.hashes(rows) for rows in groups if rows is not None]
    wanted = distinct(np.concatenate(hashes))
    if store.index.share_with(wanted) > MAX_SHARE:
        return None
    return store.index.rows_with(wanted, int(MAX_SHARE * store.rows))
