"""Lay out events as operations on prefix counters: key by key, in the order in which they apply.

An event that may be step p of the pattern adds prefix p - 1 to prefix p; a negated one empties the prefix before it.
Events of equal time do not extend each other: among them, longer prefixes come first, and emptying before adding.

On a tree of prefixes an operation is a symbol: it does the same to a list of prefixes of one length.
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
from streamsift.runtime.count.prefix_tree import PrefixTree, tree_of_steps
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import NEVER, leaving_of
from streamsift.runtime.expressions.codes import group_codes

NO_SEAL = -1 << 62


class Operations(NamedTuple):
    """Operations [m], those of a key side by side; starts are those that add to prefix 1, in the same order."""

    offsets: Int64  # [keys + 1] the operations of each key
    level: Int8  # p adds to prefixes of p steps, -p empties them
    symbol: Int32
    place: Int32
    stamp: Int64  # before it, what is gone at this stamp leaves
    seal: Int64  # after the last operation of a time at which matches may end: the stamp of its row; else NO_SEAL
    first_start: Int64  # [keys + 1] the starts of each key
    until: Int64  # [starts] the last stamp whose window holds it; NEVER - 1: it never leaves
    since: Int64  # [starts] the first place at which a match with this start may end
    first_node: Int64  # [symbols + 1] where the list of each symbol begins
    nodes: Int64  # the prefixes that a symbol adds to, or negated those that it empties


@dataclass(frozen=True, slots=True)
class Layout:
    operations: Operations
    tree: PrefixTree
    group: Int32  # [keys]
    sizes: Int64  # [symbols] the most operations of each


class SymbolEvents(NamedTuple):
    """The places of the events that one symbol stands for."""

    places: Int32
    level: int
    nodes: Sequence[int]


def lay_out(branch: Branch, given: AggregateInput, keys: Int32) -> Layout:
    """Return the operations of one pattern."""
    alternative, events = branch.alternative, given.events
    levels, negations = len(alternative.steps), alternative.negations
    steps = (*alternative.steps, *(n.steps[0] for n in negations))
    found = candidates(Alternative(alternative.query, steps, ()), events)
    starts, negated = found[0], found[levels:]
    at_edge = [(n.lower.edge, places) for n, places in zip(negations, negated, strict=True) if is_at_edge(n)]
    since = _since(alternative, events, keys, starts, at_edge)
    if events.window is None and at_edge:
        # Without a window a negated event before a start never leaves.
        found[0] = starts[since[starts] != NEVER]
    parts = [SymbolEvents(places, level, [level]) for level, places in enumerate(found[:levels], start=1)]
    for negation, places in zip(negations, negated, strict=True):
        if not is_at_edge(negation):
            level = -(negation.lower.steps[0] + 1)
            parts.append(SymbolEvents(places, level, [level]))
    return arrange(parts, tree_of_steps(levels), given, keys, since)


def arrange(
    parts: list[SymbolEvents], tree: PrefixTree, given: AggregateInput, keys: Int32, since: Int64 | None = None
) -> Layout:
    """Return the operations of the parts in order. `keys` [places]: -1 for none; `since` [places] as in Operations."""
    events, clock, groups = given.events, given.clock, given.groups
    # Longer prefixes first, and emptying before adding: sorted by time and key, they stay so among equal times.
    parts = sorted(parts, key=lambda part: (-abs(part.level), part.level > 0))
    sizes = [part.places.size for part in parts]
    places = np.concatenate([part.places for part in parts])
    symbol, level_of = (
        np.repeat(np.arange(len(parts), dtype=np.int32), sizes),
        np.array([p.level for p in parts], np.int8),
    )
    key = keys[places]
    if tree.levels == 1:
        # A single event without a key is a match, if it has a group; no negated event equals it.
        unequalled = (key < 0) & (level_of[symbol] > 0) & (groups.of_place[places] >= 0)
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
    stamp, seal = stamps_and_seals(places, may_end, symbol, key, events.rank, clock.own, clock.shown)
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
    return Layout(operations, tree, groups.of_place[places[offsets[:-1]]], np.array(sizes))


def keys_of_places(branch: Branch, given: AggregateInput) -> Int32:
    """Return the key of each place, by which the events of a branch are counted apart; -1 for none."""
    events, groups = given.events, given.groups
    if set(branch.keys) == set(branch.alternative.query.group_by):
        return groups.of_place
    (codes,), _ = group_codes([[events.columns.at(name, events.rows)] for name in branch.keys])
    return np.where(groups.of_place < 0, -1, codes).astype(np.int32)


def _beyond(keys: Int32) -> int:
    return int(keys.max(initial=-1)) + 1


def _order(rank: Int32, key: Int32) -> Int32:
    """Return the order by key and time, else as they stand. Operations without a key are left out."""
    _, order = group_entries(rank, int(rank.max(initial=-1)) + 1)
    ordered = key[order]
    if ordered.size and (ordered[0] < 0 or ordered.min() != ordered.max()):
        _, by_key = group_entries(ordered, _beyond(key))
        order = order[by_key]
    return order


@njit(cache=True, nogil=True)
def stamps_and_seals(
    places: Int32, may_end: Bool, symbol: Int32, key: Int32, rank: Int32, own: Int64, shown: Int64
) -> tuple[Int64, Int64]:
    """Return Operations.stamp and Operations.seal; `may_end` [symbols]: a match may end with it."""
    stamp, seal = np.empty(places.size, np.int64), np.empty(places.size, np.int64)
    ends, is_first = False, True  # of its time
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
        stamp[i] = own[place] if ends_here else last_shown
        seal[i] = last_shown if ends and is_first else NO_SEAL
    return stamp, seal


# --- negations at the edges of the window --------------------------------------------------------------------------


def _since(
    alternative: Alternative, events: Events, keys: Int32, starts: Int32, at_edge: list[tuple[Edge, Int32]]
) -> Int64:
    """For each place of a start the first place at which a match that begins there may end.

    A negated event before the start must be out of the window of the end: the last one is the last to leave. One after
    the end must be out of the window of the start: the last one inside it must not be later than the end.
    """
    since = np.zeros(events.rank.size, np.int64)
    if not at_edge:
        return since
    window = events.window
    counts = window is not None and window.kind is WindowKind.COUNT
    position = events.window_position if counts and alternative.query.partition_by else None
    limits = events.window_limit(starts)
    for edge, negated in at_edge:
        order, offsets = _by_key(keys, negated)
        if edge is Edge.WINDOW_START:
            before = last_within(events.rank, keys, starts, events.rank[starts] - 1, order, offsets)
            found = np.zeros(starts.size, np.int64)
            hit = before >= 0
            found[hit] = _leaving_places(alternative, events, before[hit])
        else:
            at = np.arange(events.rank.size, dtype=np.int32) if position is None else position
            inside = last_within(at, keys, starts, limits, order, offsets)
            first_of_rank = np.searchsorted(events.rank, events.rank[np.maximum(inside, 0)], side="left")
            found = np.where(inside >= 0, first_of_rank, 0)
        since[starts] = np.maximum(since[starts], found)
    return since


def _by_key(keys: Int32, places: Int32) -> tuple[Int32, Int64]:
    offsets, order = group_entries(keys[places], _beyond(keys))
    return places[order], offsets


def _leaving_places(alternative: Alternative, events: Events, places: Int32) -> Int64:
    """The first place whose window no longer holds the given ones, which ascend within a key."""
    distinct, where = np.unique(places, return_inverse=True)
    return leaving_of(alternative.query, events)(distinct.astype(np.int32))[where]


@njit(cache=True, nogil=True)
def last_within(values: Int32, keys: Int32, starts: Int32, limits: Int32, negated: Int32, offsets: Int64) -> Int32:
    """For each start the last negated place of its key whose value is no greater than the start's limit; -1: none."""
    found = np.full(starts.size, -1, np.int32)
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
            found[i] = negated[low - 1]
    return found
