"""Extend partial matches of a sequence over packed buffers.

Predicates, windows and lookups are data in the buffers, so one kernel serves every query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import GREATER_EQUAL, first_above, holds
from streamsift.runtime.arrays.dtypes import Int32, Int64

# Columns of Buffers.steps.
BASE, AFTER_BASE, UNTIL_BASE, LINK_BASE, LINK_STEP, OFFSETS_BASE = range(6)
PLACES_BASE, PAIRS_START, PAIRS_STOP, CHECK_WINDOW, PLAIN = range(6, 11)  # PLAIN: nothing to check
LIMITS_START, LIMITS_STOP, STEP_FIELDS = range(11, 14)  # rows of Buffers.pairs, LESS_EQUAL or GREATER_EQUAL
# Columns of Buffers.pairs.
EARLIER, OPERATOR, EARLIER_CODES, THIS_CODES, PAIR_FIELDS = range(5)
# Fields of the cursor.
NEXT_PARTIAL, LEVEL, DONE, CURSOR_FIELDS = range(4)


class Buffers(NamedTuple):
    """The packed candidates of each step. Entries are numbered within their step.

    The entries of a step are sorted by (lookup group, place), so the events that can extend a partial match are one
    range of entries. If the previous event determines the start of that range, and the first event its end, both are in
    `pointers`; otherwise they are searched for in the group.
    """

    steps: Int64  # [steps, STEP_FIELDS]
    places: Int32  # at PLACES_BASE + entry: its place
    pointers: Int32  # at AFTER_BASE + previous entry: the first entry after it; at UNTIL_BASE + first entry: the end
    rank: Int32  # at BASE + entry: dense rank of (time, order)
    position: Int32  # at BASE + entry: its window position
    limit: Int32  # [entries of step 0] the largest window position in a match that starts there
    links: Int32  # at LINK_BASE + entry of step LINK_STEP: its group in this step, -1 for none
    offsets: Int64  # at OFFSETS_BASE + group: where the group's entries start; one more for the end
    hints: Int64  # [2, offsets] where the last searches in a group ended: for the next event, for the window's end
    pairs: Int64  # [pairs, PAIR_FIELDS] comparisons, and bounds from definition windows, whose codes are places
    codes: Int64  # at EARLIER_CODES or THIS_CODES + entry: the value of one side of a pair


@njit(cache=True, nogil=True)
def admits(buffers: Buffers, level: int, match: Int32, entry: int) -> bool:
    """Return True if `entry` can extend `match` at `level`: it is in the window and passes every comparison."""
    steps = buffers.steps
    if steps[level, CHECK_WINDOW] == 1 and buffers.position[steps[level, BASE] + entry] > buffers.limit[match[0]]:
        return False
    for pair in range(steps[level, PAIRS_START], steps[level, PAIRS_STOP]):
        earlier = buffers.codes[buffers.pairs[pair, EARLIER_CODES] + match[buffers.pairs[pair, EARLIER]]]
        this = buffers.codes[buffers.pairs[pair, THIS_CODES] + entry]
        if not holds(buffers.pairs[pair, OPERATOR], earlier, this):
            return False
    return True


@njit(cache=True, nogil=True)
def search_range(buffers: Buffers, level: int, match: Int32) -> tuple[int, int]:
    """Return the entries [start, stop) of the step's group that lie after the last bound event and in the window."""
    steps = buffers.steps
    group = 0
    if steps[level, LINK_BASE] >= 0:
        group = buffers.links[steps[level, LINK_BASE] + match[steps[level, LINK_STEP]]]
        if group < 0:
            return 0, 0
    slot = steps[level, OFFSETS_BASE] + group
    low = buffers.offsets[slot]
    high = buffers.offsets[slot + 1]
    if low == high:
        return 0, 0
    base = steps[level, BASE]
    last_rank = buffers.rank[steps[level - 1, BASE] + match[level - 1]]
    start = first_above(buffers.rank, base, low, high, buffers.hints[0, slot], last_rank)
    buffers.hints[0, slot] = start
    if steps[level, CHECK_WINDOW] == 0:
        high = first_above(buffers.position, base, low, high, buffers.hints[1, slot], buffers.limit[match[0]])
        buffers.hints[1, slot] = high
    return start, high


