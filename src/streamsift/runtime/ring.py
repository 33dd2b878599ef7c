"""Intervals that were searched in, what is known of others out: answers of negations, kept in a ring.

An answer depends on the interval and on the outer values that the negation reads. For each start of an interval and
these values two ends are kept: from which on the sub-pattern is known to occur (hits), and up to which it is known not
to (misses). So one entry answers most questions about its start, whatever their end. This is the caching of
"Processing Nested Complex Sequence Pattern Queries over Event Streams", for negated and correlated sub-patterns too.

Contract: an entry's slot follows from its start, modulo the size, which is at least the events of a window: what falls
behind the window is overwritten, and memory is bounded. A slot taken by another key is lost, never mistaken for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime import ranges as r
from streamsift.runtime.kernels import Int32, Int64
from streamsift.runtime.ranges import NO_LIMIT, Tree

TRIAL = 4096  # questions after which the share of those that were answered without a search decides
LEAST_ANSWERED = 0.25  # a search costs about four times as much as an entry
SPREAD = 2_654_435_761  # odd, 32 bits: "The Art of Computer Programming", section 6.4, on multiplicative hashing


class Ring(NamedTuple):
    """The rings of all negations, end to end. RING_BASE of a negation is where its own begins."""

    keys: Int32  # [entries, 1 + reads] the start of the interval, then the values; -1 in an empty one
    hits: Int32  # [entries] there is an occurrence in [start, end) for every end from this one on
    misses: Int32  # [entries] there is none for any end up to this one
    asked: Int64  # [nodes] questions
    answered: Int64  # [nodes] those that needed no search
    least_answered: float  # the share below which a ring is given up after its trial


@njit(cache=True, nogil=True)
def value_of(tree: Tree, marks: Int64, read: int) -> int:
    """The value that a negation reads of an outer event: a number for all equal ones, or the event itself."""
    event = marks[tree.reads[read, r.READ_STEP], r.EVENT]
    base = tree.reads[read, r.READ_BASE]
    return event if base < 0 else tree.values[base + event]


@njit(cache=True, nogil=True)
def entry_of(tree: Tree, ring: Ring, marks: Int64, node: int) -> int:
    """The entry for the negation's interval start and values, emptied if another key had it; -1 for unknown values."""
    low = marks[tree.nodes[node, r.FIRST], r.LOW]
    start, stop = tree.nodes[node, r.READS_START], tree.nodes[node, r.READS_STOP]
    slot = low
    for read in range(start, stop):
        value = value_of(tree, marks, read)
        if value < 0:
            return -1
        slot += (np.int64(value) * SPREAD) >> 13
    entry = tree.nodes[node, r.RING_BASE] + (slot & tree.nodes[node, r.RING_MASK])
    same = ring.keys[entry, 0] == low
    for read in range(start, stop):
        same = same and ring.keys[entry, 1 + read - start] == value_of(tree, marks, read)
    if not same:
        ring.keys[entry, 0] = low
        for read in range(start, stop):
            ring.keys[entry, 1 + read - start] = value_of(tree, marks, read)
        ring.hits[entry], ring.misses[entry] = NO_LIMIT, low
    return entry
