"""Build the tree of the prefixes of plans that begin alike, and estimate its cost.

The prefix tree is that of "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns", section 4.1:
queries whose patterns begin alike share the counters of the common prefix. Here it also serves the two-stack strategy.
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
    """A prefix: that of its parent, then one more step, after which `negated` must not occur before the next.

    Numbered depth first, so that the prefixes that extend a node are the `size` numbers from its number on.
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


# --- steps of several queries ------------------------------------------------------------------------------------


def signature(query: b.BoundQuery, step: Step) -> object:
    """Return the condition of a step, without the name of its variable."""
    return query.variables[step.variable].event_class, tuple(anonymous(predicate) for predicate in step.local)


def comparable_steps(plan: AggregatePlan) -> Iterator[tuple[object, Step, tuple[Step, ...]]]:
    """Yield each step and the negation after it, with a key that is equal for equal ones of all queries."""
    query, alternative = plan.query, plan.branches[0].alternative
    for number, step in enumerate(alternative.steps):
        negated = tuple(n.steps[0] for n in alternative.negations if n.lower.steps == (number,))
        yield (signature(query, step), frozenset(signature(query, n) for n in negated)), step, negated


@dataclass(slots=True)
class CommonVariables:
    """The variables of the query that stands for several: one for each step that they share."""

    variables: list[b.Variable] = field(default_factory=list)

    def add(self, query: b.BoundQuery, *steps: Step) -> tuple[Step, ...]:
        """Return the steps, each with a new variable."""
        first = len(self.variables)
        self.variables += [replace(query.variables[s.variable], index=first + n) for n, s in enumerate(steps)]
        return tuple(Step(first + number, (), step.local) for number, step in enumerate(steps))

    def query(self, members: Members) -> b.BoundQuery:
        """Return a query with these variables and all columns that any of the queries reads."""
        columns = {field.name: field for plan in members.values() for field in plan.query.schema}
        first = next(iter(members.values())).query
        return replace(first, variables=tuple(self.variables), schema=pa.schema(columns.values()))


# --- the tree ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Growing:
    """A node while the tree grows."""

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
    """Append a node and its descendants, depth first; return their number."""
    place = len(nodes)
    nodes.append(TreeNode(parent, depth, 0, node.step, node.negated))
    terminals |= dict.fromkeys(node.ends, place + 1)
    size = 1 + sum(_number(child, place + 1, depth + 1, nodes, terminals) for child in node.children.values())
    nodes[place] = replace(nodes[place], size=size)
    return size


# --- cost --------------------------------------------------------------------------------------------------------

# Going backwards, a shared step updates every prefix that extends it, but side by side: 8 cost about as much as 1.
SIDE_BY_SIDE = 8.0

# Walking a tree instead of the levels of one pattern: counts without a window and in one, other aggregates. Measured on
# two to nine queries; in a window that holds few starts, two take longer together, and three as long.
WALKING = 3.0
WALKING_IN_WINDOWS = 4.1
WALKING_WITH_SUMS = 4.5


def separate_cost(members: Members) -> float:
    """Return the counters touched for one event of every step of every query, forwards and backwards."""
    return sum(2.0 * len(plan.branches[0].alternative.steps) ** 2 for plan in members.values())


def shared_cost(tree: SharedTree) -> float:
    walking = WALKING if tree.strategy is Strategy.PREFIX else WALKING_IN_WINDOWS
    if any(aggregate.function != "COUNT" for aggregate in tree.query.aggregates):
        walking = WALKING_WITH_SUMS
    return walking * sum(node.depth + node.size / SIDE_BY_SIDE for node in tree.nodes)
