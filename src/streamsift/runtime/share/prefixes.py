"""Count queries with a common prefix on one prefix tree, and return the totals of each query over time.

Events are symbols of an alphabet that the queries share. An event class with its single-event predicates extends or
clears prefixes of several queries. There is one symbol for each length of these prefixes, so that operations on longer
prefixes come before those on shorter ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamsift.logical.bound import BoundQuery
from streamsift.logical.expressions import anonymous
from streamsift.physical.plan import Alternative, Step, Strategy
from streamsift.physical.share import SharedTree, TreeNode
from streamsift.runtime.count import (
    AggregateInput,
    Counted,
    Layout,
    SymbolEvents,
    Timeline,
    arrange,
    count_layout,
    tree_of,
)
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events

MAX_NUMBERS = 1 << 26  # in the front: 512 MB


def parts_of(query: BoundQuery, nodes: Sequence[TreeNode], events: Events) -> list[SymbolEvents]:
    """Return the events of each symbol, and the prefixes 1, 2, ... that it adds to (positive) or clears (negative)."""
    steps: dict[object, Step] = {}
    lists: dict[tuple[object, int], list[int]] = {}
    for number, node in enumerate(nodes, start=1):
        for step, sign in ((node.step, 1), *((step, -1) for step in node.negated)):
            event_class = query.variables[step.variable].event_class
            key = event_class, tuple(anonymous(predicate) for predicate in step.local)
            steps.setdefault(key, step)
            lists.setdefault((key, sign * node.depth), []).append(sign * number)
    places = dict(zip(steps, candidates(Alternative(query, tuple(steps.values()), ()), events), strict=True))
    return [SymbolEvents(places[key], level, entries) for (key, level), entries in lists.items()]


def count_tree(shared: SharedTree, given: AggregateInput) -> Mapping[int, Timeline] | None:
    """Return the totals of every prefix at which a query ends; None if they would need too much memory."""
    counted = counted_tree(shared)
    strategy = shared.strategy if shared.strategy is Strategy.PREFIX else Strategy.TWO_STACK
    return count_layout(
        counted.lay_out(given), strategy, given.measures, counted.variables, counted.needed, max_numbers=MAX_NUMBERS
    )


def counted_tree(shared: SharedTree) -> Counted:
    """Return the prefixes of all queries, with the measures that each must carry."""
    tree = tree_of([node.parent for node in shared.nodes], list(shared.terminals.values()))
    node_of = {node.step.variable: number for number, node in enumerate(shared.nodes, start=1)}
    needed: list[set[int]] = [set() for _ in tree.parent]
    for name, terminal in shared.terminals.items():
        variables = {shared.query.aggregates[number].variable for number in shared.aggregates[name]}
        for node in tree.path[terminal]:
            needed[node] |= {node_of[variable] for variable in variables if variable is not None}

    def lay_out(given: AggregateInput) -> Layout:
        return arrange(parts_of(shared.query, shared.nodes, given.events), tree, given, given.group_of)

    return Counted(shared.query, shared.query.group_by, list(node_of), tree, needed, lay_out)
