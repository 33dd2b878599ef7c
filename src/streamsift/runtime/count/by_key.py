"""A branch that is counted without matching and its events in, the totals of each key over time out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from streamsift.physical.count import SEM_NS_PER_START, TWO_STACK_NS_PER_LEVEL
from streamsift.physical.plan import Branch, Strategy
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count import count_kernels, measure_kernels
from streamsift.runtime.count.count_kernels import Counts
from streamsift.runtime.count.measure_kernels import Records
from streamsift.runtime.count.measures import Measures, Totals
from streamsift.runtime.count.operations import NO_SEAL, Layout, Operations, lay_out
from streamsift.runtime.count.output import Groups, Timeline
from streamsift.runtime.count.prefix_measures import Loads
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import NEVER, Clock

LARGEST_COUNT = 2.0**62
LOOKED_AT = 10_000  # operations that tell how many starts a window holds


@dataclass(frozen=True, slots=True)
class KeyTotals:
    """The totals of each key from a stamp until its next; ordered by (key, stamp)."""

    key: Int32
    group: Int32
    stamp: Int64
    ends: Bool
    totals: Totals

    def by_group(self) -> Timeline:
        """The same, where every group has one key and they are numbered alike."""
        return Timeline(self.group, self.stamp, self.ends, self.totals)


def count_branch(
    branch: Branch, events: Events, clock: Clock, groups: Groups, measures: Measures, with_leaving: bool = False
) -> KeyTotals:
    """`with_leaving`: also a record where totals fall because a start leaves the window."""
    layout = lay_out(branch, events, clock, groups)
    strategy = _cheaper(branch, layout, measures)
    room = int((layout.operations.seal != NO_SEAL).sum())
    if with_leaving:
        room += int((layout.operations.leaving != NEVER).sum())
    if measures.is_count_alone and _is_simple(strategy, layout):
        found = _counted(strategy, layout, with_leaving, room)
        totals = Totals(found.total[:, None], found.size[:, None], np.empty((found.total.size, 0), np.int64))
        return KeyTotals(found.key, layout.group[found.key], found.stamp, found.ends, totals)
    records = _accumulated(branch, layout, with_leaving, room, measures)
    totals = Totals(records.integers, records.reals, records.least)
    return KeyTotals(records.key, layout.group[records.key], records.stamp, records.ends, totals)


def _cheaper(branch: Branch, layout: Layout, measures: Measures) -> Strategy:
    """The branch's strategy, or to mark starts, where that is left to the events and they have few in a window."""
    if not branch.may_mark or not measures.is_count_alone:
        return branch.strategy
    marking_ns = SEM_NS_PER_START * starts_together(layout.operations, LOOKED_AT)
    is_cheaper = marking_ns < TWO_STACK_NS_PER_LEVEL * layout.levels
    return Strategy.SEM if is_cheaper and _is_simple(Strategy.SEM, layout) else branch.strategy


def _is_simple(strategy: Strategy, layout: Layout) -> bool:
    """Whether the kernels for COUNT alone can count this; marking starts they need a bound for the counts."""
    if strategy is not Strategy.SEM:
        return True
    # A product is largest where all levels have as many: often that of all operations of a key is small enough.
    most_of_a_key = float(np.diff(layout.operations.offsets).max(initial=0))
    if (most_of_a_key / layout.levels) ** layout.levels < LARGEST_COUNT:
        return True
    return most_in_window(layout.operations, layout.levels) < LARGEST_COUNT


def _accumulated(branch: Branch, layout: Layout, with_leaving: bool, room: int, measures: Measures) -> Records:
    loads = loads_of(branch, measures)
    out = Records.room(room, loads)
    operations, levels = layout.operations, layout.levels
    match branch.strategy:
        case Strategy.PREFIX:
            written = measure_kernels.accumulate_prefixes(operations, levels, loads, out)
        case Strategy.SEM:
            written = measure_kernels.accumulate_starts(operations, levels, with_leaving, loads, out)
        case _:
            written = measure_kernels.accumulate_windows(operations, levels, with_leaving, loads, out)
    return out.written(written, loads)


def loads_of(branch: Branch, measures: Measures) -> Loads:
    """The measures by level instead of by variable; level 0 is never reached."""
    level_of = {step.variable: number for number, step in enumerate(branch.alternative.steps, start=1)}

    def levels(*variables: int) -> Int64:
        return np.array([level_of.get(variable, 0) for variable in variables], np.int64)

    places = measures.events.rank.size
    integers, reals, least = measures.integer_values, measures.real_values, measures.least_values
    counted = np.zeros((1, places))  # paths count themselves: no event adds to their number
    return Loads(
        np.append(0, levels(*measures.integer_variables)),
        np.vstack([counted.astype(np.int64), *integers]),
        np.append(0, levels(*measures.integer_variables, *measures.real_variables)),
        np.vstack([counted, *(np.abs(values.astype(np.float64)) for values in integers), *reals]),
        levels(*measures.least_variables),
        np.vstack(least) if least else np.empty((0, places), np.int64),
    )


def _counted(strategy: Strategy, layout: Layout, with_leaving: bool, room: int) -> Counts:
    out = Counts.room(room)
    match strategy:
        case Strategy.PREFIX:
            written = count_kernels.count_prefixes(layout.operations, layout.levels, out)
        case Strategy.SEM:
            written = count_kernels.mark_starts(layout.operations, layout.levels, with_leaving, out)
        case _:
            written = count_kernels.multiply_windows(layout.operations, layout.levels, with_leaving, out)
    return Counts(out.key[:written], out.stamp[:written], out.ends[:written], out.total[:written], out.size[:written])


@njit(cache=True, nogil=True)
def starts_together(operations: Operations, most: int) -> float:
    """How many starts are in the window at an operation, on average over about the first `most` operations."""
    seen, held = 0, 0
    for key in range(operations.offsets.size - 1):
        first = after = operations.first_start[key]
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            while first < after and operations.leaving[first] <= operations.stamp[i]:
                first += 1
            after += operations.level[i] == 1
            held += after - first
            seen += 1
            if seen == most:
                return held / seen
    return held / max(1, seen)


@njit(cache=True, nogil=True)
def most_in_window(operations: Operations, levels: int) -> float:
    """A bound for every count: the product of the most events of each level that are in the window together."""
    bound = 0.0
    most = np.zeros(levels + 1, np.int64)
    held = np.zeros(levels + 1, np.int64)
    for key in range(operations.offsets.size - 1):
        base = operations.first_start[key]
        first, after, tail = base, base, operations.offsets[key]
        held[:] = 0
        most[:] = 0
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            while first < after and operations.leaving[first] <= operations.stamp[i]:
                first += 1
                # Operations before the first start in the window are in no match of it.
                while tail < i and operations.level[tail] != 1:
                    held[max(operations.level[tail], 0)] -= 1
                    tail += 1
                if tail < i:
                    held[1] -= 1
                    tail += 1
            level = operations.level[i]
            if level > 0:
                held[level] += 1
                most[level] = max(most[level], held[level])
                after += level == 1
            else:
                held[0] += 1
        product = 1.0
        for level in range(1, levels + 1):
            product *= most[level]
        bound = max(bound, product)
    return bound
