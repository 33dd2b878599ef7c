"""An alternative, its events and the caller's choices in, the matches out: slice by slice, each by the cheapest tree.

The stream is cut into slices; a slice owns the matches that start in it, so trees can change from one to the next
without losing or repeating a match. Rates and selectivities are measured in each slice. The tree changes when another
one is cheaper by a margin, so that noise does not make it go back and forth.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from streamsift.errors import PlanTooLargeError
from streamsift.physical.detect import OPEN_NS, CostModel, Statistics, cheapest
from streamsift.physical.plan import (
    Alternative,
    Condense,
    JoinLeaf,
    PlannerOptions,
    PlanShape,
    Tree,
    forced,
    is_left_deep,
    steps_of,
    units_of,
)
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.detect.joins import TreeSearch
from streamsift.runtime.detect.relations import Comparison, Relations
from streamsift.runtime.detect.statistics import Measure
from streamsift.runtime.events.events import Events
from streamsift.runtime.resources import watch

LOG = logging.getLogger(__name__)
SLICE_PLACES = 1 << 18
SLICE_WINDOWS = 2  # a slice is at least this many windows long: what it reaches beyond its end is built again
MARGIN = 0.8  # another tree must cost less than this share of the current one
CONDENSED_PLACES, CONDENSED_WINDOWS = 1 << 13, 8  # slices that are condensed are shorter: lists reach over all of one
# Fitted by `python -m benchmarks.calibrate`, one core of a busy two-core machine: 36 runs, off by 7 % on average.
CONDENSE_PART_NS = 0.55e6  # to make the levels of a part at all
CONDENSE_EVENT_NS, CONDENSE_LEFT_NS = 48.0, 212.0  # to look for an event's partners; to group one that has some
PACK_NS = 49.0  # to pack an event for a search that is not condensed
CONDENSED_BUILD_NS = 24.0  # to write a match that was found by following lists
CONDENSE_ALIKE = 0.5  # so many other events of a window have an event's value, for one of the comparisons


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which tree found the matches that start in a part of a slice, what was expected of it, and what it built."""

    tree: Tree
    condensed: bool
    statistics: Statistics  # of the slice
    share: float  # of the slice
    expected: float  # matches
    rows: dict[frozenset[int], int]  # by the steps of a node; empty for the search of plain sequences
    matches: int
    left: int  # events that condensing did not leave out beforehand

    @property
    def surplus(self) -> float:
        """How many matches there were for each that was expected."""
        return (self.matches + 1) / (self.expected + 1)

    @property
    def partial_per_match(self) -> float:
        steps = len(self.statistics.counts)
        return sum(rows for part, rows in self.rows.items() if len(part) < steps) / (self.matches + 1)


