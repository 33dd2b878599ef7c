"""Steps of many queries and their events in, what each event does to which prefix out: the alphabet of a workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.logical.bound import BoundQuery
from streamsift.logical.expressions import anonymous
from streamsift.physical.plan import Step
from streamsift.physical.share import TreeNode
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.count import Groups, Timeline, Totals
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock


class Letters(NamedTuple):
    """A letter is what an event can be, for any step of any query."""

    first: Int64  # [letters + 1] where the list of each letter begins
    adds: Int64  # the prefixes that a letter adds to, longest first; negative: those that it empties, before adding
    depth: Int64  # [nodes + 1]
    deepest: int


class Steps(NamedTuple):
    """Events that are a letter, in order; those of a group side by side."""

    offsets: Int64  # [groups + 1]
    letter: Int32
    place: Int32
    stamp: Int64
    last: Bool  # of its time
    leaving: Int64  # where an event can be the first step: the stamp at which it leaves; else -1


class Found(NamedTuple):
    group: Int32
    stamp: Int64
    total: Int64

    def timeline(self) -> Timeline:
        """The same as totals: a match ends at each."""
        counts = self.total[:, None]
        totals = Totals(counts, counts.astype(np.float64), np.empty((counts.size, 0), np.int64))
        return Timeline(self.group, self.stamp, np.ones(counts.size, np.bool_), totals)


def letters_of(query: BoundQuery, nodes: Sequence[TreeNode]) -> tuple[tuple[Step, ...], list[list[int]]]:
    """A step for each letter, and the prefixes that it adds to (or, negative, empties), longest first."""
    letters: dict[object, Step] = {}
    lists: dict[object, list[int]] = {}
    for number, node in enumerate(nodes, start=1):
        for step, entry in ((node.step, number), *((step, -number) for step in node.negated)):
            event_class = query.variables[step.variable].event_class
            key = (event_class, tuple(anonymous(predicate) for predicate in step.local))
            letters.setdefault(key, step)
            lists.setdefault(key, []).append(entry)

    def order(entry: int) -> tuple[int, bool]:
        return -nodes[abs(entry) - 1].depth, entry > 0

    return tuple(letters.values()), [sorted(entries, key=order) for entries in lists.values()]


def packed(lists: list[list[int]], nodes: Sequence[TreeNode]) -> Letters:
    depth = np.array([0, *(node.depth for node in nodes)])
    adds = np.array([entry for entries in lists for entry in entries])
    return Letters(np.cumsum([0, *map(len, lists)]), adds, depth, int(depth.max()))


def steps_of(
    found: list[Int32],
    starting: Sequence[bool],
    events: Events,
    clock: Clock,
    groups: Groups,
) -> tuple[Steps, Int32]:
    """All events in order, with the stamp at which those of `starting` letters leave, and the groups that have any."""
    places = np.concatenate(found)
    letter = np.repeat(np.arange(len(found), dtype=np.int32), [part.size for part in found])
    leaving = np.full(places.size, -1, np.int64)
    begin = 0
    for part, starts_match in zip(found, starting, strict=True):
        if starts_match:
            leaving[begin : begin + part.size] = clock.leaves(part)
        begin += part.size
    order = np.argsort(places, kind="stable")  # a merge: each letter's places ascend
    starts, by_group = group_entries(groups.of_place[places[order]], groups.first_place.size)
    order = order[by_group] if groups.first_place.size > 1 or by_group.size < order.size else order
    places = places[order]
    rank, group = events.rank[places], groups.of_place[places]
    last = np.ones(places.size, np.bool_)
    last[:-1] = (np.diff(rank) != 0) | (np.diff(group) != 0)
    used = np.flatnonzero(np.diff(starts) > 0)
    offsets = np.append(starts[used], places.size)
    return Steps(offsets, letter[order], places, clock.shown[places], last, leaving[order]), used.astype(np.int32)


@njit(cache=True, nogil=True, inline="always")
def entries_of(letters: Letters, steps: Steps, begin: int, end: int, entries: Int64) -> int:
    """What the events [begin, end) of one time do, in order, as (entry, event); returns how many entries that are.

    Those of one event lie in order already. Of several events, all longer prefixes come before all shorter ones, and
    emptying a prefix before adding to it: they do not extend each other.
    """
    count = 0
    if end == begin + 1:
        for k in range(letters.first[steps.letter[begin]], letters.first[steps.letter[begin] + 1]):
            entries[count, 0] = letters.adds[k]
            entries[count, 1] = begin
            count += 1
        return count
    for depth in range(letters.deepest, 0, -1):
        for adding in range(2):
            for i in range(begin, end):
                for k in range(letters.first[steps.letter[i]], letters.first[steps.letter[i] + 1]):
                    if letters.depth[abs(letters.adds[k])] == depth and (letters.adds[k] > 0) == (adding == 1):
                        entries[count, 0] = letters.adds[k]
                        entries[count, 1] = i
                        count += 1
    return count


@njit(cache=True, nogil=True, inline="always")
def end_of_time(steps: Steps, begin: int) -> int:
    while not steps.last[begin]:
        begin += 1
    return begin + 1


@njit(cache=True, nogil=True)
def most_entries(letters: Letters, steps: Steps) -> int:
    """The most entries of one time."""
    most, here = 0, 0
    for i in range(steps.letter.size):
        here += letters.first[steps.letter[i] + 1] - letters.first[steps.letter[i]]
        most = max(most, here)
        if steps.last[i]:
            here = 0
    return most
