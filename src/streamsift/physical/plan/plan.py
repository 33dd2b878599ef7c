"""Declare the physical plans: how the engine finds the matches of a pattern, step by step, and aggregates them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from streamsift.logical.bound import BoundQuery, Column, Expr
from streamsift.physical.plan.linear import LinearScore
from streamsift.physical.plan.monotone import MonotoneObjective
from streamsift.physical.plan.options import PlannerOptions, RankBy, Schedule

if TYPE_CHECKING:
    from streamsift.physical.plan.groups import KleeneGroups


MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}  # the operator with its sides exchanged


@dataclass(frozen=True, slots=True)
class Pair:
    """`earlier_side op this_side`: each side mentions one variable only, so each is one column of codes."""

    earlier: int  # number of the earlier step
    op: str
    earlier_side: Expr
    this_side: Expr

    @property
    def same_column(self) -> str | None:
        """The column x of `a.x = b.x`; None for any other comparison."""
        match self:
            case Pair(op="=", earlier_side=Column(name=one), this_side=Column(name=other)) if one == other:
                return one
        return None


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

    @property
    def compared(self) -> tuple[Pair, ...]:
        return (*self.lookup, *self.pairs)


def is_sequence(steps: Sequence[Step], first: int) -> bool:
    """Whether each of the steps, numbered from `first`, comes after the one before it."""
    return all(step.after == (number - 1,) for number, step in enumerate(steps[1:], start=first + 1))


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
    `never_cached` says why an answer cannot serve other partial matches; it is empty where one can.
    """

    first: int
    lower: Limit
    upper: Limit
    steps: tuple[Step, ...]
    negations: tuple[Negation, ...]
    ready: int
    never_cached: str = ""

    @property
    def needs_arrow(self) -> bool:
        """Whether some predicate inside it, at any depth, is none that a kernel can test."""
        return any(step.filters for step in self.all_steps())

    @property
    def first_hit_ends_earliest(self) -> bool:
        """Whether each step's earliest choice is the best one: its steps depend on each other by order only."""
        is_free = not self.negations and all(
            not step.filters and all(pair.earlier < self.first for pair in step.compared) for step in self.steps
        )
        return is_free and is_sequence(self.steps, self.first)

    @property
    def stays(self) -> bool:
        """Whether it occurs for every later choice of the step that decides it, if it does for one.

        So it is where that step is its upper bound and nothing else: what lies before an event lies before later ones.
        """
        if self.needs_arrow or self.is_at_an_edge or self.ready not in self.upper.steps:
            return False
        return self.ready not in {*self.lower.steps, *self.steps_read()}

    @property
    def is_at_an_edge(self) -> bool:
        """Whether a window bounds it, the statement's or a definition's own, on one side at least."""
        return self.lower.edge is not Edge.AFTER or self.upper.edge is not Edge.BEFORE

    def crossed(self, around: Sequence[Step], first: int) -> tuple[int, ...]:
        """The steps of the pattern right around it, numbered from `first`, whose events may lie in its interval."""
        stop = first + len(around)
        if not is_sequence(around, first):
            return tuple(range(first, stop))
        lower = self.lower.steps if self.lower.edge is Edge.AFTER else ()
        upper = self.upper.steps if self.upper.edge is Edge.BEFORE else ()
        after = max((step + 1 for step in lower if step >= first), default=first)
        before = min((step for step in upper if step >= first), default=stop)
        return tuple(range(after, before))

    def all_steps(self) -> Iterator[Step]:
        """Its steps, then those of all negations inside it."""
        yield from self.steps
        for inner in self.negations:
            yield from inner.all_steps()

    def steps_used(self) -> set[int]:
        """The steps that its bounds and predicates, at any depth, refer to."""
        return {*self.lower.steps, *self.upper.steps, *self.steps_read()}

    def steps_read(self) -> set[int]:
        """The steps that its predicates and the negations inside it refer to."""
        read = {pair.earlier for step in self.steps for pair in step.compared}
        read |= {number for step in self.steps for number in step.reads}
        return read.union(*(inner.steps_used() for inner in self.negations))


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to match: a choice at every OR. Its steps stand in the order of appearance.

    With Kleene variables (`groups`), steps and negations are those of the single events, which are found first.
    """

    query: BoundQuery
    steps: tuple[Step, ...]
    negations: tuple[Negation, ...]
    groups: KleeneGroups | None = None

    @property
    def variables(self) -> frozenset[int]:
        """The variables of the query that it binds, negated ones too."""
        return self.groups.variables if self.groups else frozenset(step.variable for step in self.all_steps())

    @property
    def least_events(self) -> int:
        """How many events a match has at least."""
        return len(self.steps) + (self.groups.least_events if self.groups else 0)

    @property
    def is_sequence(self) -> bool:
        return is_sequence(self.steps, 0)

    def pairs_beyond(self, keys: Sequence[str]) -> tuple[tuple[int, Pair], ...]:
        """Return the comparisons between its steps that keys do not cover, with the number of the later step."""
        numbered = ((number, pair) for number, step in enumerate(self.steps) for pair in step.compared)
        return tuple((number, pair) for number, pair in numbered if pair.same_column not in keys)

    def all_steps(self) -> Iterator[Step]:
        """The steps, then those of Kleene variables, then those of all negations at any depth."""

        def of_groups(groups: KleeneGroups) -> Iterator[Step]:
            yield from groups.own_steps()
            for negation in groups.negations():
                yield from negation.all_steps()
            for grouped in groups.group_negations():
                yield from of_groups(grouped.groups)

        yield from self.steps
        if self.groups is not None:
            yield from of_groups(self.groups)
        for negation in self.negations:
            yield from negation.all_steps()


@dataclass(frozen=True, slots=True)
class DetectPlan:
    """All alternatives; `keys` are the columns that all variables of a match share, negated ones too."""

    query: BoundQuery
    alternatives: tuple[Alternative, ...]
    keys: tuple[str, ...]
    reasons: tuple[str, ...]
    choices: PlannerOptions = PlannerOptions()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a strategy cannot do something."""

    reason: str


