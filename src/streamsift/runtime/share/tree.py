"""Count queries that begin alike on one tree of prefixes: one pass returns the totals of every query over time."""

from __future__ import annotations

from streamsift.physical.plan import Strategy
from streamsift.physical.share import SharedTree
from streamsift.runtime.count import AggregateInput, Timeline, arrange, count_layout, tree_of
from streamsift.runtime.share.alphabet import parts_of

MAX_NUMBERS = 1 << 26  # in front, 512 MB


def count_tree(shared: SharedTree, given: AggregateInput) -> dict[int, Timeline] | None:
    """Return the totals of every prefix at which a query ends; None if they would take too much memory together."""
    tree = tree_of([node.parent for node in shared.nodes], list(shared.terminals.values()))
    layout = arrange(parts_of(shared.query, shared.nodes, given.events), tree, given, given.groups.of_place)
    node_of = {node.step.variable: number for number, node in enumerate(shared.nodes, start=1)}
    needed: list[set[int]] = [set() for _ in tree.parent]
    for name, terminal in shared.terminals.items():
        variables = {shared.query.aggregates[number].variable for number in shared.aggregates[name]}
        for node in tree.path[terminal]:
            needed[node] |= {node_of[variable] for variable in variables if variable is not None}
    strategy = shared.strategy if shared.strategy is Strategy.PREFIX else Strategy.TWO_STACK
    found = count_layout(layout, strategy, given.measures, list(node_of), needed, max_numbers=MAX_NUMBERS)
    return None if found is None else {node: totals.by_group() for node, totals in found.items()}
