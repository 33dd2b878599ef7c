"""Build the tree of the prefixes of plans that begin alike, and estimate its cost.

The prefix tree is that of "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns", section 4.1:
queries whose patterns begin alike share the counters of the common prefix. Here it also serves the two-stack strategy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from streamsift.logical import bound as b
from streamsift.logical.expressions import anonymous
from streamsift.physical.plan import AggregatePlan, Branch, Step, Strategy

ROOT = 0


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A prefix: that of its parent, then one more step, after which `negated` must not occur before the next.

    Numbered depth first, so that the prefixes that go on from a node are the `size` numbers from its own on.
    """

    parent: int
    depth: int
    size: int
    step: Step
    negated: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class SharedTree:
    """Queries that one run counts; `nodes` from 1 on, `terminals` the node at which each query's pattern ends."""

    strategy: Strategy
    query: b.BoundQuery  # with a variable for each step, and the aggregates and columns that any of the queries has
    nodes: tuple[TreeNode, ...]
    terminals: dict[str, int]
    aggregates: dict[str, tuple[int, ...]]  # those of each query, by their numbers in `query`
    keys: tuple[str, ...]

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self.terminals)


Signature = tuple[b.EventClass, tuple[b.Expr, ...]]


def signature(query: b.BoundQuery, step: Step) -> Signature:
    """What a step accepts, whatever its variable is called."""
    return query.variables[step.variable].event_class, tuple(anonymous(predicate) for predicate in step.local)


# --- the tree ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Growing:
    """A node while the tree grows."""

    step: Step
    negated: tuple[Step, ...]
    children: dict[object, _Growing] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)


def tree_of(members: Mapping[str, AggregatePlan]) -> SharedTree:
    roots: dict[object, _Growing] = {}
    variables: list[b.Variable] = []
    asked: dict[object, b.AggregateOutput] = {}
    own: dict[str, list[object]] = {}

    for name, plan in members.items():
        query, branch = plan.query, plan.branches[0]
        here = roots
        variable_of: dict[int | None, int] = {}
        for number, step in enumerate(branch.alternative.steps):
            negated = negated_after(branch, number)
            key = (signature(query, step), frozenset(signature(query, n) for n in negated))
            if key not in here:
                here[key] = _Growing(owned(variables, query, step), tuple(owned(variables, query, n) for n in negated))
            node = here[key]
            variable_of[step.variable] = node.step.variable
            here = node.children
        node.ends.append(name)
        own[name] = []
        for aggregate in query.aggregates:
            moved = replace(aggregate, variable=variable_of.get(aggregate.variable))
            same = (moved.function, moved.variable, moved.column)
            asked.setdefault(same, moved)
            own[name].append(same)
    nodes: list[TreeNode] = []
    terminals: dict[str, int] = {}
    for root in roots.values():
        _number(root, ROOT, 1, nodes, terminals)
    first = next(iter(members.values()))
    query = replace(common_query(members, variables), aggregates=tuple(asked.values()))
    branch = first.branches[0]
    numbers = {same: number for number, same in enumerate(asked)}
    aggregates = {name: tuple(numbers[same] for same in wanted) for name, wanted in own.items()}
    return SharedTree(branch.strategy, query, tuple(nodes), terminals, aggregates, branch.keys)


def owned(variables: list[b.Variable], query: b.BoundQuery, step: Step) -> Step:
    """Return the step with a variable of the common query, which is added to its variables."""
    variables.append(replace(query.variables[step.variable], index=len(variables)))
    return Step(len(variables) - 1, (), step.local, (), (), ())


def common_query(members: Mapping[str, AggregatePlan], variables: list[b.Variable]) -> b.BoundQuery:
    """Return a query with these variables and all columns that any of the queries reads."""
    columns = {field.name: field for plan in members.values() for field in plan.query.schema}
    first = next(iter(members.values())).query
    return replace(first, variables=tuple(variables), schema=pa.schema(columns.values()))


def negated_after(branch: Branch, number: int) -> tuple[Step, ...]:
    return tuple(n.steps[0] for n in branch.alternative.negations if n.lower.steps == (number,))


def _number(node: _Growing, parent: int, depth: int, nodes: list[TreeNode], terminals: dict[str, int]) -> int:
    """Appends a node and what grows from it, depth first; returns how many they are."""
    place = len(nodes)
    nodes.append(TreeNode(parent, depth, 0, node.step, node.negated))
    terminals |= dict.fromkeys(node.ends, place + 1)
    size = 1 + sum(_number(child, place + 1, depth + 1, nodes, terminals) for child in node.children.values())
    nodes[place] = replace(nodes[place], size=size)
    return size


# --- cost --------------------------------------------------------------------------------------------------------


def separate_cost(members: Mapping[str, AggregatePlan]) -> float:
    """Counters touched for one event of every step of every query, forwards and backwards."""
    return sum(_touched(range(1, len(plan.branches[0].alternative.steps) + 1)) for plan in members.values())


def _touched(depths: range) -> float:
    return sum(2.0 * len(depths) for _ in depths)


# Going backwards, a shared step touches every prefix that goes on from it, but side by side: 8 cost about as much as 1.
SIDE_BY_SIDE = 8.0


# Walking a tree instead of the levels of one pattern: counts without a window and in one, other aggregates. Measured on
# two to nine queries; in a window that holds few starts, two take longer together, and three as long.
WALKING = 3.0
WALKING_IN_WINDOWS = 4.1
WALKING_WITH_SUMS = 4.5


def shared_cost(tree: SharedTree) -> float:
    walking = WALKING if tree.strategy is Strategy.PREFIX else WALKING_IN_WINDOWS
    if any(aggregate.function != "COUNT" for aggregate in tree.query.aggregates):
        walking = WALKING_WITH_SUMS
    return walking * sum(node.depth + node.size / SIDE_BY_SIDE for node in tree.nodes)