class _OverMatches:
    """A plan over the matches of another: it shares their alternatives and keys."""

    __slots__ = ()
    detection: DetectPlan

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        return self.detection.alternatives

    @property
    def keys(self) -> tuple[str, ...]:
        return self.detection.keys


class Strategy(Enum):
    """How the matches of one alternative are aggregated. The value is what users write."""

    PREFIX = "prefix"  # one counter for each prefix of the pattern: nothing ever leaves, there is no window
    SEM = "sem"  # start event marking: counters for each start event in the window
    TWO_STACK = "two-stack"  # the window as a product of linear maps in a two-stack queue
    PAIRS = "pairs"  # predicates between neighbours: dynamic programming over pairs of events
    DETECT = "detect"  # find the matches, then aggregate them


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative and how it is aggregated; `keys` are the columns by which its events are counted apart.

    With `may_mark`, starts are marked instead, where the events turn out to have so few in a window that it costs less.
    """

    alternative: Alternative
    strategy: Strategy
    keys: tuple[str, ...]
    may_mark: bool = False


@dataclass(frozen=True, slots=True)
class AggregatePlan(_OverMatches):
    """Aggregates over the matches of all branches; `detection` is the plan that would find them."""

    query: BoundQuery
    branches: tuple[Branch, ...]
    detection: DetectPlan
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathPlan:
    """A sequence whose matches are paths of a graph, apart for each value of `keys`; `compared` are (step, pair).

    `by` is how paths are found: lazily, or by an algorithm of the CPR thesis.
    """

    alternative: Alternative
    score: LinearScore
    keys: tuple[str, ...]
    compared: tuple[tuple[int, Pair], ...]
    by: RankBy = RankBy.LAZY


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A pattern whose score rises with each variable's own part of each objective."""

    alternative: Alternative
    objectives: tuple[MonotoneObjective, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a pattern that is a sequence with a score of its own; `steps` are its steps in the whole.

    Its score, `scale` times, goes into the sum with the number `sum`.
    """

    steps: tuple[int, ...]
    plan: PathPlan | JoinPlan
    sum: int
    scale: float


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A pattern whose parts are ranked apart and merged: sums of parts, in groups of MIN or MAX, the least of all.

    `constants` and `groups` are those of the sums, `functions` those of the groups; `before` are all pairs of steps in
    order; `key` is for each part a step and its column that must be equal in all parts. `schedule` says which part is
    read next.
    """

    alternative: Alternative
    components: tuple[Component, ...]
    constants: tuple[float, ...]
    groups: tuple[int, ...]
    functions: tuple[str, ...]
    before: tuple[tuple[int, int], ...]
    key: tuple[tuple[int, Column], ...]
    schedule: Schedule = Schedule.WABS
    looks_up: bool = False  # TA, not NRA
    keeps: bool = False  # what was read and joined when the window moves: dTMM, not nTMM


@dataclass(frozen=True, slots=True)
class RankPlan(_OverMatches):
    """The k best of the matches; `detection` is the plan that would find them all.

    A branch for each alternative: its best paths, a merge of those of its parts, a rank join of its events, or the
    alternative itself where all its matches are enumerated; None where no match can have a score.
    """

    query: BoundQuery
    detection: DetectPlan
    branches: tuple[PathPlan | MergePlan | JoinPlan | Alternative | None, ...]
    reasons: tuple[str, ...]


Plan = DetectPlan | AggregatePlan | RankPlan  # one class for each strategy, each with an engine in runtime.execute
