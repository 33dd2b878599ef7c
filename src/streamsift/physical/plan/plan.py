"""Declare the physical plans: how the engine finds, aggregates and ranks the matches of a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING

from streamsift.logical.bound import BoundQuery, Column, Expr, Variable
from streamsift.logical.describe import describe_expression
from streamsift.physical.plan.options import PlannerOptions, RankBy, Schedule
from streamsift.physical.plan.scores import LinearScore, MonotoneObjective

if TYPE_CHECKING:
    from streamsift.physical.plan.groups import GroupNegation, KleeneGroups


MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}  # the operator with its sides exchanged


@dataclass(frozen=True, slots=True)
class Pair:
    """`earlier_side op this_side`. Each side reads one variable, so each is one column of codes."""

    earlier: int  # number of the earlier step
    op: str
    earlier_side: Expr
    this_side: Expr

    @property
    def same_column(self) -> str | None:
        """Return the column x of `a.x = b.x`; None for any other comparison."""
        match self:
            case Pair(op="=", earlier_side=Column(name=one), this_side=Column(name=other)) if one == other:
                return one
        return None

    def describe(self, variables: tuple[Variable, ...]) -> str:
        earlier, this = (describe_expression(side, variables) for side in (self.earlier_side, self.this_side))
        return f"{earlier} {self.op} {this}"


@dataclass(frozen=True, slots=True)
class Step:
    """Extend partial matches by one variable."""

    variable: int
    after: tuple[int, ...]  # earlier steps whose events come strictly before this one's
    local: tuple[Expr, ...]
    lookup: tuple[Pair, ...] = ()  # equalities with ONE earlier step: a hash lookup replaces the scan
    pairs: tuple[Pair, ...] = ()  # comparisons with earlier steps, checked code by code in the kernel
    filters: tuple[Expr, ...] = ()  # every other predicate that is complete once this variable is bound
    reads: tuple[int, ...] = ()  # the earlier steps that the filters read

    @property
    def compared(self) -> tuple[Pair, ...]:
        return (*self.lookup, *self.pairs)


def is_sequence(steps: Sequence[Step], first: int) -> bool:
    """Return True if each of the steps, numbered from `first`, comes after the one before it."""
    return all(step.after == (number - 1,) for number, step in enumerate(steps[1:], start=first + 1))


class Edge(Enum):
    """One bound of the interval of a negation. `explain` prints the value."""

    AFTER = "after"  # the last event of some steps
    BEFORE = "before"  # the first event of some steps
    WINDOW_START = "from end − WITHIN"  # the lower bound in an outermost pattern
    WINDOW_END = "to start + WITHIN"  # the upper bound in an outermost SEQ: not final before this time has passed
    MATCH_END = "to the end of the match"  # the upper bound in an AND that no SEQ encloses


@dataclass(frozen=True, slots=True)
class Limit:
    edge: Edge
    steps: tuple[int, ...] = ()  # for AFTER and BEFORE, and those of a definition
    definition: str | None = None  # the definition whose window has this edge; None: the statement's


@dataclass(frozen=True, slots=True)
class Negation:
    """A sub-pattern that must not occur in an interval.

    Its steps continue the numbering of the enclosing pattern, from `first` on, so an inner step may refer to any step
    of the enclosing patterns. `ready` is the outer step after which every step that it refers to is bound.
    `never_cached` is the reason why a result cannot be reused for other partial matches; empty if it can.
    """

    first: int
    lower: Limit
    upper: Limit
    steps: tuple[Step, ...]
    negations: tuple[Negation, ...]
    ready: int
    never_cached: str = ""

    def walk(self) -> Iterator[Negation]:
        """Yield this negation and all inner ones, outer ones first."""
        yield self
        for inner in self.negations:
            yield from inner.walk()

    def all_steps(self) -> Iterator[Step]:
        """Yield the steps of this negation, then those of all inner ones."""
        for negation in self.walk():
            yield from negation.steps

    @property
    def needs_arrow(self) -> bool:
        """Return True if a kernel cannot test some predicate inside it, at any depth."""
        return any(step.filters for step in self.all_steps())

    @property
    def first_hit_ends_earliest(self) -> bool:
        """Return True if the earliest event is always the best choice: the steps are related only by their order."""
        is_free = not self.negations and all(
            not step.filters and all(pair.earlier < self.first for pair in step.compared) for step in self.steps
        )
        return is_free and is_sequence(self.steps, self.first)

    @property
    def holds_for_later_events(self) -> bool:
        """Return True if, once it occurs for one event of step `ready`, it occurs for all later events of that step.

        This holds if that step is only its upper bound: whatever lies before an event also lies before later ones.
        """
        if self.needs_arrow or self.is_at_an_edge or self.ready not in self.upper.steps:
            return False
        return self.ready not in {*self.lower.steps, *self.steps_read()}

    @property
    def is_at_an_edge(self) -> bool:
        """Return True if a window (of the statement or of a definition) bounds it on at least one side."""
        return self.lower.edge is not Edge.AFTER or self.upper.edge is not Edge.BEFORE

    def crossed(self, around: Sequence[Step], first: int) -> tuple[int, ...]:
        """Return the steps of the directly enclosing pattern, numbered from `first`, that may lie in its interval."""
        low, high = first, first + len(around)
        if is_sequence(around, first):
            after = self.lower.steps if self.lower.edge is Edge.AFTER else ()
            before = self.upper.steps if self.upper.edge is Edge.BEFORE else ()
            low = max((step + 1 for step in after if step >= first), default=low)
            high = min((step for step in before if step >= first), default=high)
        return tuple(range(low, high))

    def steps_used(self) -> set[int]:
        """Return the steps that its bounds and predicates, at any depth, refer to."""
        return {*self.lower.steps, *self.upper.steps, *self.steps_read()}

    def steps_read(self) -> set[int]:
        """Return the steps that its predicates and inner negations refer to."""
        compared = {pair.earlier for step in self.steps for pair in step.compared}
        filtered = {number for step in self.steps for number in step.reads}
        return compared.union(filtered, *(inner.steps_used() for inner in self.negations))


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to match the pattern: one branch of every OR. Steps are in the order of the query text.

    With Kleene variables (`groups`), the steps and negations are those of the single events, which are found first.
    """

    query: BoundQuery
    steps: tuple[Step, ...]
    negations: tuple[Negation, ...]
    groups: KleeneGroups | None = None

    @property
    def variables(self) -> frozenset[int]:
        """Return the variables of the query that it binds, including negated ones."""
        return self.groups.variables if self.groups else frozenset(step.variable for step in self.all_steps())

    @property
    def least_events(self) -> int:
        """Return the minimum number of events in a match."""
        chosen, growing = (self.groups.chosen, self.groups.growing) if self.groups else ((), ())
        return len(self.steps) + sum(c.size for c in chosen) + sum(not g.may_be_empty for g in growing)

    @property
    def is_sequence(self) -> bool:
        return is_sequence(self.steps, 0)

    def pairs_beyond(self, keys: Sequence[str]) -> tuple[tuple[int, Pair], ...]:
        """Return the comparisons that keys do not imply, also in negations, with the number of the later step."""
        numbered = [*enumerate(self.steps)]
        for negation in self.negations:
            numbered += enumerate(negation.steps, start=negation.first)
        pairs = ((number, pair) for number, step in numbered for pair in step.compared)
        return tuple((number, pair) for number, pair in pairs if pair.same_column not in keys)

    def joining_columns(self) -> tuple[str, ...]:
        """Return the columns in which every step equals an earlier one, and every negated one an event of the match."""
        others = [*self.steps[1:], *(step for negation in self.negations for step in negation.steps)]
        names = [dict.fromkeys(pair.same_column for pair in step.compared) for step in others]
        columns = dict.fromkeys(chain.from_iterable(names))
        return tuple(column for column in columns if column and all(column in of_step for of_step in names))

    def all_negations(self) -> Iterator[Negation | GroupNegation]:
        """Yield the outermost negations: those checked after groups are built, then those of the single events."""
        if self.groups is not None:
            yield from self.groups.negations()
        yield from self.negations

    def all_steps(self) -> Iterator[Step]:
        """Yield the steps, then those of Kleene variables, then those of all negations at any depth."""
        yield from self.steps
        if self.groups is not None:
            yield from self.groups.own_steps()
        for negation in self.all_negations():
            for inner in negation.walk():
                yield from inner.steps