class AdaptiveSearch:
    """Finds the matches of one alternative; `places` are the candidates of each step.

    It works on `chunk` partial matches at a time, and looks for `enough` matches. `left` finds those that start in an
    interval of places by the search of plain sequences; None if it cannot. `allowed` keeps those
    matches (as places) that no negation forbids; None if there is none.
    """

    def __init__(
        self,
        alternative: Alternative,
        events: Events,
        places: Sequence[Int32],
        choices: PlannerOptions,
        chunk: int,
        enough: int | None = None,
        left: Callable[[int, int], Iterator[Int32]] | None = None,
        allowed: Callable[[Int32], Int32] | None = None,
    ) -> None:
        self.alternative, self.events, self.places = alternative, events, places
        self.choices, self.left, self.allowed = choices, left, allowed
        self.chunk, self.enough = chunk, chunk if enough is None else enough
        self.relations = Relations(alternative)
        self.measure = Measure(alternative, events, places, self.relations, self._known)
        self.log: list[Chosen] = []
        self.may_keep = self.may_condense = True  # as long as what that takes fits into memory
        self._prices: tuple[Tree, Statistics, tuple[float, float]] | None = None

    @cached_property
    def search(self) -> TreeSearch:
        return TreeSearch(self.alternative, self.events, self.places, self.relations, self.chunk)

    def _known(self, comparison: Comparison, places: tuple[Int32, Int32]) -> list[Int64] | None:
        return self.search.packing.known(comparison, places) if "search" in self.__dict__ else None

    def matches(self) -> Iterator[Int32]:
        """Chunks [steps, m] of table rows."""
        tree: Tree | None = None
        for low, high in self._slices():
            statistics = self.measure.slice(low, high)
            tree = self._tree(statistics, tree)
            for start, stop in self._parts(tree, statistics, low, high):
                share = (stop - start) / (high - low)
                condensed = self._condense(tree, statistics, share)
                tree, condensed, chunks = self._begun(tree, start, stop, condensed)
                matches = 0
                for found in chunks:
                    matches += found.shape[1]
                    yield found
                left = self.search.condenser.left if condensed else 0
                expected = share * self._priced(tree, statistics)[1]
                built = self._rows_built()
                self.log.append(Chosen(tree, condensed, statistics, share, expected, built, matches, left))
                if (watched := watch()) is not None:
                    watched.reached(stop, self.events.rank.size)

    def _begun(self, tree: Tree, low: int, high: int, condensed: bool) -> tuple[Tree, bool, Iterator[Int32]]:
        """The search by a tree; by one that keeps less, if what it keeps does not fit and the caller did not choose."""
        try:
            return tree, condensed, self._found(tree, low, high, condensed)
        except PlanTooLargeError:
            if condensed and self.choices.condense is not Condense.ON:
                self.may_condense = False
            elif not condensed and self.choices.plan is PlanShape.AUTO:
                self.may_keep = False
            else:
                raise
        LOG.debug("what the search keeps does not fit into the memory limit: it keeps less from here on")
        return self._begun(tree if self.may_keep else self._left_deep, low, high, False)

    def _found(self, tree: Tree, low: int, high: int, condensed: bool) -> Iterator[Int32]:
        if self.left is not None and is_left_deep(tree) and not condensed:
            return self.left(low, high)
        chunks = self.search.matches(tree, low, high, condensed=condensed, enough=self.enough)
        return (self.events.rows_at(places if self.allowed is None else self.allowed(places)) for places in chunks)

    @property
    def _left_deep(self) -> Tree:
        return forced(PlanShape.LEFT, range(len(self.alternative.steps)))

    def _rows_built(self) -> dict[frozenset[int], int]:
        """What the search built since it was asked last."""
        built = dict(self.search.rows) if "search" in self.__dict__ else {}
        if built:
            self.search.rows.clear()
        return built

    def _tree(self, statistics: Statistics, current: Tree | None) -> Tree:
        count = len(statistics.counts)
        if self.choices.plan is not PlanShape.AUTO:
            # The halves of an AND may overlap in time: it is bound event by event.
            is_bushy_and = self.choices.plan is PlanShape.BUSHY and not statistics.ordered
            return forced(PlanShape.LEFT if is_bushy_and else self.choices.plan, range(count))
        if not self.may_keep:
            return self._left_deep
        best = cheapest(statistics, self.choices.cache)
        if current is None:
            return best
        model = CostModel(statistics)
        return best if model.cost(best) < MARGIN * model.cost(current) else current

    def _can_condense(self, tree: Tree) -> bool:
        """There must be something to compare, in a sequence bound event by event."""
        related = bool(self.relations.equal or self.relations.comparisons)
        linear = all(isinstance(unit, JoinLeaf) for unit in units_of(tree))
        is_open = self.may_condense and self.choices.condense is not Condense.OFF
        return is_open and related and linear and self.alternative.is_sequence and len(self.alternative.steps) > 1

    def _parts(self, tree: Tree, statistics: Statistics, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The parts of a slice to decide on, whether to condense; where it cannot pay, the slice is one."""
        size = high - low
        if self._can_condense(tree) and self.events.window is not None and self._may_pay(tree, statistics):
            longest = max(CONDENSED_PLACES, int(CONDENSED_WINDOWS * self.measure.width()))
            size = -(-size // max(1, round(size / longest)))
        for start in range(low, high, size):
            yield start, min(high, start + size)

    def _may_pay(self, tree: Tree, statistics: Statistics) -> bool:
        """What is not alike has no groups, and what is found at once needs none."""
        if self.choices.condense is Condense.ON:
            return True
        condensed_ns = CONDENSE_PART_NS + CONDENSE_EVENT_NS * sum(statistics.counts)
        search_ns = self._priced(tree, statistics)[0] + PACK_NS * sum(statistics.counts)
        return statistics.alike >= CONDENSE_ALIKE and condensed_ns < self._margin * search_ns

    def _condense(self, tree: Tree, statistics: Statistics, share: float) -> bool:
        """Whether a part of a slice is condensed: the search that it saves must cost more than making the groups.

        The first part is condensed where that may pay: it tells how many events and matches are left, as values that
        events share are rarely independent.
        """
        if not self._can_condense(tree) or not self._may_pay(tree, statistics):
            return False
        if self.choices.condense is Condense.ON:
            return True
        events = share * sum(statistics.counts)
        cost_ns, rows = self._priced(tree, statistics)
        search_ns = PACK_NS * events + share * cost_ns
        last = next((chosen for chosen in reversed(self.log) if chosen.condensed), None)
        if last is None:
            return True
        expected = share * rows
        matches = expected * self.log[-1].surplus
        search_ns -= CostModel(statistics).build_ns(tree) * (expected - matches)
        per_event_ns = CONDENSE_EVENT_NS + CONDENSE_LEFT_NS * last.left / (last.share * sum(last.statistics.counts))
        per_match_ns = CONDENSED_BUILD_NS + OPEN_NS * last.partial_per_match
        total_ns = CONDENSE_PART_NS + per_event_ns * events + per_match_ns * matches
        return total_ns < self._margin * search_ns

    def _priced(self, tree: Tree, statistics: Statistics) -> tuple[float, float]:
        """What a tree costs in a slice, and how many matches it is expected to find; parts of a slice ask the same."""
        if self._prices is None or self._prices[0] is not tree or self._prices[1] is not statistics:
            model = CostModel(statistics)
            self._prices = tree, statistics, (model.cost(tree), model.rows(steps_of(tree)))
        return self._prices[2]

    @property
    def _margin(self) -> float:
        """To change costs packing once more: to begin or to end after the first part, it must pay by a margin."""
        if not self.log:
            return 1.0
        return 1.0 / MARGIN if self.log[-1].condensed else MARGIN

    def _slices(self) -> Iterator[tuple[int, int]]:
        """A sequence is cut where there is a window; other patterns are one slice."""
        count = self.events.rank.size
        size = count
        if self.alternative.is_sequence and self.events.window is not None:
            longest = max(SLICE_PLACES, int(SLICE_WINDOWS * self.measure.width()))
            size = -(-count // max(1, round(count / longest)))  # all alike: a short one at the end costs as a long one
        for low in range(0, count, size):
            yield low, min(count, low + size)
