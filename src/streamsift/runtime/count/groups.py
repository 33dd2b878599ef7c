"""Define the input of every AGG strategy, and the totals over time that it returns, by group and key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count.measures import Decoder, Measures, Totals, measures_of
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock, clock_of


def _groups_of(query: BoundQuery, events: Events, clock: Clock) -> tuple[Int32, Int32]:
    """Return the group of each place, and the first place of each group."""
    of_place, _ = events.partitions(query.group_by)
    if clock.unit_of is not None:
        pairs = of_place.astype(np.int64) * (int(clock.unit_of.max(initial=0)) + 1) + clock.unit_of
        keep = (of_place >= 0) & (clock.unit_of >= 0)
        of_place = np.where(keep, np.unique(pairs, return_inverse=True)[1], -1).astype(np.int32)
    elif not query.group_by:
        return of_place, of_place[:1]
    first = np.zeros(int(of_place.max(initial=-1)) + 1, np.int32)
    grouped = np.flatnonzero(of_place >= 0)[::-1]
    first[of_place[grouped]] = grouped
    return of_place, first


@dataclass(frozen=True, slots=True)
class AggregateInput:
    """Events, when result rows show them, in which group they are, what they add to a match, and how that is shown."""

    events: Events
    clock: Clock
    group_of: Int32  # [places] by GROUP BY, and by partition if each has ticks of its own; -1 for none
    first_of_group: Int32  # [groups] the first place of each
    measures: Measures
    decoders: list[Decoder]  # of each aggregate

    @staticmethod
    def of(
        query: BoundQuery, alternatives: tuple[Alternative, ...], events: Events, *, by_schema: bool = False
    ) -> AggregateInput:
        """Return the input for a query; `by_schema` as in `measures_of`."""
        clock = clock_of(query, events)
        measures, decoders = measures_of(query, alternatives, events, by_schema=by_schema)
        return AggregateInput(events, clock, *_groups_of(query, events, clock), measures, decoders)


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
class KeyTotals(Timeline):
    """The totals of each key, ordered by (key, stamp). If keys are groups, and numbered alike, those of each group."""

    key: Int32


def is_last(*columns: np.ndarray) -> Bool:
    """Return which rows the next one does not equal in all columns."""
    is_last = np.ones(columns[0].size, np.bool_)
    is_last[:-1] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return is_last
