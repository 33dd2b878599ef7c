"""Plan the steps and negations of one scope: the statement or a negated sub-pattern.

The result of a negation depends on its interval and on the outer values that its predicates read. The cache key is the
interval start and these values; an entry serves all later lookups with the same key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamsift.logical import bound as b
from streamsift.physical.detect.definition_windows import last_leaves, upper_edge
from streamsift.physical.detect.equalities import Equalities
from streamsift.physical.plan import MIRRORED, Alternative, Edge, Limit, Negation, Pair, Step

Bounded = tuple[b.Negated, Limit, Limit]  # a negation and its interval


@dataclass(slots=True)
class Scope:
    """Plan the positive part of a pattern, or of a negated sub-pattern, and the negations inside it."""

    query: b.BoundQuery
    scope: int
    outer: dict[int, int]  # steps of the enclosing patterns, by variable
    equal: Equalities

    def plan(self, node: b.Node, lower: Limit, upper: Limit) -> tuple[tuple[Step, ...], tuple[Negation, ...]]:
        first = len(self.outer)
        place = self.outer | {variable: first + number for number, variable in enumerate(node.leaves())}
        parts = list(_ordered(node, (), lower, upper, place))
        after = {part.variable: preceding for part, preceding, _, _ in parts if isinstance(part, b.Leaf)}
        # A conjunct applies only if all its variables are bound, so not in another branch of OR.
        pieces = [p for p in self.query.predicates if p.scope == self.scope and place.keys() >= set(p.variables)]
        predicates = self.equal.needed(pieces, place, first)
        steps = tuple(step_of(predicates, v, place, after[v]) for v, number in place.items() if number >= first)
        negations = [self.negation(p, low, high, place) for p, _, low, high in parts if isinstance(p, b.Negated)]
        return steps, tuple(replace(n, ready=self.ready(n, steps, first)) for n in negations)

    def ready(self, negation: Negation, around: tuple[Step, ...], first: int) -> int:
        """Return the step after which every event is bound that a negation reads or that can lie in its interval."""
        last = first + len(around) - 1
        if self.scope == b.ROOT_SCOPE and negation.is_at_an_edge:
            return last  # a window bound depends on the whole match
        used = {*negation.steps_used(), *negation.crossed(around, first)}
        return max(first, *(step for step in used if step <= last))

    def negation(self, negated: b.Negated, lower: Limit, upper: Limit, place: dict[int, int]) -> Negation:
        inner = Scope(self.query, negated.scope, place, self.equal.inner())
        steps, negations = inner.plan(negated.child, lower, upper)
        return Negation(len(place), lower, upper, steps, negations, ready=len(place) - 1)


def bounded_negations(node: b.Node, lower: Limit, upper: Limit, place: Mapping[int, int]) -> list[Bounded]:
    """Return the negations of a pattern with their intervals; `place` has the step of each variable."""
    parts = _ordered(node, (), lower, upper, place)
    return [(part, low, high) for part, _, low, high in parts if isinstance(part, b.Negated)]


def _ordered(
    node: b.Node, preceding: tuple[int, ...], lower: Limit, upper: Limit, place: Mapping[int, int]
) -> Iterator[tuple[b.Leaf | b.Negated, tuple[int, ...], Limit, Limit]]:
    """Yield each leaf and negation with the steps directly before it and its bounds.

    A component of a SEQ is bounded by its positive neighbors; if there is none, it inherits the bounds of the SEQ.
    """
    match node:
        case b.Leaf() | b.Negated():
            yield node, preceding, lower, upper
        case b.Sequence() | b.OrderedConjunction():
            parts = [tuple(place[v] for v in child.leaves()) for child in node.children]
            lasts = [tuple(place[v] for v in last_leaves(child)) for child in node.children]
            for number, child in enumerate(node.children):
                before = next((p for p in reversed(lasts[:number]) if p), ())
                behind = next((p for p in parts[number + 1 :] if p), ())
                bounds = isinstance(node, b.Sequence)  # AND passes on its own bounds, in either order
                low = Limit(Edge.AFTER, before) if before and bounds else lower
                high = Limit(Edge.BEFORE, behind) if behind and bounds else upper
                yield from _ordered(child, before or preceding, low, high, place)
        case b.SubPattern(window=window) if window is not None:  # its own events and window bound it
            steps = tuple(place[v] for v in node.leaves())
            limits = Limit(Edge.WINDOW_START, steps, node.name), Limit(upper_edge(node), steps, node.name)
            yield from _ordered(node.child, preceding, *limits, place)
        case _:
            for child in node.children:
                yield from _ordered(child, preceding, lower, upper, place)


def step_of(predicates: list[b.Predicate], variable: int, place: dict[int, int], after: tuple[int, ...]) -> Step:
    """Return the step that binds a variable, with every predicate of its scope that can be evaluated then."""
    number = place[variable]
    local: list[b.Expr] = []
    equalities: list[Pair] = []
    pairs: list[Pair] = []
    filters: list[b.Expr] = []
    reads: set[int] = set()
    for predicate in predicates:
        if max((place[v] for v in predicate.variables), default=0) != number:
            continue
        match predicate.predicate_class:
            case b.PredicateClass.LOCAL | b.PredicateClass.CONSTANT:
                local.append(predicate.expression)
            case b.PredicateClass.EQUALITY:
                equalities.append(_pair(predicate.expression, place))
            case b.PredicateClass.PAIRWISE:
                pairs.append(_pair(predicate.expression, place))
            case _:
                filters.append(predicate.expression)
                reads |= {place[v] for v in predicate.variables} - {number}
    # The candidates are looked up by the equalities with one earlier step: the one that has most of them.
    shared = Counter(pair.earlier for pair in equalities).most_common(1)
    lookup = tuple(pair for pair in equalities if pair.earlier == shared[0][0])
    rest = tuple(pair for pair in equalities if pair not in lookup)
    return Step(variable, after, tuple(local), lookup, (*rest, *pairs), tuple(filters), tuple(sorted(reads)))


def _pair(expression: b.Expr, place: dict[int, int]) -> Pair:
    assert isinstance(expression, b.Operation)
    left, right = expression.operands
    (left_step,), (right_step,) = ([place[v] for v in side.variables] for side in (left, right))
    if left_step < right_step:
        return Pair(left_step, expression.op, left, right)
    return Pair(right_step, MIRRORED[expression.op], right, left)


# --- caching -----------------------------------------------------------------------------------------------------


def with_caching(alternative: Alternative) -> Alternative:
    """Set `never_cached` of each negation whose results cannot be cached."""
    marked = (_marked(alternative.query, n, alternative.steps, 0, ()) for n in alternative.negations)
    return replace(alternative, negations=tuple(marked))


def _marked(
    query: b.BoundQuery, negation: Negation, around: Sequence[Step], first: int, crossed: tuple[Step, ...]
) -> Negation:
    """Set `never_cached`. `around` are the directly enclosing steps; `crossed` are outer steps inside the interval."""
    crossed = (*crossed, *(around[number - first] for number in negation.crossed(around, first)))
    inner = (_marked(query, n, negation.steps, negation.first, crossed) for n in negation.negations)
    return replace(negation, never_cached=_why_not(query, negation, crossed), negations=tuple(inner))


def _why_not(query: b.BoundQuery, negation: Negation, crossed: tuple[Step, ...]) -> str:
    if negation.needs_arrow:
        return "its predicates are evaluated for batches of partial matches"
    if negation.lower.definition or negation.upper.definition:
        return "a definition window bounds it"
    if any(inner.upper == negation.upper for inner in negation.walk() if inner is not negation):
        return "an inner negation has the same end"
    classes = [query.variables[step.variable].event_class for step in negation.all_steps()]
    for step in crossed:
        variable = query.variables[step.variable]
        if any(variable.event_class.may_overlap(other) for other in classes):
            return f"{variable.name} can lie in its interval and must be ignored there"
    return ""


def value_reads(negation: Negation) -> dict[int, tuple[b.Expr, ...]]:
    """Return, per outer step, the expressions whose values determine the result."""
    sides: dict[int, dict[b.Expr, None]] = {}
    for step in negation.all_steps():
        for pair in step.compared:
            if pair.earlier < negation.first:
                sides.setdefault(pair.earlier, {})[pair.earlier_side] = None
    return {earlier: tuple(of_step) for earlier, of_step in sides.items()}
