"""Check negations of single events on matches with Kleene groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from streamsift.logical.bound import BoundQuery
from streamsift.physical.detect import with_caching
from streamsift.physical.plan import Alternative, Cache, Decided, KleeneGroups, Negation, Pair, Step
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.negation import NestedSearch

CHUNK_TESTS = 1 << 12


class GroupNegations:
    """Check the negations of an alternative with groups; step numbers are those of `groups.steps`."""

    def __init__(self, query: BoundQuery, groups: KleeneGroups, events: Events, cache: Cache) -> None:
        self.query, self.groups, self.events, self.cache = query, groups, events, cache
        self._searches: dict[tuple[int, int], NestedSearch] = {}

    def forbidden(self, decided: Decided, events: Int32, inner: Int32) -> Bool:
        """Return a mask of the matches that a negation forbids; all matches have the empty groups of `decided`.

        `events` [steps, m] are the single events and the first and last elements of groups. AND can put the elements
        `inner` [k, m] into the interval of a negation; as events of the match they do not forbid it.
        """
        if not decided.negations:
            return np.zeros(events.shape[1], np.bool_)
        return self._search(decided, inner.shape[0]).forbidden(np.vstack([events, inner]))

    def _search(self, decided: Decided, more: int) -> NestedSearch:
        """Return a search for the negations, with `more` additional bound events."""
        if (decided.empty, more) not in self._searches:
            steps, any_event = list(self.groups.steps), Step(self.groups.any_event, (), (), (), (), ())
            for number, growing in enumerate(self.groups.growing):
                if decided.empty >> number & 1:
                    steps[growing.first] = steps[growing.first + 1] = any_event
            shifted = tuple(_shifted(negation, len(steps), more) for negation in decided.negations)
            whole = with_caching(Alternative(self.query, (*steps, *[any_event] * more), shifted))
            self._searches[decided.empty, more] = NestedSearch(whole, self.events, CHUNK_TESTS, self.cache)
        return self._searches[decided.empty, more]


def _shifted(negation: Negation, first: int, more: int) -> Negation:
    """Increase the numbers of steps from `first` on by `more`, to make room for additional bound events."""

    def numbers(steps: Iterable[int]) -> tuple[int, ...]:
        return tuple(step + more if step >= first else step for step in steps)

    def pairs(old: tuple[Pair, ...]) -> tuple[Pair, ...]:
        earlier = numbers(pair.earlier for pair in old)
        return tuple(replace(pair, earlier=number) for pair, number in zip(old, earlier, strict=True))

    steps = (
        replace(s, after=numbers(s.after), lookup=pairs(s.lookup), pairs=pairs(s.pairs), reads=numbers(s.reads))
        for s in negation.steps
    )
    lower, upper = (replace(limit, steps=numbers(limit.steps)) for limit in (negation.lower, negation.upper))
    first_step, ready = numbers((negation.first, negation.ready))
    inner = tuple(_shifted(each, first, more) for each in negation.negations)
    return replace(
        negation, first=first_step, ready=ready, lower=lower, upper=upper, steps=tuple(steps), negations=inner
    )
