"""An alternative, its events and the caller's choices in, the matches out: slice by slice, each by the cheapest tree.

The stream is cut into slices; a slice owns the matches that start in it, so trees can change from one to the next
without losing or repeating a match. Rates and selectivities are measured in each slice. The tree changes when another
one is cheaper by a margin, so that noise does not make it go back and forth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from streamsift.physical.choices import Choices, PlanShape
from streamsift.physical.cost import CostModel, Statistics, cheapest
from streamsift.physical.plan import Alternative
from streamsift.physical.shapes import Tree, forced, is_left_deep
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import Int32
from streamsift.runtime.levels import Relations
from streamsift.runtime.measure import Measure
from streamsift.runtime.trees import TreeSearch

SLICE_PLACES = 1 << 17
SLICE_WINDOWS = 2  # a slice is at least this many windows long: what it reaches beyond its end is built again
MARGIN = 0.8  # another tree must cost less than this share of the current one


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which tree found the matches that start in [low, high), and what was expected of it."""

    low: int
    high: int
    tree: Tree
    statistics: Statistics


class AdaptiveSearch:
    """Finds the matches of one alternative; `places` are the candidates of each step.

    `left` finds those that start in an interval of places by the search of plain sequences; None if it cannot.
    `allowed` keeps those matches (as places) that no negation forbids; None if there is none.
    """

    def __init__(
        self,
        alternative: Alternative,
        events: Events,
        places: Sequence[Int32],
        choices: Choices,
        chunk: int,
        left: Callable[[int, int], Iterator[Int32]] | None = None,
        allowed: Callable[[Int32], Int32] | None = None,
    ) -> None:
        self.alternative, self.events, self.places = alternative, events, places
        self.choices, self.chunk, self.left, self.allowed = choices, chunk, left, allowed
        self.relations = Relations(alternative)
        self.measure = Measure(alternative, events, places, self.relations)
        self.log: list[Chosen] = []

    @cached_property
    def search(self) -> TreeSearch:
        return TreeSearch(self.alternative, self.events, self.places, self.relations, self.chunk)

    def matches(self) -> Iterator[Int32]:
        """Chunks [steps, m] of table rows."""
        tree: Tree | None = None
        for low, high in self._slices():
            statistics = self.measure.slice(low, high)
            tree = self._tree(statistics, tree)
            self.log.append(Chosen(low, high, tree, statistics))
            if self.left is not None and is_left_deep(tree):
                yield from self.left(low, high)
            else:
                for places in self.search.matches(tree, low, high):
                    allowed = places if self.allowed is None else self.allowed(places)
                    yield self.events.rows_at(allowed)

    def _tree(self, statistics: Statistics, current: Tree | None) -> Tree:
        count = len(statistics.counts)
        if self.choices.plan is not PlanShape.AUTO:
            return forced(self.choices.plan, range(count))
        best = cheapest(statistics, self.choices.cache)
        if current is None:
            return best
        model = CostModel(statistics)
        return best if model.cost(best) < MARGIN * model.cost(current) else current

    def _slices(self) -> Iterator[tuple[int, int]]:
        """A sequence is cut where there is a window; other patterns and windows are one slice."""
        count = self.events.rank.size
        in_partitions = bool(self.alternative.query.partition_by) and self.events.window is not None
        size = count
        if self.alternative.is_sequence and self.events.window is not None and not in_partitions:
            size = max(SLICE_PLACES, int(SLICE_WINDOWS * self.measure.width()))
        for low in range(0, count, size):
            yield low, min(count, low + size)
