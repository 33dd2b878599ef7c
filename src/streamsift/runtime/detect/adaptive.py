"""Find the matches of an alternative slice by slice, each with the cheapest join tree for its rates and selectivities.

A slice owns the matches that start in it, so the tree can change between slices without losing or repeating a match.
Rates and selectivities are measured in each slice. The tree only changes if another one is cheaper by a margin, so that
noise does not make it alternate.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from streamsift.errors import PlanTooLargeError
from streamsift.physical.detect import OPEN_NS, CostModel, Statistics, cheapest
from streamsift.physical.plan import (
    Alternative,
    Condense,
    PlannerOptions,
    PlanShape,
    Tree,
    forced,
    forced_tree,
    units_of,
)
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.detect.joins import TreeSearch
from streamsift.runtime.detect.relations import Comparison, Relations
from streamsift.runtime.detect.sequences import SequenceSearch
from streamsift.runtime.detect.statistics import Measure, window_places
from streamsift.runtime.events.events import Events
from streamsift.runtime.resources import current_progress

LOG = logging.getLogger(__name__)
SLICE_PLACES = 1 << 18
SLICE_WINDOWS = 2  # minimum length of a slice in windows: sub-matches beyond its end are built again in the next slice
MEMORY_PLACES = 1 << 15  # a search of more events measures them: that costs little then
MEMORY_USES = 64  # after that many searches, events are measured again
SIMILAR, FEW_PLACES = 3, 64  # numbers of candidates are similar if their ratio, beyond a few, is not larger
MARGIN = 0.8  # another tree must cost less than this share of the current one
CONDENSED_PLACES, CONDENSED_WINDOWS = 1 << 13, 8  # condensed parts are shorter than slices: their lists span all of one
# Fitted with `python -m benchmarks.calibrate` on one core of a busy two-core machine: 36 runs, mean error 7 %.
CONDENSE_PART_NS = 0.55e6  # fixed cost of condensing a part
CONDENSE_EVENT_NS, CONDENSE_LEFT_NS = 48.0, 212.0  # to search for an event's partners; to group an event that has some
PACK_NS = 49.0  # to pack an event for a search that is not condensed
CONDENSED_BUILD_NS = 24.0  # to build a match by following lists
CONDENSE_ALIKE = 0.5  # minimum number of other events in a window that share an event's value in some comparison


@dataclass(frozen=True, slots=True)
class SlicePart:
    """A part of a slice: the tree that was used for it, with expected and actual rows."""

    tree: Tree
    condensed: bool
    statistics: Statistics  # of the slice
    share: float  # of the slice
    expected: float  # matches
    rows: dict[frozenset[int], int]  # by the steps of a node; empty for the search of plain sequences
    matches: int
    left: int  # events that the semi-join reduction kept, if condensed

    @property
    def partial_per_match(self) -> float:
        steps = len(self.statistics.counts)
        return sum(rows for part, rows in self.rows.items() if len(part) < steps) / (self.matches + 1)


class SearchMemory:
    """What searches of the same alternative on other events found out: its relations, and a tree for similar events.

    A stream searches few events at a time. Measuring them to choose a tree would cost more than the search, and any
    tree finds the same matches.
    """

    def __init__(self, alternative: Alternative) -> None:
        self.relations = Relations(alternative)
        self._tree: Tree | None = None
        self._sizes: tuple[int, ...] = ()  # candidates of each step when the tree was chosen
        self._uses = 0

    def tree(self, places: Sequence[Int32]) -> Tree | None:
        """Return the tree that was chosen for similar numbers of candidates; None to choose again."""
        pairs = zip(self._sizes, (part.size for part in places), strict=False)
        is_fresh = self._tree is not None and self._uses < MEMORY_USES
        if not is_fresh or any(max(one, other) > SIMILAR * min(one, other) + FEW_PLACES for one, other in pairs):
            return None
        self._uses += 1
        return self._tree

    def remember(self, tree: Tree, places: Sequence[Int32]) -> None:
        self._tree, self._sizes, self._uses = tree, tuple(part.size for part in places), 0


class AdaptiveSearch:
    """Find the matches of one alternative; `places` are the candidates of each step.

    The search processes `chunk` partial matches at a time, and returns about `enough` matches at a time. `forbidden`
    returns a mask of the matches that a negation forbids; None if there is no negation. Unless it `counts_rows` for a
    report, parts that are bound in the order of a sequence use the faster search for plain sequences.
    """

    def __init__(
        self,
        alternative: Alternative,
        events: Events,
        places: Sequence[Int32],
        choices: PlannerOptions,
        chunk: int,
        enough: int | None = None,
        forbidden: Callable[[Int32], Bool] | None = None,
        *,
        counts_rows: bool = True,
    ) -> None:
        self.alternative, self.events, self.places = alternative, events, places
        self.choices, self.forbidden = choices, forbidden
        self.chunk, self.enough = chunk, chunk if enough is None else enough
        self.relations = Relations(alternative)
        self._memory: SearchMemory | None = None
        self.measure = Measure(alternative, events, places, self.relations, self._codes)
        self.log: list[SlicePart] = []
        self.may_keep = self.may_condense = True  # False once blocks, or successor lists, did not fit in memory
        self._forced, self._left_deep = forced_tree(alternative, choices), forced(PlanShape.LEFT, range(len(places)))
        self._in_order = alternative.is_sequence and not counts_rows
        self._joins: TreeSearch | None = None  # created on first use
        self._sequences: SequenceSearch | None = None
        self._prices: tuple[Tree, Statistics, tuple[float, float]] | None = None

    def sharing(self, memory: SearchMemory | None) -> AdaptiveSearch:
        """Use what earlier searches of the same alternative found out, and add to it; return this search."""
        if memory is not None and self.events.rank.size <= MEMORY_PLACES:
            self._memory, self.relations = memory, memory.relations
            self.measure = replace(self.measure, relations=memory.relations)
        return self

    @property
    def joins(self) -> TreeSearch:
        if self._joins is None:
            self._joins = TreeSearch(self.alternative, self.events, self.places, self.relations, self.chunk)
        return self._joins

    def _codes(self, comparison: Comparison, places: tuple[Int32, Int32]) -> list[Int64] | None:
        return None if self._joins is None else self._joins.packing.codes_at(comparison, places)

    def matches(self) -> Iterator[Int32]:
        """Yield chunks [steps, m] of places."""
        if self._memory is not None and (remembered := self._memory.tree(self.places)) is not None:
            yield from self._begun(remembered, 0, self.events.rank.size, False)[2]
            return
        tree: Tree | None = None
        for low, high in self._slices():
            statistics = self.measure.slice(low, high)
            tree = self._tree(statistics, tree)
            for start, end in self._parts(tree, statistics, low, high):
                share = (end - start) / (high - low)
                condensed = self._condense(tree, statistics, share)
                tree, condensed, chunks = self._begun(tree, start, end, condensed)
                matches = 0
                for places in chunks:
                    matches += places.shape[1]
                    yield places
                left = self.joins.condenser.left if condensed else 0
                expected = share * self._priced(tree, statistics)[1]
                built: dict[frozenset[int], int] = {}
                if self._joins is not None:
                    built, self._joins.rows = self._joins.rows, built
                self.log.append(SlicePart(tree, condensed, statistics, share, expected, built, matches, left))
                if (tracker := current_progress()) is not None:
                    tracker.update(end, self.events.rank.size)
        if self._memory is not None and tree is not None and self.log and not self.log[-1].condensed:
            self._memory.remember(tree, self.places)

    def _begun(self, tree: Tree, low: int, high: int, condensed: bool) -> tuple[Tree, bool, Iterator[Int32]]:
        """Start the search with a tree; if it does not fit in memory and was not requested, use one that keeps less."""
        try:
            return tree, condensed, self._chunks(tree, low, high, condensed)
        except PlanTooLargeError:
            if condensed and self.choices.condense is not Condense.ON:
                self.may_condense = False
            elif not condensed and self.choices.plan is PlanShape.AUTO:
                self.may_keep = False
            else:
                raise
        LOG.debug("the join plan does not fit into the memory limit; continuing with one that keeps less")
        return self._begun(tree if self.may_keep else self._left_deep, low, high, False)

    def _chunks(self, tree: Tree, low: int, high: int, condensed: bool) -> Iterator[Int32]:
        if self._in_order and tree == self._left_deep and not condensed:
            if self._sequences is None:
                self._sequences = SequenceSearch(self.alternative, self.events, self.places, self.chunk, self.enough)
            return self._sequences.matches(low, high)
        chunks = self.joins.matches(tree, low, high, condensed=condensed, enough=self.enough)
        forbidden = self.forbidden
        return chunks if forbidden is None else (places[:, ~forbidden(places)] for places in chunks)

    def _tree(self, statistics: Statistics, current: Tree | None) -> Tree:
        if self._forced is not None:
            return self._forced
        if not self.may_keep:
            return self._left_deep
        best, cost = cheapest(statistics, self.choices.cache), CostModel(statistics).cost
        return best if current is None or cost(best) < MARGIN * cost(current) else current

    def _can_condense(self, tree: Tree) -> bool:
        """Return True if condensing applies: a sequence with comparisons, bound event by event."""
        related = bool(self.relations.equal or self.relations.comparisons)
        is_linear = len(units_of(tree)) == len(self.places) > 1
        is_open = self.may_condense and self.choices.condense is not Condense.OFF
        return is_open and related and is_linear and self.alternative.is_sequence

    def _parts(self, tree: Tree, statistics: Statistics, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Return the parts of a slice, each to be condensed or not; the whole slice if condensing cannot pay."""
        may_condense = self._can_condense(tree) and self.events.window is not None and self._may_pay(tree, statistics)
        return self._cut(low, high, CONDENSED_PLACES, CONDENSED_WINDOWS) if may_condense else iter([(low, high)])

    def _may_pay(self, tree: Tree, statistics: Statistics) -> bool:
        """Return True if events share values, and the search costs more than grouping them."""
        if self.choices.condense is Condense.ON:
            return True
        condensed_ns = CONDENSE_PART_NS + CONDENSE_EVENT_NS * sum(statistics.counts)
        search_ns = self._priced(tree, statistics)[0] + PACK_NS * sum(statistics.counts)
        return statistics.alike >= CONDENSE_ALIKE and condensed_ns < self._margin * search_ns

    def _condense(self, tree: Tree, statistics: Statistics, share: float) -> bool:
        """Return True if a part of a slice should be condensed: grouping must cost less than the search it saves.

        The first part is condensed whenever that may pay. It shows how many events and matches are left, which cannot
        be estimated because shared values are rarely independent.
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
        matches = expected * (self.log[-1].matches + 1) / (self.log[-1].expected + 1)
        search_ns -= CostModel(statistics).build_ns(tree) * (expected - matches)
        per_event_ns = CONDENSE_EVENT_NS + CONDENSE_LEFT_NS * last.left / (last.share * sum(last.statistics.counts))
        per_match_ns = CONDENSED_BUILD_NS + OPEN_NS * last.partial_per_match
        total_ns = CONDENSE_PART_NS + per_event_ns * events + per_match_ns * matches
        return total_ns < self._margin * search_ns

    def _priced(self, tree: Tree, statistics: Statistics) -> tuple[float, float]:
        """Return the cost of a tree in a slice and its expected matches; computed once per slice."""
        if self._prices is None or self._prices[0] is not tree or self._prices[1] is not statistics:
            model = CostModel(statistics)
            self._prices = tree, statistics, (model.cost(tree), model.rows(range(len(self.places))))
        return self._prices[2]

    @property
    def _margin(self) -> float:
        """Return the factor that favors the current choice after the first part: a change packs the events again."""
        if not self.log:
            return 1.0
        return 1.0 / MARGIN if self.log[-1].condensed else MARGIN

    def _slices(self) -> Iterator[tuple[int, int]]:
        """Return the slices of a sequence with a window; other patterns are one slice."""
        count, has_slices = self.events.rank.size, self.alternative.is_sequence and self.events.window is not None
        return self._cut(0, count, SLICE_PLACES, SLICE_WINDOWS) if has_slices else iter([(0, count)])

    def _cut(self, low: int, high: int, places: int, windows: int) -> Iterator[tuple[int, int]]:
        """Yield parts of equal size, about `places` places or `windows` windows; a short last part would not pay."""
        longest = max(places, int(windows * window_places(self.events)))
        size = -(-(high - low) // max(1, round((high - low) / longest)))
        for start in range(low, high, size):
            yield start, min(high, start + size)
