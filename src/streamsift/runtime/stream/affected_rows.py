"""Find the rows that a result may read: those that share a key with a row that may make it final."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.state import EventStore

MAX_SHARE = 0.5  # of the rows that are held: to find more of them by key costs more than to take all

Finalizing = tuple[slice, BoundQuery, tuple[Step, ...]]  # rows, and the steps that finalizing events are bound to


def rows_sharing_keys(store: EventStore, finalizing: Iterable[Finalizing]) -> Int64 | None:
    """Return the rows, ascending; None for all."""
    if store.index is None:
        return None
    parts = [np.empty(0, np.uint64)]
    for rows, query, steps in finalizing:
        if rows.start < rows.stop:
            events = prepare(query, store.events.take(np.arange(rows.start, rows.stop)))
            places = candidates(Alternative(query, steps, ()), events)
            parts.append(store.index.hashes(rows)[np.concatenate(places)])
    wanted = np.sort(np.concatenate(parts))
    wanted = wanted[np.append(True, wanted[1:] != wanted[:-1])] if wanted.size else wanted
    if store.index.share_with(wanted) > MAX_SHARE:
        return None
    return store.index.rows_with(wanted, int(MAX_SHARE * store.rows))
