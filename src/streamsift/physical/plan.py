"""The physical plan of detection: how the engine will find the matches of a flat sequence, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from streamsift.logical.bound import BoundQuery, Expr


@dataclass(frozen=True, slots=True)
class Pair:
    """`earlier_side op this_side`: each side mentions one variable only, so each is one column of codes."""

    earlier: int  # number of the earlier step
    op: str
    earlier_side: Expr
    this_side: Expr


@dataclass(frozen=True, slots=True)
class Step:
    """Extends partial matches by one variable.

    `lookup`: equalities with ONE earlier step, that find the candidates by key instead of by scan.
    `pairs`: comparisons with earlier steps, checked code by code in the kernel.
    `filters`: every other predicate that is complete once this variable is bound.
    """

    variable: int
    local: tuple[Expr, ...]
    lookup: tuple[Pair, ...]
    pairs: tuple[Pair, ...]
    filters: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class DetectPlan:
    """`steps` in the order of the sequence; `keys` the columns that every variable of a match shares."""

    query: BoundQuery
    steps: tuple[Step, ...]
    keys: tuple[str, ...]
    reasons: tuple[str, ...]
