"""Convert events to operations on prefix counters, grouped by key, in the order in which they apply.

An event that can be step p of the pattern adds the count of prefix p - 1 to prefix p. A negated event clears the prefix
before it. Events of equal time must not extend each other, so operations on longer prefixes come first among them, and
clearing comes before adding.

On a tree, an operation applies a symbol: the same update of several prefixes of one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.logical.bound import WindowKind
from streamsift.physical.count import is_at_edge
from streamsift.physical.plan import Alternative, Branch, Edge
from streamsift.runtime.arrays.dtypes import Bool, Int8, Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.count.groups import AggregateInput
from streamsift.runtime.count.prefix_tree import PrefixTree, tree_of
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import NEVER, leaving_of

NO_SEAL = -1 << 62


class Operations(NamedTuple):
    """Operations [m], contiguous by key. Starts are the operations that add to prefix 1, in the same order."""

    offsets: Int64  # [keys + 1] the first operation of each key
    level: Int8  # p adds to prefixes of p steps, -p clears them
    symbol: Int32
    place: Int32
    stamp: Int64  # starts that have left the window at this stamp are removed before the operation
    seal: Int64  # at the last operation of a time at which matches may end: the stamp of the result row; else NO_SEAL
    first_start: Int64  # [keys + 1] the first start of each key
    until: Int64  # [starts] the last stamp whose window contains the start; NEVER - 1: it never leaves
    since: Int64  # [starts] the first place at which a match with this start may end
    first_node: Int64  # [symbols + 1] the offset of each symbol in `nodes`
    nodes: Int64  # the prefixes that a symbol adds to (positive) or clears (negative)


@dataclass(frozen=True, slots=True)
class Layout:
    operations: Operations
    tree: PrefixTree
    group: Int32  # [keys]
    sizes: Int64  # [symbols] the maximum number of operations of each symbol


class SymbolEvents(NamedTuple):
    """The places of the events of one symbol."""

    places: Int32
    level: int
    nodes: Sequence[int]


def lay_out(branch: Branch, given: AggregateInput, keys: Int32) -> Layout:
    """Return the operations of one pattern."""
    alternative, events = branch.alternative, given.events
    levels, negations = len(alternative.steps), alternative.negations
    steps = (*alternative.steps, *(n.steps[0] for n in negations))
    places_of = candidates(Alternative(alternative.query, steps, ()), events)
    starts, negated = places_of[0], places_of[levels:]
    at_edge = [(n.lower.edge, places) for n, places in zip(negations, negated, strict=True) if is_at_edge(n)]
    since = _since(alternative, events, keys, starts, at_edge)
    if events.window is None and at_edge:
        # Without a window, a negated event before a start never leaves, so no match begins there.
        places_of[0] = starts[since[starts] != NEVER]
    parts = [SymbolEvents(places, level, [level]) for level, places in enumerate(places_of[:levels], start=1)]
    for negation, places in zip(negations, negated, strict=True):
        if not is_at_edge(negation):
            level = -(negation.lower.steps[0] + 1)
            parts.append(SymbolEvents(places, level, [level]))
    return arrange(parts, tree_of(range(levels), [levels]), given, keys, since)


def arrange(
    parts: list[SymbolEvents], tree: PrefixTree, given: AggregateInput, keys: Int32, since: Int64 | None = None
) -> Layout:
    """Return the ordered operations of the parts. `keys` [places]: -1 for none; `since` [places]: as in Operations."""
    events, clock, group_of = given.events, given.clock, given.group_of
    # Longer prefixes first, clearing before adding: the later stable sort keeps this order among equal times.
    parts = sorted(parts, key=lambda part: (-abs(part.level), part.level > 0))
    sizes = [part.places.size for part in parts]
    places = np.concatenate([part.places for part in parts])
    symbol = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
    level_of, key = np.array([part.level for part in parts], np.int8), keys[places]
    if tree.levels == 1:
        # A single event without a key is a match if it has a group; no negated event shares its key.
        unequalled = (key < 0) & (level_of[symbol] > 0) & (group_of[places] >= 0)
        key = np.where(unequalled, _beyond(keys) + np.arange(key.size), key).astype(np.int32)
    order = _order(events.rank[places], key)
    places, symbol, key = places[order], symbol[order], key[order]
    level = level_of[symbol]
    at_starts = np.flatnonzero(level == 1)
    starts = places[at_starts]
    until = np.full(events.rank.size, NEVER - 1)
    for part in parts:
        if part.level == 1:
            until[part.places] = clock.leaves(part.places) - 1
    offsets = np.append(np.flatnonzero(np.diff(key, prepend=-1)), key.size)
    may_end = np.array([any(node > 0 and tree.ends[node] for node in part.nodes) for part in parts])
    stamp, seal = stamps_and_seals(places, may_end, symbol, key, events.rank, clock.first, clock.shown)
    operations = Operations(
        offsets=offsets,
        level=level,
        symbol=symbol,
        place=places,
        stamp=stamp,
        seal=seal,
        first_start=np.searchsorted(at_starts, offsets),
        until=until[starts],
        since=np.zeros(starts.size, np.int64) if since is None else since[starts],
        first_node=np.cumsum([0, *(len(part.nodes) for part in parts)]),
        nodes=np.array([node for part in parts for node in part.nodes]),
    )
    return Layout(operations, tree, group_of[places[offsets[:-1]]], np.array(sizes))


def keys_of_places(branch: Branch, given: AggregateInput) -> Int32:
    """Return the key of each place by which the branch is counted; -1 for none."""
    if set(branch.keys) == set(branch.alternative.query.group_by):
        return given.group_of
    return np.where(given.group_of < 0, -1, given.events.partitions(branch.keys)[0]).astype(np.int32)


def _beyond(keys: Int32) -> int:
    return int(keys.max(initial=-1)) + 1


def _order(rank: Int32, key: Int32) -> Int32:
    """Return a stable order by key and time. Operations without a key are dropped."""
    _, order = group_entries(rank, int(rank.max(initial=-1)) + 1)
    ordered = key[order]
    if ordered.size and (ordered[0] < 0 or ordered.min() != ordered.max()):
        _, by_key = group_entries(ordered, _beyond(key))
        order = order[by_key]
    return order


@njit(cache=True, nogil=True)
def stamps_and_seals(
    places: Int32, may_end: Bool, symbol: Int32, key: Int32, rank: Int32, first_stamp: Int64, shown: Int64
) -> tuple[Int64, Int64]:
    """Return Operations.stamp and Operations.seal; `may_end` [symbols] is True if a match may end with the symbol."""
    stamp, seal = np.empty(places.size, np.int64), np.empty(places.size, np.int64)
    ends, is_first = False, True  # among the operations of equal time
    following = rank[places[0]] if places.size else 0
    for i in range(places.size):
        place, now = places[i], following
        ends_here = may_end[symbol[i]]
        ends = ends_here | (ends & (not is_first))
        is_first = i + 1 == places.size
        if not is_first:
            following = rank[places[i + 1]]
            is_first = following != now or key[i + 1] != key[i]
        last_shown = shown[place]
        stamp[i] = first_stamp[place] if ends_here else last_shown
        seal[i] = last_shown if ends and is_first else NO_SEAL
    return stamp, seal


# --- leading and trailing negations ----------------------------------------------------------------------------------


def _since(
    alternative: Alternative, events: Events, keys: Int32, starts: Int32, at_edge: list[tuple[Edge, Int32]]
) -> Int64:
    """Return for each place of a start the first place at which a match that begins there may end.

    Leading negation: the last negated event before the start must have left the window at the end of the match.
    Trailing negation: the last negated event in the window of the start must not be later than the end of the match.
    """
    since = np.zeros(events.rank.size, np.int64)
    window = events.window
    counts = window is not None and window.kind is WindowKind.COUNT and alternative.query.partition_by
    for edge, negated in at_edge:
        offsets, order = group_entries(keys[negated], _beyond(keys))
        if edge is Edge.WINDOW_START:
            before = last_within(events.rank, keys, starts, events.rank[starts] - 1, negated[order], offsets)
            # The first place whose window no longer contains the event; for one key these ascend.
            distinct, which = np.unique(before[before >= 0], return_inverse=True)
            first = np.zeros(starts.size, np.int64)
            first[before >= 0] = leaving_of(alternative.query, events)(distinct.astype(np.int32))[which]
        else:
            at = events.window_position if counts else np.arange(events.rank.size, dtype=np.int32)
            inside = last_within(at, keys, starts, events.window_limit(starts), negated[order], offsets)
            first_of_rank = np.searchsorted(events.rank, events.rank[np.maximum(inside, 0)], side="left")
            first = np.where(inside >= 0, first_of_rank, 0)
        since[starts] = np.maximum(since[starts], first)
    return since


@njit(cache=True, nogil=True)
def last_within(values: Int32, keys: Int32, starts: Int32, limits: Int32, negated: Int32, offsets: Int64) -> Int32:
    """Return for each start the last negated place of its key with a value up to the start's limit; -1 for none."""
    last = np.full(starts.size, -1, np.int32)
    for i in range(starts.size):
        key = keys[starts[i]]
        if key < 0:
            continue
        low, high = offsets[key], offsets[key + 1]
        while low < high:
            middle = (low + high) // 2
            if values[negated[middle]] <= limits[i]:
                low = middle + 1
            else:
                high = middle
        if low > offsets[key]:
            last[i] = negated[low - 1]
    return last
