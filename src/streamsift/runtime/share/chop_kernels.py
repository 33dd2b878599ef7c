"""Count the pieces of chopped queries and connect the counts: the kernels of chop-connect.

The lemmas are from "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns", section 4.2. Instead of
one count per start, a snapshot has suffix sums over the starts, because starts leave in first-in, first-out order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count import Operations, TotalRecords, record_count


class Steps(NamedTuple):
    """The operations of all pieces. An operation applies one event to prefixes of one length."""

    operations: Operations
    is_last: Bool  # [operations] True for the last operation of its time
    until: Int64  # [operations] the last stamp whose window contains its event


class Pieces(NamedTuple):
    piece_of: Int64  # [nodes + 1]
    first: Int64  # [pieces + 1] the first node of each piece
    room: Int64  # [pieces] a power of two, at least the maximum number of its starts in one window


class Connects(NamedTuple):
    """A connect joins a piece to the pieces before it in a query. Queries with the same pieces up to it share it."""

    source: Int64  # the piece before the target
    target: Int64  # the piece whose starts take a snapshot
    tag: Int64  # the first piece of the query; a snapshot has one number for each of its starts (tags)
    before: Int64  # the connect whose target is `source`; -1 if `source` is the first piece
    offset: Int64  # [connects + 1] the offset of its snapshots [starts of the target, tags]
    row: Int64  # [connects + 1] the offset of its rows in `since` and `after_last`
    first: Int64  # [pieces + 1] the offset of each target in `of_piece`
    of_piece: Int32


class Ends(NamedTuple):
    piece: Int64
    connect: Int64  # -1 for a query of one piece
    first: Int64  # [pieces + 1] the offset of each piece in `of_piece`
    of_piece: Int32


class ChopState(NamedTuple):
    """Counters and snapshots of one key. Start n of a piece is in column n - origin[piece]."""

    counts: Int64  # [nodes + 1, columns]
    until: Int64  # [pieces, columns]
    begin: Int64  # [pieces] the first start in the window
    after: Int64  # [pieces] the number of starts
    origin: Int64  # [pieces] the start in column 0
    snapshots: Int64
    since: Int64  # the first tag of each snapshot
    after_last: Int64  # the tag after the last of each snapshot
    fresh: Int64  # [pieces] new starts of the current time that are not yet added
    sofar: Int64  # [ends] the number of matches before the current time
    counted_at: Int64  # [ends] the operation at which `sofar` was computed; -1 for none


def empty_state(pieces: Pieces, connects: Connects, ends: Ends) -> ChopState:
    """Return a state without starts. If the kernel allocated the arrays, it would count references at each use."""
    count, rows, columns = pieces.room.size, int(connects.row[-1]), 2 * int(pieces.room.max())
    starts = (pieces.piece_of.size, columns), (count, columns), count, count, count
    shapes = (*starts, int(connects.offset[-1]), rows, rows, count, ends.piece.size, ends.piece.size)
    state = ChopState(*(np.zeros(shape, np.int64) for shape in shapes))
    state.counted_at[:] = -1
    return state


@njit(cache=True, nogil=True)
def starts_in_window(steps: Steps) -> tuple[Int64, Int64, Int64]:
    """Return for each symbol the maximum number of its events in one window, the sum of these numbers over all its
    events, and the number of its events."""
    operations = steps.operations
    symbols = operations.first_node.size - 1
    present, most = np.zeros(symbols, np.int64), np.zeros(symbols, np.int64)
    total, seen = np.zeros(symbols, np.int64), np.zeros(symbols, np.int64)
    for key in range(operations.offsets.size - 1):
        present[:] = 0
        tail = operations.offsets[key]
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            while steps.until[tail] < operations.stamp[i]:
                present[operations.symbol[tail]] -= 1
                tail += 1
            symbol = operations.symbol[i]
            present[symbol] += 1
            most[symbol] = max(most[symbol], present[symbol])
            total[symbol] += present[symbol]
            seen[symbol] += 1
    return most, total, seen


@njit(cache=True, nogil=True, inline="always")
def expire(state: ChopState, piece: int, stamp: int) -> None:
    begin = state.begin[piece]
    while begin < state.after[piece] and state.until[piece, begin - state.origin[piece]] < stamp:
        begin += 1
    state.begin[piece] = begin


@njit(cache=True, nogil=True, inline="always")
def add_start(pieces: Pieces, state: ChopState, piece: int, until: int) -> None:
    """Add a column for a new start; if no column is free, first move the columns in the window to the front."""
    column = state.after[piece] - state.origin[piece]
    if column == state.until.shape[1]:
        shift = state.begin[piece] - state.origin[piece]
        for old in range(shift, column):
            state.until[piece, old - shift] = state.until[piece, old]
            for node in range(pieces.first[piece], pieces.first[piece + 1]):
                state.counts[node, old - shift] = state.counts[node, old]
        state.origin[piece] = state.begin[piece]
        column -= shift
    state.until[piece, column] = until
    for node in range(pieces.first[piece], pieces.first[piece + 1]):
        state.counts[node, column] = 0
    state.counts[pieces.first[piece], column] = 1
    state.after[piece] += 1


@njit(cache=True, nogil=True, inline="always")
def take_snapshot(pieces: Pieces, connects: Connects, state: ChopState, connect: int, start: int) -> None:
    """Write for each tag in the window the number of matches of all pieces before that begin at the tag or later."""
    source, tag, before = connects.source[connect], connects.tag[connect], connects.before[connect]
    node = pieces.first[source + 1] - 1
    since, until = state.begin[tag], state.after[tag]
    place = start & (pieces.room[connects.target[connect]] - 1)
    at = connects.offset[connect] + place * pieces.room[tag]
    state.since[connects.row[connect] + place] = since
    state.after_last[connects.row[connect] + place] = until
    if before < 0:
        running = 0
        for n in range(until - 1, since - 1, -1):
            running += state.counts[node, n - state.origin[tag]]
            state.snapshots[at + n - since] = running
        return
    state.snapshots[at : at + until - since] = 0
    for earlier in range(state.begin[source], state.after[source]):
        count = state.counts[node, earlier - state.origin[source]]
        if count > 0:
            row = earlier & (pieces.room[source] - 1)
            end = state.after_last[connects.row[before] + row]
            shift = connects.offset[before] + row * pieces.room[tag] - state.since[connects.row[before] + row]
            for n in range(since, end):
                state.snapshots[at + n - since] += count * state.snapshots[shift + n]


@njit(cache=True, nogil=True, inline="always")
def matches_of(pieces: Pieces, connects: Connects, state: ChopState, piece: int, connect: int, stamp: int) -> int:
    """Return the number of matches in the window of a query that ends with this piece."""
    expire(state, piece, stamp)
    node = pieces.first[piece + 1] - 1
    origin = state.origin[piece]
    total = 0
    if connect < 0:
        for n in range(state.begin[piece], state.after[piece]):
            total += state.counts[node, n - origin]
        return total
    tag = connects.tag[connect]
    expire(state, tag, stamp)
    first = state.begin[tag]
    for n in range(state.begin[piece], state.after[piece]):
        place = n & (pieces.room[piece] - 1)
        row = connects.row[connect] + place
        if first < state.after_last[row]:
            at = connects.offset[connect] + place * pieces.room[tag] + first - state.since[row]
            total += state.counts[node, n - origin] * state.snapshots[at]
    return total


@njit(cache=True, nogil=True)
def connect_pieces(
    pieces: Pieces, connects: Connects, ends: Ends, steps: Steps, state: ChopState, out: TotalRecords, filled: Int64
) -> None:
    """Process the events of each time in three passes.

    The first pass takes the snapshots of new starts and counts the matches so far. The second updates the counters. The
    third counts the matches again and writes a record if there are new ones.

    One function, because each call would retain and release every array argument.
    """
    operations, fresh, sofar, counted_at = steps.operations, state.fresh, state.sofar, state.counted_at
    first_node, nodes, symbol = operations.first_node, operations.nodes, operations.symbol
    for key in range(operations.offsets.size - 1):
        state.begin[:] = 0
        state.after[:] = 0
        state.origin[:] = 0
        begin = operations.offsets[key]
        while begin < operations.offsets[key + 1]:
            end = begin
            while not steps.is_last[end]:
                end += 1
            end += 1
            stamp, until = operations.stamp[begin], steps.until[begin]
            for i in range(begin, end):
                for k in range(first_node[symbol[i]], first_node[symbol[i] + 1]):
                    node = nodes[k]
                    if node < 0:
                        continue
                    piece = pieces.piece_of[node]
                    expire(state, piece, stamp)
                    if node == pieces.first[piece]:
                        start = state.after[piece] + fresh[piece]
                        fresh[piece] += 1
                        for c in range(connects.first[piece], connects.first[piece + 1]):
                            connect = connects.of_piece[c]
                            expire(state, connects.source[connect], stamp)
                            expire(state, connects.tag[connect], stamp)
                            take_snapshot(pieces, connects, state, connect, start)
                    if node == pieces.first[piece + 1] - 1:
                        for e in range(ends.first[piece], ends.first[piece + 1]):
                            which = ends.of_piece[e]
                            if counted_at[which] != begin:
                                counted_at[which] = begin
                                sofar[which] = matches_of(pieces, connects, state, piece, ends.connect[which], stamp)
            for i in range(begin, end):
                for k in range(first_node[symbol[i]], first_node[symbol[i] + 1]):
                    node = nodes[k]
                    piece = pieces.piece_of[abs(node)]
                    low, high = state.begin[piece] - state.origin[piece], state.after[piece] - state.origin[piece]
                    if node < 0:
                        state.counts[-node, low:high] = 0
                    elif node == pieces.first[piece]:
                        fresh[piece] -= 1
                        add_start(pieces, state, piece, until)
                    else:
                        for column in range(low, high):
                            state.counts[node, column] += state.counts[node - 1, column]
            for i in range(begin, end):
                for k in range(first_node[symbol[i]], first_node[symbol[i] + 1]):
                    node = nodes[k]
                    if node < 0 or node != pieces.first[pieces.piece_of[node] + 1] - 1:
                        continue
                    piece = pieces.piece_of[node]
                    for e in range(ends.first[piece], ends.first[piece + 1]):
                        which = ends.of_piece[e]
                        if counted_at[which] == begin:
                            counted_at[which] = -1
                            total = matches_of(pieces, connects, state, piece, ends.connect[which], stamp)
                            if total > sofar[which]:
                                record_count(out, filled, which, key, stamp, True, total)
            begin = end
