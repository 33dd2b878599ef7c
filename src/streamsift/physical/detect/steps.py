"""Plan the steps and negations of one scope: the statement's, or that of a negated sub-pattern."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from streamsift.logical import bound as b
from streamsift.logical.bound import OrderedConjunction
from streamsift.physical.detect.definition_windows import last_leaves, upper_edge
from streamsift.physical.detect.equalities import Equalities
from streamsift.physical.plan import MIRRORED, Edge, Limit, Negation, Pair, Step


@dataclass(slots=True)
class Scope:
    """Plans the positive part of a pattern, or of a negated sub-pattern, and the negations inside it."""

    query: b.BoundQuery
    scope: int
    outer: dict[int, int]  # steps of the patterns around, by variable
    equal: Equalities

    def plan(self, node: b.Node, lower: Limit, upper: Limit) -> tuple[tuple[Step, ...], tuple[Negation, ...]]:
        first = len(self.outer)
        place = dict(self.outer)
        for variable in node.leaves():
            place[variable] = len(place)
        after: dict[int, tuple[int, ...]] = {}
        found: list[tuple[b.Negated, Limit, Limit]] = []
        self.walk(node, (), lower, upper, place, after, found)
        predicates = self._predicates(place)
        steps = tuple(step_of(predicates, v, place, after[v]) for v, number in place.items() if number >= first)
        negations = [self.negation(negated, low, high, place) for negated, low, high in found]
        return steps, tuple(replace(n, ready=self.ready(n, steps, first)) for n in negations)

    def ready(self, negation: Negation, around: tuple[Step, ...], first: int) -> int:
        """The step after which all is bound that a negation refers to, or that does not count in its interval."""
        last = first + len(around) - 1
        if self.scope == b.ROOT_SCOPE and negation.is_at_an_edge:
            return last  # an edge of the window follows from the whole match
        used = {*negation.steps_used(), *negation.crossed(around, first)}
        return max(first, *(step for step in used if step <= last))

    def _predicates(self, place: dict[int, int]) -> list[b.Predicate]:
        """The scope's own predicates, equalities as ties to what is bound first.

        A piece applies only where all its variables are bound: not in the other branch of an OR.
        """
        own = [p for p in self.query.predicates if p.scope == self.scope and place.keys() >= set(p.variables)]
        return self.equal.needed(own, place, len(self.outer))

    def walk(
        self,
        node: b.Node,
        preceding: tuple[int, ...],
        lower: Limit,
        upper: Limit,
        place: dict[int, int],
        after: dict[int, tuple[int, ...]],
        found: list[tuple[b.Negated, Limit, Limit]],
    ) -> None:
        """Hands order and bounds down: a component of a SEQ is bounded by its positive neighbours, or inherits."""
        match node:
            case b.Leaf():
                after[node.variable] = preceding
            case b.Negated():
                found.append((node, lower, upper))
            case b.Conjunction() if not isinstance(node, OrderedConjunction):
                for child in node.children:
                    self.walk(child, preceding, lower, upper, place, after, found)
            case b.Sequence() | OrderedConjunction():
                parts = [tuple(place[v] for v in child.leaves()) for child in node.children]
                lasts = [tuple(place[v] for v in last_leaves(child)) for child in node.children]
                for number, child in enumerate(node.children):
                    before = next((p for p in reversed(lasts[:number]) if p), ())
                    behind = next((p for p in parts[number + 1 :] if p), ())
                    bounds = isinstance(node, b.Sequence)  # AND hands its own on, whatever the order
                    low = Limit(Edge.AFTER, before) if before and bounds else lower
                    high = Limit(Edge.BEFORE, behind) if behind and bounds else upper
                    self.walk(child, before or preceding, low, high, place, after, found)
            case b.SubPattern():
                if node.window is not None:  # its own outermost: its edges are those of its own events and window
                    own = tuple(place[v] for v in node.child.leaves())
                    lower = Limit(Edge.WINDOW_START, own, node.name)
                    upper = Limit(upper_edge(node), own, node.name)
                self.walk(node.child, preceding, lower, upper, place, after, found)

    def negation(self, negated: b.Negated, lower: Limit, upper: Limit, place: dict[int, int]) -> Negation:
        inner = Scope(self.query, negated.scope, place, self.equal.inner())
        steps, negations = inner.plan(negated.child, lower, upper)
        return Negation(len(place), lower, upper, steps, negations, ready=len(place) - 1)


def step_of(predicates: list[b.Predicate], variable: int, place: dict[int, int], after: tuple[int, ...]) -> Step:
    """The step that binds a variable, with every predicate of its scope that is complete once it is bound."""
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
                reads |= {place[v] for v in predicate.variables}
    # The candidates are looked up by the equalities with one earlier step: the one that has most of them.
    shared = Counter(pair.earlier for pair in equalities).most_common(1)
    lookup = tuple(p for p in equalities if shared and p.earlier == shared[0][0])
    rest = tuple(p for p in equalities if p not in lookup)
    reads.discard(number)
    return Step(variable, after, tuple(local), lookup, (*rest, *pairs), tuple(filters), tuple(sorted(reads)))


def _pair(expression: b.Expr, place: dict[int, int]) -> Pair:
    assert isinstance(expression, b.Operation)
    left, right = expression.operands
    (left_variable,), (right_variable,) = left.variables, right.variables
    if place[left_variable] < place[right_variable]:
        return Pair(place[left_variable], expression.op, left, right)
    return Pair(place[right_variable], MIRRORED[expression.op], right, left)
