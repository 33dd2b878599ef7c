"""Rows that may decide a result in, all rows that share a key with one of them out: those that the result looks at."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.state import EventStore

MOST_FOUND = 0.5  # of the rows that are held: to find more of them by key costs more than to take all

Deciding = tuple[slice, BoundQuery, tuple[Step, ...]]  # rows, and the steps that those which decide are bound to


def rows_sharing_keys(store: EventStore, deciding: Iterable[Deciding]) -> Int64 | None:
    """The rows, ascending; None for all."""
    if store.index is None:
        return None
    parts = [np.empty(0, np.uint64)]
    for rows, query, steps in deciding:
        if rows.start < rows.stop:
            events = prepare(query, store.events.take(np.arange(rows.start, rows.stop)))
            places = candidates(Alternative(query, steps, ()), events)
            parts.append(store.index.hashes(rows)[np.concatenate(places)])
    wanted = np.sort(np.concatenate(parts))
    wanted = wanted[np.append(True, wanted[1:] != wanted[:-1])] if wanted.size else wanted
    if store.index.share_with(wanted) > MOST_FOUND:
        return None
    return store.index.rows_with(wanted, int(MOST_FOUND * store.rows))
