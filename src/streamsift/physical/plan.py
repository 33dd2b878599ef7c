"""The physical plan of detection: how the engine will find the matches of a pattern, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from streamsift.logical.bound import BoundQuery, Expr, Ranking
from streamsift.physical.choices import Choices
from streamsift.physical.linear import LinearScore
from streamsift.physical.monotone import MonotoneObjective


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

    `after`: earlier steps whose events come strictly before this one's.
    `lookup`: equalities with ONE earlier step, that find the candidates by key instead of by scan.
    `pairs`: comparisons with earlier steps, checked code by code in the kernel.
    `filters`: every other predicate that is complete once this variable is bound; `reads` the earlier steps they name.
    """

    variable: int
    after: tuple[int, ...]
    local: tuple[Expr, ...]
    lookup: tuple[Pair, ...]
    pairs: tuple[Pair, ...]
    filters: tuple[Expr, ...]
    reads: tuple[int, ...] = ()


class Edge(Enum):
    """Where the interval of a negation begins or ends. The value is how explain spells it."""

    AFTER = "after"  # the last event of some steps
    BEFORE = "before"  # the first event of some steps
    WINDOW_START = "from end − w"  # the lower edge of an outermost pattern
    WINDOW_END = "to start + w"  # the upper edge of an outermost SEQ: postponed until time has passed it
    MATCH_END = "to the end of the match"  # the upper edge of an AND that no SEQ encloses


@dataclass(frozen=True, slots=True)
class Limit:
    edge: Edge
    steps: tuple[int, ...] = ()  # for AFTER and BEFORE, and those of a definition
    definition: str | None = None  # whose own window the edge is of; None: the statement's


@dataclass(frozen=True, slots=True)
class Negation:
    """A sub-pattern that must not occur in an interval.

    Its steps are numbered on from those of the pattern around it, `first` being the first: an inner step may refer to
    any step of the patterns that enclose it. `ready` is the outer step after which all that it refers to is bound.
    """

    first: int
    lower: Limit
    upper: Limit
    steps: tuple[Step, ...]
    negations: tuple[Negation, ...]
    ready: int

    @property
    def is_simple(self) -> bool:
        """Whether one search can decide it: no negation inside, no predicate that the kernel cannot test."""
        return not self.negations and not any(step.filters for step in self.steps)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to match: a choice at every OR. Its steps stand in the order of appearance."""

    query: BoundQuery
    steps: tuple[Step, ...]
    negations: tuple[Negation, ...]

    @property
    def is_sequence(self) -> bool:
        return all(step.after == (number - 1,) for number, step in enumerate(self.steps) if number)

    def all_steps(self) -> Iterator[Step]:
        """The steps, then those of all negations at any depth."""

        def inside(negations: tuple[Negation, ...]) -> Iterator[Step]:
            for negation in negations:
                yield from negation.steps
                yield from inside(negation.negations)

        yield from self.steps
        yield from inside(self.negations)


@dataclass(frozen=True, slots=True)
class DetectPlan:
    """All alternatives; `keys` are the columns that all variables of a match share, negated ones too."""

    query: BoundQuery
    alternatives: tuple[Alternative, ...]
    keys: tuple[str, ...]
    reasons: tuple[str, ...]
    choices: Choices = Choices()


@dataclass(frozen=True, slots=True)
class PathPlan:
    """A sequence whose matches are paths of a graph, apart for each value of `keys`; `compared` are (step, pair)."""

    alternative: Alternative
    score: LinearScore
    keys: tuple[str, ...]
    compared: tuple[tuple[int, Pair], ...]


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A pattern whose score rises with each variable's own part of each objective."""

    alternative: Alternative
    objectives: tuple[MonotoneObjective, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a pattern that is a sequence with objectives of its own; `steps` are its steps in the whole."""

    steps: tuple[int, ...]
    plan: PathPlan
    ranking: Ranking


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A pattern whose parts are ranked apart and merged by `function`; `before` are all pairs of steps in order."""

    alternative: Alternative
    components: tuple[Component, ...]
    function: str
    before: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RankPlan:
    """The k best of the matches; `detection` is the plan that would find them all.

    A branch for each alternative: its best paths, a merge of those of its parts, a rank join of its events, or the
    alternative itself where all its matches are enumerated; None where no match can have a score.
    """

    query: BoundQuery
    detection: DetectPlan
    branches: tuple[PathPlan | MergePlan | JoinPlan | Alternative | None, ...]
    reasons: tuple[str, ...]

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        return self.detection.alternatives

    @property
    def keys(self) -> tuple[str, ...]:
        return self.detection.keys


Plan = DetectPlan | RankPlan  # one class for each strategy; `streamsift.runtime.execute` has an engine for each
