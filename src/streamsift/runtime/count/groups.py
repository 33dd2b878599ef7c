"""Hold what every strategy of AGG reads, and the totals over time that it returns, by group and by key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamsift.logical.bound import BoundQuery
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count.measures import Measures, Totals
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock
from streamsift.runtime.expressions.codes import group_codes


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of GROUP BY; if each partition has its own ticks, of both."""

    of_place: Int32  # [places]; -1 for a row that is in no group
    first_place: Int32  # [groups] a place of each


def groups_of(query: BoundQuery, events: Events, clock: Clock) -> Groups:
    of_place = np.zeros(events.rank.size, np.int32)
    if not query.group_by and clock.unit_of is None:
        return Groups(of_place, of_place[:1])
    if query.group_by:
        (of_place,), _ = group_codes([[events.columns.at(name, events.rows)] for name in query.group_by])
    if clock.unit_of is not None:
        pairs = of_place.astype(np.int64) * (int(clock.unit_of.max(initial=0)) + 1) + clock.unit_of
        keep = (of_place >= 0) & (clock.unit_of >= 0)
        of_place = np.where(keep, np.unique(pairs, return_inverse=True)[1], -1).astype(np.int32)
    first = np.zeros(int(of_place.max(initial=-1)) + 1, np.int32)
    known = np.flatnonzero(of_place >= 0)[::-1]
    first[of_place[known]] = known
    return Groups(of_place, first)


@dataclass(frozen=True, slots=True)
class AggregateInput:
    """Events, when result rows show them, in which group they are and what they add to a match."""

    events: Events
    clock: Clock
    groups: Groups
    measures: Measures


@dataclass(frozen=True, slots=True)
class Timeline:
    """The totals of each group, from a stamp until its next; ordered by (group, stamp)."""

    group: Int32
    stamp: Int64
    ends: Bool  # a match ends there
    totals: Totals

    def at(self, rows: np.ndarray) -> Timeline:
        return Timeline(self.group[rows], self.stamp[rows], self.ends[rows], self.totals.at(rows))


@dataclass(frozen=True, slots=True)
class KeyTotals:
    """The totals of each key from a stamp until its next; ordered by (key, stamp)."""

    key: Int32
    group: Int32
    stamp: Int64
    ends: Bool
    totals: Totals

    def by_group(self) -> Timeline:
        """Return the same if every group has one key and they are numbered alike."""
        return Timeline(self.group, self.stamp, self.ends, self.totals)