@dataclass(frozen=True, slots=True)
class DetectPlan:
    """Find all matches. `keys` are the columns that are equal in all events of a match, including negated ones."""

    query: BoundQuery
    alternatives: tuple[Alternative, ...]
    keys: tuple[str, ...]
    reasons: tuple[str, ...]
    choices: PlannerOptions = PlannerOptions()


@dataclass(frozen=True, slots=True)
class Refused:
    """The reason why a strategy does not apply."""

    reason: str


@dataclass(frozen=True, slots=True)
class _OverMatches:
    """A plan over matches. `detection` is the plan that finds all of them."""

    detection: DetectPlan

    @property
    def query(self) -> BoundQuery:
        return self.detection.query

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        return self.detection.alternatives

    @property
    def keys(self) -> tuple[str, ...]:
        return self.detection.keys


class Strategy(Enum):
    """How the matches of one alternative are aggregated. The value is the name of the option."""

    PREFIX = "prefix"  # one counter per prefix of the pattern; without a window, nothing expires
    SEM = "sem"  # start event marking: counters per start event in the window
    TWO_STACK = "two-stack"  # the window as a product of linear maps in a two-stack queue
    PAIRS = "pairs"  # predicates between adjacent steps: dynamic programming over pairs of events
    DETECT = "detect"  # find the matches, then aggregate them


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative and how it is aggregated."""

    alternative: Alternative
    strategy: Strategy
    keys: tuple[str, ...]  # events are counted per value of these columns
    may_mark: bool = False  # switches to start event marking if a window holds few enough start events


@dataclass(frozen=True, slots=True)
class AggregatePlan(_OverMatches):
    """Aggregates over the matches of all branches, one per alternative."""

    branches: tuple[Branch, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathPlan:
    """A sequence whose matches are paths of a graph, one graph per value of `keys`."""

    alternative: Alternative
    score: LinearScore
    keys: tuple[str, ...]
    compared: tuple[tuple[int, Pair], ...]  # with the number of the later step
    by: RankBy = RankBy.LAZY  # lazily, or by an algorithm of the CPR thesis


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A pattern whose score is monotone in the contribution of each variable to each objective."""

    alternative: Alternative
    objectives: tuple[MonotoneObjective, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a pattern that is a sequence with its own score."""

    steps: tuple[int, ...]  # of the whole pattern
    plan: PathPlan | JoinPlan
    sum: int  # the number of the sum to which its score is added, multiplied by `scale`
    scale: float


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A pattern whose components are ranked separately and merged.

    Component scores are added to sums; MIN or MAX combines the sums of a group; the score is the least of the groups.
    """

    alternative: Alternative
    components: tuple[Component, ...]
    constants: tuple[float, ...]  # of each sum
    groups: tuple[int, ...]  # of each sum
    functions: tuple[str, ...]  # of each group
    before: tuple[tuple[int, int], ...]  # all pairs of steps in order
    key: tuple[tuple[int, Column], ...]  # for each component, a step and a column; all must be equal
    schedule: Schedule = Schedule.STATISTICS  # which component is read next
    looks_up: bool = False  # TA, not NRA
    keeps: bool = False  # reuses what was joined when the window moves: dTMM, not nTMM


# Best paths, a merge of components, a rank join of events, or the alternative itself if all its matches are enumerated;
# None if no match can have a score.
RankBranch = PathPlan | MergePlan | JoinPlan | Alternative | None


@dataclass(frozen=True, slots=True)
class RankPlan(_OverMatches):
    """The top k of the matches of all branches, one per alternative."""

    branches: tuple[RankBranch, ...]
    reasons: tuple[str, ...]
    with_ties: bool = False  # on a stream, rows carry the tie breakers, by which rankings are merged


Plan = DetectPlan | AggregatePlan | RankPlan  # runtime.execute has an engine for each
