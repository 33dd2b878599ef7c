"""Estimate the rows of a pattern's parts, and find the cheapest join tree.

Rows are expected numbers of sub-matches, assuming independent events. Costs are nanoseconds in the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import exp, inf, lgamma, prod

from streamsift.physical.plan import Cache, Join, JoinLeaf, PlanShape, Tree, forced, is_left_deep, steps_of, units_of

# Fitted by `python -m benchmarks.calibrate`, one core of a busy machine: off by 12 %, 23 % and 25 % on average.
OPEN_NS, SCAN_NS, BUILD_NS = 20.0, 7.5, 0.5  # the search in any order: per partial match, entry scanned, row built
LEFT_OPEN_NS, LEFT_SCAN_NS, LEFT_BUILD_NS = 7.8, 2.8, 1.1  # the search of plain sequences: ranges are known before
BLOCK_NS, BLOCK_OPEN_NS = 20.0, 0.4e6  # materialized subplans (blocks): per row, per block
MAX_BLOCK_ROWS = 20_000_000
MAX_STEPS = 12  # up to here, every tree of a SEQ and every order of an AND is considered


Option = tuple[float, Tree, tuple[int, ...]]  # cost, tree, and the steps that it joins


@dataclass(frozen=True, slots=True)
class Statistics:
    """Measured rates and selectivities. Selectivities are per pair of steps (i < j)."""

    counts: tuple[float, ...]  # candidates of each step
    in_window: tuple[float, ...]  # candidates of each step in one window
    equal: tuple[Mapping[tuple[int, int], float], ...]  # of equalities, one map per class of equal columns
    other: Mapping[tuple[int, int], float]  # of other comparisons, except definition windows, which limit the scan
    ordered: bool = True  # a SEQ: only one order of its events matches
    alike: float = 0.0  # events of a window with equal values for a comparison: the maximum over comparisons
    limits: tuple[tuple[frozenset[int], float], ...] = ()  # steps of a definition window, its share of the window


@dataclass(slots=True)
class CostModel:
    """Estimate rows and nanoseconds, with memoized rows."""

    statistics: Statistics
    _rows: dict[tuple[frozenset[int], bool], float] = field(default_factory=dict)

    def rows(self, steps: Iterable[int], *, compared: bool = True) -> float:
        """Return the expected sub-matches of these steps; without `compared`, before comparisons other than lookups."""
        key = frozenset(steps), compared
        if key not in self._rows:
            self._rows[key] = self._expected(sorted(key[0]), compared)
        return self._rows[key]

    def _expected(self, steps: Sequence[int], compared: bool) -> float:
        measured = self.statistics
        first, *others = steps
        rows = prod((measured.in_window[step] for step in others), start=measured.counts[first])
        if measured.ordered:
            rows *= exp(-lgamma(len(steps)))  # divided by (steps - 1)!
        for of in measured.equal:
            members = [step for step in steps if any(step in pair for pair in of)]
            rows = prod((of.get(pair, 1.0) for pair in pairwise(members)), start=rows)  # these imply the others
        for limited, share in measured.limits:
            rows *= share ** max(0, len(limited.intersection(steps)) - 1)
        return rows * self._selectivity(steps) if compared else rows

    def _selectivity(self, steps: Sequence[int]) -> float:
        """Return the share of combinations of steps that pass comparisons other than lookups."""
        other = self.statistics.other
        return prod(other.get(pair, 1.0) for pair in combinations(sorted(steps), 2)) if other else 1.0

    def _looked_up(self, bound: Sequence[int], unit: Sequence[int]) -> float:
        """Return the share of a unit's rows that pass the equalities with bound events."""
        between = {pair for i in bound for j in unit for pair in ((i, j), (j, i))}
        return prod(min((of[pair] for pair in of if pair in between), default=1.0) for of in self.statistics.equal)

    def cost(self, tree: Tree) -> float:
        if is_left_deep(tree) and self.statistics.ordered:
            return self._left_cost(steps_of(tree))
        first, *others = units_of(tree)
        total, steps = SCAN_NS * self.rows(steps_of(first)), steps_of(first)
        for unit in others:
            if isinstance(unit, Join):
                total += self.cost(unit)
            total += self.join_cost(steps, steps_of(unit))
            steps = (*steps, *steps_of(unit))
        return total

    def build_ns(self, tree: Tree) -> float:
        """Return the cost of writing one match."""
        return LEFT_BUILD_NS if is_left_deep(tree) and self.statistics.ordered else BUILD_NS

    def join_cost(self, bound: Sequence[int], unit: Sequence[int]) -> float:
        """Return the cost of extending every partial match by a unit: find its range, scan it, build rows."""
        together = (*bound, *unit)
        inside = self._selectivity(bound) * self._selectivity(unit)
        scanned = self.rows(together, compared=False) * inside
        total = OPEN_NS * self.rows(bound) + BUILD_NS * self.rows(together)
        if len(unit) > 1:
            # All sub-matches that start in the window are scanned, wherever they end.
            rows = self.rows(unit)
            in_window = rows / max(1.0, self.statistics.counts[min(unit)]) * self.statistics.in_window[min(unit)]
            scanned = max(scanned, self.rows(bound) * in_window / len(bound) * self._looked_up(bound, unit))
            total += BLOCK_OPEN_NS + BLOCK_NS * rows if rows < MAX_BLOCK_ROWS else inf
        return total + SCAN_NS * scanned

    def _left_cost(self, steps: Sequence[int]) -> float:
        """Return the cost of the sequence search, which skips events whose matches cannot end inside the window."""
        total = 0.0
        for number in range(1, len(steps) + 1):
            bound = steps[:number]
            ends = prod(1.0 - exp(-self.statistics.in_window[later] / number) for later in steps[number:])
            scanned = self.rows(bound, compared=False) * self._selectivity(bound[:-1])
            build_ns = LEFT_OPEN_NS if number < len(steps) else LEFT_BUILD_NS
            total += ends * (build_ns * self.rows(bound) + LEFT_SCAN_NS * scanned)
        return total


