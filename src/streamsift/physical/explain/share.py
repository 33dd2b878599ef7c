"""Describe which queries share counters, and how."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_expression
from streamsift.physical.plan import AggregatePlan, Step
from streamsift.physical.share import ChoppedQueries, SharingPlan, TreeNode, separate_cost, shared_cost


def describe_sharing(plan: SharingPlan) -> Iterator[str]:
    """Yield the prefix trees with the queries that end at each node, the pieces, and the queries that run alone."""
    for number, tree in enumerate(plan.trees, start=1):
        members = {name: p for name, p in plan.plans.items() if name in tree.terminals and isinstance(p, AggregatePlan)}
        steps = sum(len(p.branches[0].alternative.steps) for p in members.values())
        yield (
            f"prefix tree {number}: {len(members)} queries by {tree.strategy.value}; "
            f"{len(tree.nodes)} prefixes instead of {steps}; "
            f"estimated counter updates: {shared_cost(tree):.0f} instead of {separate_cost(members):.0f}"
        )
        for place, node in enumerate(tree.nodes, start=1):
            ends = [name for name, terminal in tree.terminals.items() if terminal == place]
            yield "  " * node.depth + _describe_node(tree.query, node) + (f"  → {', '.join(ends)}" if ends else "")
    for number, chopped in enumerate(plan.chops, start=1):
        yield from _describe_chopped(number, chopped)
    for name, reason in plan.alone.items():
        yield f"{name} runs alone: {reason}"


def _describe_chopped(number: int, chopped: ChoppedQueries) -> Iterator[str]:
    """Yield the pieces with the queries that use them, then the pieces of each query."""
    limit = f"while a window holds at most {chopped.most_starts:.0f} start events per piece on average"
    when = "as requested" if chopped.most_starts == inf else f"shared {limit}; otherwise each query runs alone"
    yield f"chop {number}: {len(chopped.routes)} queries from {len(chopped.first)} pieces, {when}"
    for piece, begin in enumerate(chopped.first):
        nodes = chopped.nodes[begin - 1 : begin - 1 + chopped.length(piece)]
        steps = "; ".join(_describe_node(chopped.query, node) for node in nodes)
        users = ", ".join(name for name, route in chopped.routes.items() if piece in route)
        yield f"  piece {piece + 1}: {steps}  ← {users}"
    for name, route in chopped.routes.items():
        yield f"  {name} = {' + '.join(f'piece {piece + 1}' for piece in route)}"


def _describe_node(query: b.BoundQuery, node: TreeNode) -> str:
    """Describe the last step of a prefix and the negations after it."""

    def rows(step: Step) -> str:
        variable = query.variables[step.variable]
        filters = "".join(f" and {describe_expression(predicate, query.variables)}" for predicate in step.local)
        return f"{variable.event_class.name}: {describe_class(variable.event_class, query.binding)}{filters}"

    return rows(node.step) + "".join(f", then not exists {rows(negated)}" for negated in node.negated)
