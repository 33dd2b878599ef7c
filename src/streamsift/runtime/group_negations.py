"""Matches with their groups in, whether a negation occurs in them out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamsift.physical.plan import Alternative, Limit, Negation, Pair, Step
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import Bool, Int32
from streamsift.runtime.nested import NestedSearch

CHUNK_TESTS = 1 << 12


class GroupNegations:
    """Tests negations whose numbering of steps is that of an alternative's groups."""

    def __init__(self, alternative: Alternative, events: Events) -> None:
        assert alternative.groups is not None
        self.alternative, self.events = alternative, events
        self.steps = alternative.groups.steps
        self.negations = tuple(alternative.groups.all_negations())
        self._searches: dict[int, tuple[NestedSearch, tuple[Step, ...], dict[int, Negation]]] = {}

    def occurs(self, negation: Negation, partials: Int32, inner: Int32) -> Bool:
        """For each match whether the negation occurs; elements `inner` [k, m] (-1 for none) do not forbid either."""
        search, steps, shifted = self._search(inner.shape[0])
        events = np.vstack([partials, inner]) if inner.shape[0] else partials
        bound = np.where(events < 0, partials[0], events)
        return search._occurs(shifted[id(negation)], steps, bound, partials)

    def _search(self, more: int) -> tuple[NestedSearch, tuple[Step, ...], dict[int, Negation]]:
        """The search with room for so many more bound events."""
        if more not in self._searches:
            filler = tuple(replace(self.steps[-1]) for _ in range(more))  # the last of a group: nothing refers to it
            shifted = {id(n): _shifted(n, len(self.steps), more) for n in self.negations}
            whole = Alternative(self.alternative.query, (*self.steps, *filler), tuple(shifted.values()))
            self._searches[more] = NestedSearch(whole, self.events, CHUNK_TESTS), whole.steps, shifted
        return self._searches[more]


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