@njit(cache=True, nogil=True)
def limited(buffers: Buffers, level: int, match: Int32, start: int, stop: int) -> tuple[int, int]:
    """Return the entries of [start, stop) that share the window of each definition with the bound events."""
    pairs, codes = buffers.pairs, buffers.codes
    for limit in range(buffers.steps[level, LIMITS_START], buffers.steps[level, LIMITS_STOP]):
        if start >= stop:
            break
        base = pairs[limit, THIS_CODES]
        bound = codes[pairs[limit, EARLIER_CODES] + match[pairs[limit, EARLIER]]]
        if pairs[limit, OPERATOR] == GREATER_EQUAL:
            stop = first_above(codes, base, start, stop, start, bound)
        else:
            start = first_above(codes, base, start, stop, start, bound - 1)
    return start, stop


@njit(cache=True, nogil=True, inline="always")
def flush(out: Int32, step: int, flushed: Int64, written: int, value: int) -> None:
    """Set out[step, flushed:written] = value."""
    for k in range(flushed[step], written):
        out[step, k] = value
    flushed[step] = written


@njit(cache=True, nogil=True)
def extend(
    buffers: Buffers,
    partials: Int32,
    first: int,
    last: int,
    as_places: bool,
    cursor: Int64,
    match: Int32,
    ranges: Int64,
    out: Int32,
) -> int:
    """Extend partial matches of steps [0, first) by steps [first, last], depth first; return how many were written.

    partials [first, P] has entries; out [last + 1, C] receives entries, or places if `as_places`. When `out` is full,
    the search stops with its state in cursor [CURSOR_FIELDS], match [last + 1] and ranges [last + 1, 2], and the next
    call resumes there. Memory is therefore bounded. Matches are in lexicographic order of their places.
    This is one function because a call retains and releases every array that it takes.
    """
    steps = buffers.steps
    places = buffers.places
    pointers = buffers.pointers
    capacity = out.shape[1]
    written = 0
    # out[k, :flushed[k]] is written. Later matches have match[k], which is written when it changes.
    flushed = np.zeros(last + 1, np.int64)
    partial = cursor[NEXT_PARTIAL]
    level = cursor[LEVEL]
    opened = level >= first
    while True:
        if level < first:
            for k in range(first):
                flush(out, k, flushed, written, places[steps[k, PLACES_BASE] + match[k]] if as_places else match[k])
            if partial == partials.shape[1]:
                cursor[DONE] = 1
                break
            for k in range(first):
                match[k] = partials[k, partial]
            partial += 1
            level = first
            opened = False
        if opened:
            entry = ranges[level, 0]
            stop = ranges[level, 1]
        elif steps[level, AFTER_BASE] >= 0:
            entry = np.int64(pointers[steps[level, AFTER_BASE] + match[level - 1]])
            stop = np.int64(pointers[steps[level, UNTIL_BASE] + match[0]])
        else:
            entry, stop = search_range(buffers, level, match)
        if not opened and steps[level, LIMITS_START] < steps[level, LIMITS_STOP]:
            entry, stop = limited(buffers, level, match, entry, stop)
        plain = steps[level, PLAIN] == 1
        base = steps[level, PLACES_BASE]
        if level < last:
            if flushed[level] < written:
                flush(out, level, flushed, written, places[base + match[level]] if as_places else match[level])
            if not plain:
                while entry < stop and not admits(buffers, level, match, entry):
                    entry += 1
            if entry >= stop:
                level -= 1
                opened = True
                continue
            ranges[level, 0] = entry + 1
            ranges[level, 1] = stop
            match[level] = entry
            flushed[level] = written
            level += 1
            opened = False
            continue
        if plain:
            # Every entry of the range is a match: out[last, written:] = entry, entry + 1, ...
            count = max(0, min(stop - entry, capacity - written))
            if as_places:
                for k in range(count):
                    out[last, written + k] = places[base + entry + k]
            else:
                for k in range(count):
                    out[last, written + k] = entry + k
            written += count
            entry += count
        else:
            while entry < stop and written < capacity:
                if admits(buffers, level, match, entry):
                    out[last, written] = places[base + entry] if as_places else entry
                    written += 1
                entry += 1
        if entry < stop:
            ranges[level, 0] = entry
            ranges[level, 1] = stop
            for k in range(last):
                flush(out, k, flushed, written, places[steps[k, PLACES_BASE] + match[k]] if as_places else match[k])
            break
        level -= 1
        opened = True
    cursor[NEXT_PARTIAL] = partial
    cursor[LEVEL] = level
    return written
