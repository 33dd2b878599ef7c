"""Define the input that all AGG strategies read, and the totals over time that they return."""

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
    """Return the group of each place (-1 for none), and the first place of each group."""
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
    """Events with their stamps, groups and measures, and the decoders of the aggregates."""

    events: Events
    clock: Clock
    group_of: Int32  # [places] by GROUP BY, and by partition if each partition has its own ticks; -1 for none
    first_of_group: Int32  # [groups] the first place of each group
    measures: Measures
    decoders: list[Decoder]  # one per aggregate

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
    """The totals of each group over time, ordered by (group, stamp). A row is valid until the next row of its group."""

    group: Int32
    stamp: Int64
    ends: Bool  # True if a match ends at this stamp
    totals: Totals

    def at(self, rows: np.ndarray) -> Timeline:
        return Timeline(self.group[rows], self.stamp[rows], self.ends[rows], self.totals.at(rows))


@dataclass(frozen=True, slots=True)
class KeyTotals(Timeline):
    """The totals of each key over time, ordered by (key, stamp). If the keys are the groups, also a valid Timeline."""

    key: Int32


def is_last(*columns: np.ndarray) -> Bool:
    """Return a mask of the rows that differ from the next row in any column; the last row is included."""
    is_last = np.ones(columns[0].size, np.bool_)
    is_last[:-1] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return is_last
