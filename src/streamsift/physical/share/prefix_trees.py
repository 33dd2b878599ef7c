"""Build the prefix tree of plans with the same first steps, and estimate its cost.

The prefix tree is that of "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns", section 4.1:
queries with a common prefix share its counters. Here the tree also serves the two-stack strategy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from streamsift.logical import bound as b
from streamsift.logical.expressions import anonymous
from streamsift.physical.plan import AggregatePlan, Step, Strategy

ROOT = 0
Members = Mapping[str, AggregatePlan]  # queries by name


@dataclass(frozen=True, slots=True)
class TreeNode:
    """The prefix of its parent plus one step. `negated` must not occur between this step and the next.

    Nodes are numbered depth first, so a node and the prefixes that extend it have `size` consecutive numbers.
    """

    parent: int
    depth: int
    size: int
    step: Step
    negated: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class SharedTree:
    """Queries that share counters. `nodes` are numbered from 1; `terminals` has the node at which each query ends."""

    strategy: Strategy
    query: b.BoundQuery  # with a variable per step, and all aggregates and columns of the queries
    nodes: tuple[TreeNode, ...]
    terminals: dict[str, int]
    aggregates: dict[str, tuple[int, ...]]  # of each query, as numbered in `query`
    keys: tuple[str, ...]

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self.terminals)


# --- steps of several queries ------------------------------------------------------------------------------------


def signature(query: b.BoundQuery, step: Step) -> object:
    """Return the condition of a step without the name of its variable."""
    return query.variables[step.variable].event_class, tuple(anonymous(predicate) for predicate in step.local)


def comparable_steps(plan: AggregatePlan) -> Iterator[tuple[object, Step, tuple[Step, ...]]]:
    """Yield each step and the negations after it, with a key that is equal for equal steps of different queries."""
    query, alternative = plan.query, plan.branches[0].alternative
    for number, step in enumerate(alternative.steps):
        negated = tuple(n.steps[0] for n in alternative.negations if n.lower.steps == (number,))
        yield (signature(query, step), frozenset(signature(query, n) for n in negated)), step, negated


@dataclass(slots=True)
class CommonVariables:
    """The variables of the combined query, one per shared step."""

    variables: list[b.Variable] = field(default_factory=list)

    def add(self, query: b.BoundQuery, *steps: Step) -> tuple[Step, ...]:
        """Return the steps, each with a new variable."""
        first = len(self.variables)
        self.variables += [replace(query.variables[s.variable], index=first + n) for n, s in enumerate(steps)]
        return tuple(Step(first + number, (), step.local) for number, step in enumerate(steps))

    def query(self, members: Members) -> b.BoundQuery:
        """Return a query with these variables and all columns that the queries read."""
        columns = {field.name: field for plan in members.values() for field in plan.query.schema}
        first = next(iter(members.values())).query
        return replace(first, variables=tuple(self.variables), schema=pa.schema(columns.values()))


# --- the tree ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Growing:
    """A node while the tree is built."""

    step: Step
    negated: tuple[Step, ...]
    children: dict[object, _Growing] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)


def tree_of(members: Members) -> SharedTree:
    roots: dict[object, _Growing] = {}
    common = CommonVariables()
    distinct: dict[object, tuple[int, b.AggregateOutput]] = {}
    aggregates: dict[str, tuple[int, ...]] = {}
    for name, plan in members.items():
        children, variable_of = roots, dict[int | None, int]()
        for key, step, negated in comparable_steps(plan):
            if key not in children:
                first, *after = common.add(plan.query, step, *negated)
                children[key] = _Growing(first, tuple(after))
            node = children[key]
            variable_of[step.variable] = node.step.variable
            children = node.children
        node.ends.append(name)
        numbers = []
        for aggregate in plan.query.aggregates:
            moved = replace(aggregate, variable=variable_of.get(aggregate.variable))
            same = (moved.function, moved.variable, moved.column)
            numbers.append(distinct.setdefault(same, (len(distinct), moved))[0])
        aggregates[name] = tuple(numbers)
    nodes: list[TreeNode] = []
    terminals: dict[str, int] = {}
    for root in roots.values():
        _number(root, ROOT, 1, nodes, terminals)
    query = replace(common.query(members), aggregates=tuple(aggregate for _, aggregate in distinct.values()))
    branch = plan.branches[0]
    return SharedTree(branch.strategy, query, tuple(nodes), terminals, aggregates, branch.keys)


def _number(node: _Growing, parent: int, depth: int, nodes: list[TreeNode], terminals: dict[str, int]) -> int:
    """Append a node and its descendants, depth first; return how many."""
    place = len(nodes)
    nodes.append(TreeNode(parent, depth, 0, node.step, node.negated))
    terminals |= dict.fromkeys(node.ends, place + 1)
    size = 1 + sum(_number(child, place + 1, depth + 1, nodes, terminals) for child in node.children.values())
    nodes[place] = replace(nodes[place], size=size)
    return size


# --- cost --------------------------------------------------------------------------------------------------------

# Backwards, a shared step updates every prefix that extends it, side by side: 8 cost about as much as 1.
SIDE_BY_SIDE = 8.0

# Factors for walking a tree instead of the levels of one pattern: COUNT without and with a window, other aggregates.
# Measured on two to nine queries. If a window holds few starts, two queries take longer together, and three as long.
WALKING = 3.0
WALKING_IN_WINDOWS = 4.1
WALKING_WITH_SUMS = 4.5


def separate_cost(members: Members) -> float:
    """Return the counters updated, forwards and backwards, for one event of every step of every query."""
    return sum(2.0 * len(plan.branches[0].alternative.steps) ** 2 for plan in members.values())


def shared_cost(tree: SharedTree) -> float:
    walking = WALKING if tree.strategy is Strategy.PREFIX else WALKING_IN_WINDOWS
    if any(aggregate.function != "COUNT" for aggregate in tree.query.aggregates):
        walking = WALKING_WITH_SUMS
    return walking * sum(node.depth + node.size / SIDE_BY_SIDE for node in tree.nodes)
