"""Build join trees, and choose the search that finds the single events of an alternative.

An inner node of a join tree joins two parts of the pattern; a leaf is a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce

from streamsift.physical.plan.options import Condense, PlannerOptions, PlanShape
from streamsift.physical.plan.plan import Alternative


@dataclass(frozen=True, slots=True)
class JoinLeaf:
    step: int


@dataclass(frozen=True, slots=True)
class Join:
    left: Tree
    right: Tree
    from_right: bool = False  # of two leaves, the right one is bound first


Tree = JoinLeaf | Join


def steps_of(tree: Tree) -> tuple[int, ...]:
    match tree:
        case JoinLeaf(step):
            return (step,)
        case Join(left, right):
            return (*steps_of(left), *steps_of(right))


def units_of(tree: Tree) -> list[Tree]:
    """Return the parts of a tree in the order in which it binds them.

    A leaf extends the partial matches of its sibling. If both sides are joins, the right one is materialized first,
    as a block of sub-matches.
    """
    match tree:
        case Join(JoinLeaf() as leaf, JoinLeaf() as first, from_right=True):
            return [first, leaf]
        case Join(left, JoinLeaf() as leaf) | Join(JoinLeaf() as leaf, left):
            return [*units_of(left), leaf]
        case Join(left, right):
            return [*units_of(left), right]
        case _:
            return [tree]


def forced(shape: PlanShape, steps: Sequence[int]) -> Tree:
    """Return the tree of a given shape over steps in pattern order."""
    leaves: list[Tree] = [JoinLeaf(step) for step in steps]
    match shape:
        case PlanShape.RIGHT:
            return reduce(lambda right, left: Join(left, right, isinstance(right, JoinLeaf)), reversed(leaves))
        case PlanShape.BUSHY:
            return _balanced(leaves)
        case PlanShape.INNER if len(leaves) > 2:
            middle = len(leaves) // 2
            tree: Tree = Join(leaves[middle - 1], leaves[middle])
            for leaf in leaves[middle + 1 :]:
                tree = Join(tree, leaf)
            return reduce(lambda right, left: Join(left, right), reversed(leaves[: middle - 1]), tree)
        case _:
            return reduce(Join, leaves)


def _balanced(leaves: list[Tree]) -> Tree:
    if len(leaves) == 1:
        return leaves[0]
    half = (len(leaves) + 1) // 2
    return Join(_balanced(leaves[:half]), _balanced(leaves[half:]))


def is_left_deep(tree: Tree) -> bool:
    """Return True if the steps are bound one by one in pattern order."""
    units = units_of(tree)
    return all(isinstance(unit, JoinLeaf) for unit in units) and units == [JoinLeaf(step) for step in steps_of(tree)]


class SearchBy(Enum):
    """The three searches for single events."""

    NESTED = auto()  # depth first in pattern order; negations are checked during the search
    SEQUENCE = auto()  # depth first in time order, for sequences without negations
    TREES = auto()  # by join trees, chosen per slice; negations are checked on the matches


def search_by(alternative: Alternative, choices: PlannerOptions) -> SearchBy:
    """Return the search that runs with these options. The engine, explain and analyze all call this function."""
    if alternative.negations:
        return SearchBy.NESTED if choices.plan in (PlanShape.AUTO, PlanShape.LEFT) else SearchBy.TREES
    is_pair = len(alternative.steps) < 3 and choices.plan is PlanShape.AUTO and choices.condense is not Condense.ON
    is_plain = choices.plan is PlanShape.LEFT and choices.condense is Condense.OFF
    return SearchBy.SEQUENCE if alternative.is_sequence and (is_pair or is_plain) else SearchBy.TREES


def forced_tree(alternative: Alternative, choices: PlannerOptions) -> Tree | None:
    """Return the requested tree; None if the cost model chooses it."""
    if choices.plan is PlanShape.AUTO:
        return None
    # The halves of an AND may overlap in time, so it is bound event by event.
    is_bushy_and = choices.plan is PlanShape.BUSHY and not alternative.is_sequence
    return forced(PlanShape.LEFT if is_bushy_and else choices.plan, range(len(alternative.steps)))