def cheapest(statistics: Statistics, cache: Cache = Cache.AUTO) -> Tree:
    """Return the cheapest tree over adjacent parts (SEQ), or the cheapest order (AND), by dynamic programming.

    A block caches the sub-matches of a part. `cache` on forces one if the pattern is long enough; off forbids blocks.
    """
    model = CostModel(statistics)
    count = len(statistics.counts)
    if not statistics.ordered:
        return _cheapest_order(model, count)
    if count > MAX_STEPS:
        return min((forced(shape, range(count)) for shape in (PlanShape.LEFT, PlanShape.RIGHT)), key=model.cost)
    best: dict[tuple[int, int], Option] = {
        (i, i): (SCAN_NS * statistics.counts[i], JoinLeaf(i), (i,)) for i in range(count)
    }
    for length in range(2, count + 1):
        for first in range(count - length + 1):
            last = first + length - 1
            middles = sorted({first, last - 1}) if cache is Cache.OFF else range(first, last)
            if cache is Cache.ON and length == count > 3:
                middles = range(first + 1, last - 1)
            splits = ((best[first, middle], best[middle + 1, last]) for middle in middles)
            best[first, last] = min((_joined(model, *split) for split in splits), key=lambda option: option[0])
    (cost, tree, _), left = best[0, count - 1], forced(PlanShape.LEFT, range(count))
    needs_block = cache is Cache.ON and count > 3
    return left if not needs_block and model.cost(left) <= cost else tree


def _joined(model: CostModel, left: Option, right: Option) -> Option:
    """Join two parts: a leaf extends the other part; a join on the right becomes a block (`units_of`)."""
    from_right = isinstance(left[1], JoinLeaf) and isinstance(right[1], JoinLeaf) and right[0] < left[0]
    is_left_last = from_right or (isinstance(left[1], JoinLeaf) and isinstance(right[1], Join))
    bound, unit = (right, left) if is_left_last else (left, right)
    total = bound[0] + model.join_cost(bound[2], unit[2]) + (0.0 if isinstance(unit[1], JoinLeaf) else unit[0])
    return total, Join(left[1], right[1], from_right), (*left[2], *right[2])


def _cheapest_order(model: CostModel, count: int) -> Tree:
    """Find the cheapest order of each set of steps, adding one step at a time; greedily if there are many steps."""
    states: dict[frozenset[int], tuple[float, Tree]] = {
        frozenset({step}): (SCAN_NS * model.rows((step,)), JoinLeaf(step)) for step in range(count)
    }
    for _ in range(count - 1):
        longer: dict[frozenset[int], tuple[float, Tree]] = {}
        kept = sorted(states.items(), key=lambda item: item[1][0])
        for steps, (cost, tree) in kept if count <= MAX_STEPS else kept[:1]:
            for step in sorted(set(range(count)) - steps):
                total = cost + model.join_cost(tuple(steps), (step,))
                if steps | {step} not in longer or total < longer[steps | {step}][0]:
                    longer[steps | {step}] = total, Join(tree, JoinLeaf(step))
        states = longer
    return min(states.values(), key=lambda item: item[0])[1]
