"""Build join trees: an inner node joins two parts of the pattern, a leaf is a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from streamsift.physical.plan.options import PlanShape


@dataclass(frozen=True, slots=True)
class JoinLeaf:
    step: int


@dataclass(frozen=True, slots=True)
class Join:
    left: Tree
    right: Tree
    from_right: bool = False  # of two leaves, which is bound first


Tree = JoinLeaf | Join


def steps_of(tree: Tree) -> tuple[int, ...]:
    match tree:
        case JoinLeaf(step):
            return (step,)
        case Join(left, right):
            return (*steps_of(left), *steps_of(right))


def units_of(tree: Tree) -> list[Tree]:
    """The order in which a tree binds its parts, one after the other.

    A leaf extends what is bound on its other side. Where both sides are joins, the right one is built beforehand, as a
    block of sub-matches.
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
    """The tree of a shape over steps in the order of the pattern."""
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
    """Whether the steps are bound in the order of the pattern, one by one."""
    units = units_of(tree)
    return all(isinstance(unit, JoinLeaf) for unit in units) and units == [JoinLeaf(step) for step in steps_of(tree)]
