"""Matches with their groups in, whether a negation occurs in them out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamsift.logical.bound import BoundQuery
from streamsift.physical.detect import with_caching
from streamsift.physical.plan import Alternative, Cache, KleeneGroups, Limit, Negation, Pair, Step
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.negation import NestedSearch

CHUNK_TESTS = 1 << 12


class GroupNegations:
    """Tests the negations of an alternative's groups, whose steps they are numbered by."""

    def __init__(self, query: BoundQuery, groups: KleeneGroups, events: Events, cache: Cache) -> None:
        self.query, self.groups, self.events, self.cache = query, groups, events, cache
        self._searches: dict[tuple[int, int], NestedSearch] = {}

    def forbidden(self, empty: int, events: Int32, inner: Int32) -> Bool:
        """Which matches a negation of single events forbids; `empty` is the bit mask of their empty groups.

        `events` [steps, m] are the single events and the ends of the groups. Elements `inner` [k, m], in negations'
        intervals where AND lets groups overlap them, do not forbid either.
        """
        if not next(decided.negations for decided in self.groups.decided if decided.empty == empty):
            return np.zeros(events.shape[1], np.bool_)
        return self._search(empty, inner.shape[0]).forbidden(np.vstack([events, inner]))

    def _search(self, empty: int, more: int) -> NestedSearch:
        """The negations for these empty groups, with room for so many more bound events."""
        if (empty, more) not in self._searches:
            groups, any_event = self.groups, Step(self.groups.any_event, (), (), (), (), ())
            steps = list(groups.steps)
            for number, growing in enumerate(groups.growing):
                if empty >> number & 1:
                    steps[growing.first] = steps[growing.first + 1] = any_event
            negations = next(decided.negations for decided in groups.decided if decided.empty == empty)
            shifted = tuple(_shifted(negation, len(steps), more) for negation in negations)
            whole = with_caching(Alternative(self.query, (*steps, *[any_event] * more), shifted))
            self._searches[empty, more] = NestedSearch(whole, self.events, CHUNK_TESTS, self.cache)
        return self._searches[empty, more]


def _shifted(negation: Negation, first: int, more: int) -> Negation:
    """The negation with the steps from `first` on numbered higher, as more events are bound before them."""
    if not more:
        return negation

    def number(step: int) -> int:
        return step + more if step >= first else step

    def limit(old: Limit) -> Limit:
        return replace(old, steps=tuple(map(number, old.steps)))

    def pair(old: Pair) -> Pair:
        return replace(old, earlier=number(old.earlier))

    def step(old: Step) -> Step:
        return replace(
            old,
            after=tuple(map(number, old.after)),
            lookup=tuple(map(pair, old.lookup)),
            pairs=tuple(map(pair, old.pairs)),
            reads=tuple(map(number, old.reads)),
        )

    return replace(
        negation,
        first=number(negation.first),
        ready=number(negation.ready),
        lower=limit(negation.lower),
        upper=limit(negation.upper),
        steps=tuple(map(step, negation.steps)),
        negations=tuple(_shifted(inner, first, more) for inner in negation.negations),
    )
