"""Choose and run the kernels that compute the totals of each key over time.

`count_kernels` runs if the query has COUNT alone and no count can overflow 64 bits, else `measure_kernels`. If windows
contain few start events, start event marking (SEM) replaces the two stacks because it is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import njit

from streamsift.physical.count import SEM_NS_PER_START, TWO_STACK_NS_PER_LEVEL
from streamsift.physical.plan import Branch, Strategy
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.count import count_kernels, measure_kernels
from streamsift.runtime.count.count_kernels import largest_in_window
from streamsift.runtime.count.groups import AggregateInput, KeyTotals
from streamsift.runtime.count.measure_kernels import NO_TIMES, Log, Stacks, Visits
from streamsift.runtime.count.measures import Measures
from streamsift.runtime.count.operations import Layout, Operations, keys_of_places, lay_out
from streamsift.runtime.count.prefix_tree import TotalRecords, columns_of, loads_of
from streamsift.runtime.events.stamps import NEVER

LARGEST_COUNT = 2.0**62
SAMPLED = 10_000  # operations sampled to estimate the starts in a window


def count_branch(branch: Branch, given: AggregateInput, with_leaving: bool = False) -> KeyTotals:
    """Return the totals of a branch; `with_leaving` adds records for starts that leave the window."""
    layout = lay_out(branch, given, keys_of_places(branch, given))
    variables = [step.variable for step in branch.alternative.steps]
    totals = count_layout(
        layout, branch.strategy, given.measures, variables, may_mark=branch.may_mark, with_leaving=with_leaving
    )
    assert totals is not None
    return totals[layout.tree.levels]


def count_layout(
    layout: Layout,
    strategy: Strategy,
    measures: Measures,
    variables: Sequence[int],
    needed: Sequence[set[int]] | None = None,
    *,
    may_mark: bool = False,
    with_leaving: bool = False,
    max_numbers: float = math.inf,
) -> dict[int, KeyTotals] | None:
    """Return the totals of every prefix at which a query ends; None if they need more than `max_numbers` numbers.

    `variables` are the variables of prefixes 1, 2, ...; `needed` as in `columns_of`. With `may_mark`, start event
    marking may replace the strategy.
    """
    tree, operations = layout.tree, layout.operations
    room, is_count_alone = _room(layout, with_leaving), measures.shape == (1, 1, 0)
    has_window = strategy is not Strategy.PREFIX
    bound, starts = 0.0, 0
    if (has_window and max_numbers < math.inf) or (not _is_small(layout) if is_count_alone else has_window):
        bound, starts = largest_in_window(tree, operations)
    starts = int(starts) if has_window else 0
    columns, filled = None, room[:-1].copy()
    if is_count_alone and bound < LARGEST_COUNT:
        if starts * tree.parent.size > max_numbers:
            return None
        marking_ns = SEM_NS_PER_START * starts_together(operations, SAMPLED) if may_mark else math.inf
        if marking_ns < TWO_STACK_NS_PER_LEVEL * tree.levels:
            strategy = Strategy.SEM
        out = TotalRecords.room(int(room[-1]))
        _count(layout, strategy, with_leaving, out, filled)
    else:
        columns = columns_of(tree, loads_of(measures, variables), needed)
        written = int(room[-1]) * sum(columns.widths)
        if starts * int(columns.first[:, -1].sum()) + written > max_numbers:
            return None
        out = TotalRecords.room(int(room[-1]), columns.widths)
        if strategy is Strategy.SEM:
            measure_kernels.mark_starts(tree, columns, operations, with_leaving, out, filled)
        else:
            rows = 1 if strategy is Strategy.PREFIX else tree.levels + 1
            log, visits, stacks = Log.of(operations), Visits.of_all(operations), Stacks.room(1, rows, starts, columns)
            measure_kernels.multiply_windows(tree, columns, log, stacks, visits, NO_TIMES, with_leaving, out, filled)
    return {
        node: out.totals(slice(room[node], filled[node]), layout.group, columns, node)
        for node in np.flatnonzero(tree.ends).tolist()
    }


def _count(layout: Layout, strategy: Strategy, with_leaving: bool, out: TotalRecords, filled: Int64) -> None:
    tree, operations = layout.tree, layout.operations
    match strategy:
        case Strategy.PREFIX:
            count_kernels.count_prefixes(tree, operations, out, filled)
        case Strategy.SEM:
            count_kernels.mark_starts(operations, tree.levels, with_leaving, out, filled)
        case _:
            count_kernels.multiply_windows(tree, operations, with_leaving, out, filled)


def _is_small(layout: Layout) -> bool:
    """Return True if no key has enough operations for a count of LARGEST_COUNT."""
    # The product is largest if the operations are spread evenly over the levels.
    most = float(np.diff(layout.operations.offsets).max(initial=1))
    return max(p * math.log(most / p) for p in range(1, layout.tree.levels + 1)) < math.log(LARGEST_COUNT)


def _room(layout: Layout, with_leaving: bool) -> Int64:
    """Return the offset of each prefix's records [nodes + 1]: one per possible end of a match or leaving start."""
    tree, operations = layout.tree, layout.operations
    adds = np.repeat(layout.sizes, np.diff(operations.first_node))
    most = np.zeros(tree.parent.size, np.int64)
    is_adding = operations.nodes > 0
    np.add.at(most, operations.nodes[is_adding], adds[is_adding])
    if with_leaving:
        most += int((operations.until != NEVER - 1).sum())
    return np.append(0, np.cumsum(np.where(tree.ends, most, 0)))


@njit(cache=True, nogil=True)
def starts_together(operations: Operations, most: int) -> float:
    """Return the average number of starts in the window, over the first `most` operations."""
    seen, starts = 0, 0
    for key in range(operations.offsets.size - 1):
        first = after = operations.first_start[key]
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            while first < after and operations.until[first] < operations.stamp[i]:
                first += 1
            after += operations.level[i] == 1
            starts += after - first
            seen += 1
            if seen == most:
                return starts / seen
    return starts / max(1, seen)
