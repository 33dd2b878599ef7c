"""Describe the search for maximal groups: the possible elements of each match, and the rules between groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from streamsift.physical.plan import Key, KleeneGroups
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.events.reach import Reach
from streamsift.runtime.groups.elements import Elements

LEFT_SINGLE, LEFT, RIGHT_SINGLE, RIGHT, SIDE_FIELDS = range(5)


class GroupRules(NamedTuple):
    """The rules between maximal groups. Sets of groups are bit masks."""

    preceding: Int64  # [orders, groups] the groups that must come before each
    following: Int64  # [orders, groups] the groups that must come after each
    sequence: Int64  # [orders, groups] the groups in topological order
    may_be_empty: Bool  # [groups]
    swapped: Int64  # [orders, ANDs, SIDE_FIELDS] operands of AND in reverse order; LEFT_SINGLE < 0 if there are none
    by_end: bool
    keeps_end: bool
    extents: bool  # build groups of every extent, not only maximal ones


def rules_of(groups: KleeneGroups) -> GroupRules:
    each, orders, search = range(len(groups.growing)), groups.orders, groups.search

    def table(rows: list[list[int]]) -> Int64:
        return np.array(rows, np.int64).reshape(len(orders), len(each))

    swapped = np.full((len(orders), max(len(order.swapped) for order in orders), SIDE_FIELDS), -1, np.int64)
    for number, order in enumerate(orders):
        for pair, (left, right) in enumerate(order.swapped):
            swapped[number, pair] = (left.has_single, _bits(left.growing), right.has_single, _bits(right.growing))
    return GroupRules(
        preceding=table([[_bits(others) for others in order.preceding] for order in orders]),
        following=table([[_bits(g for g in each if n in o.preceding[g]) for n in each] for o in orders]),
        sequence=table([list(order.sequence) for order in orders]),
        may_be_empty=np.array([growing.may_be_empty for growing in groups.growing], np.bool_),
        swapped=swapped,
        by_end=search.by_end,
        keeps_end=search.keeps_end,
        extents=search.compared and not search.by_end,
    )


def _bits(members: Iterable[int]) -> int:
    return sum(1 << member for member in members)


class Problem(NamedTuple):
    """The possible elements of group g in order o of AND and column i: places[start[o, g, i]:stop[o, g, i]].

    Column i belongs to match `origins[i]`; a match has one column, or one per value of its keys. (With `rules` and
    `reach` as the first fields, the compiled kernels take up to 1.25 times as long.)
    """

    places: Int32
    start: Int64  # [orders, groups, columns]
    stop: Int64
    origins: Int64  # [columns]
    closed: Bool  # [groups, columns] groups that must be empty in a column
    some: Int64  # [keys, columns] groups (a bit mask) of which at least one must not be empty; 0 if all may be
    first: Int32  # [columns] the place of the earliest bound event, -1 if there is none
    last: Int32  # [columns] the place of the latest bound event
    rules: GroupRules
    reach: Reach

    @staticmethod
    def of(elements: Sequence[Elements], singles: Int32, rules: GroupRules, reach: Reach) -> Problem:
        """Combine the elements of each order and each group; a shared buffer is included once."""
        buffers = {id(each.places): each.places for each in elements}
        bases = dict(zip(buffers, accumulate((b.size for b in buffers.values()), initial=0), strict=False))
        matches = singles.shape[1]
        shape = *rules.preceding.shape, matches
        bound = singles if singles.size else np.full((1, matches), -1, np.int32)
        return Problem(
            places=np.concatenate(list(buffers.values())) if len(buffers) > 1 else elements[0].places,
            start=np.stack([each.start + bases[id(each.places)] for each in elements]).reshape(shape),
            stop=np.stack([each.stop + bases[id(each.places)] for each in elements]).reshape(shape),
            origins=np.arange(matches),
            closed=np.zeros(shape[1:], np.bool_),
            some=np.empty((0, matches), np.int64),
            first=bound.min(axis=0),
            last=bound.max(axis=0),
            rules=rules,
            reach=reach,
        )

    def columns(self, which: Int64) -> Problem:
        by_column = ("start", "stop", "origins", "closed", "some", "first", "last")
        tables: dict[str, Any] = {name: np.take(getattr(self, name), which, axis=-1) for name in by_column}
        return self._replace(**tables)

    def by_key(self, key: Key, codes: Int64) -> Problem:
        """Split each column by the values of a key: `[attr]` if no single event determines its value.

        If all groups of the key may be empty, one more column stands for that case; they are closed in it.
        """
        members = [number for number, _ in key.members]
        width = int(codes.max(initial=0)) + 1
        pairs: dict[tuple[int, int], Int64] = {}  # by order and member: (column, value) of each element, sorted
        sorted_places = []
        for order in range(self.start.shape[0]):
            for member in members:
                start, stop = self.start[order, member], self.stop[order, member]
                entries = np.concatenate([np.empty(0, np.int64), *map(np.arange, start, stop)])
                places = self.places[entries]
                pair = np.repeat(np.arange(self.origins.size), stop - start) * width + codes[places]
                by_pair = np.argsort(pair, kind="stable")
                pairs[order, member] = pair[by_pair]
                sorted_places.append(places[by_pair])
        values = distinct(np.concatenate([*pairs.values(), np.empty(0, np.int64)]))
        empty = np.arange(self.origins.size if self.rules.may_be_empty[members].all() else 0)
        split = self.columns(np.concatenate([values // width, empty]))
        is_empty = np.arange(split.origins.size) >= values.size
        base = self.places.size
        for (order, member), pair in pairs.items():
            split.start[order, member, : values.size] = base + np.searchsorted(pair, values, side="left")
            split.stop[order, member, : values.size] = base + np.searchsorted(pair, values, side="right")
            base += pair.size
        split.closed[members] |= is_empty
        some = np.where(is_empty, 0, _bits(members))
        return split._replace(places=np.concatenate([self.places, *sorted_places]), some=np.vstack([split.some, some]))
