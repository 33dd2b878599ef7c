"""Bound query in, physical plan out; what no strategy can evaluate raises UnsupportedQuery at its place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod

from streamsift.errors import Span, UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.logical.expressions import variables_of
from streamsift.optimizer.drop_implied_equalities import Side, column_sides
from streamsift.physical.choices import Choices
from streamsift.physical.definitions import last_leaves, positive_leaves, upper_edge, window_pairs
from streamsift.physical.plan import Alternative, DetectPlan, Edge, Limit, Negation, Pair, Plan, Step
from streamsift.physical.ranking import ranking

DEFAULTS = Choices()
MOST_ALTERNATIVES = 1_000
MOST_NEGATED_EVENTS = 62  # the search for them keeps a bit for each in one integer
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def plan(query: b.BoundQuery, choices: Choices = DEFAULTS) -> Plan:
    """The strategy for a query."""
    found = detection(query, choices)
    return ranking(found, choices.rank) if query.ranking else found


def detection(query: b.BoundQuery, choices: Choices) -> DetectPlan:
    """Detection, left to right, one alternative for each choice at the ORs."""
    _refuse_what_is_not_evaluated(query)
    alternatives = tuple(_alternative(query, node) for (node,) in or_free_forms(query.pattern))
    keys = _shared_columns(query, alternatives)
    return DetectPlan(query, alternatives, keys, tuple(_reasons(alternatives, keys)), choices)


def _refuse_what_is_not_evaluated(query: b.BoundQuery) -> None:
    def refuse(what: str, span: Span) -> UnsupportedQuery:
        return UnsupportedQuery(
            f"{what} cannot be evaluated yet",
            query.text,
            span,
            "this version finds patterns of single events with SEQ, AND, OR and `!`.",
        )

    if query.aggregates:
        raise refuse("aggregation (AGG)", query.aggregates[0].span)

    def visit(node: b.Node) -> None:
        match node:
            case b.Leaf():
                quantifier = query.variables[node.variable].quantifier
                if quantifier is not None:
                    raise refuse("a Kleene class (`+`, `*`, `[n]`)", quantifier.span)
            case b.Sequence() | b.Conjunction() | b.Disjunction():
                for child in node.children:
                    visit(child)
            case b.Negated():
                if len(positive_leaves(node.child)) > MOST_NEGATED_EVENTS:
                    raise refuse(f"a negated sub-pattern of more than {MOST_NEGATED_EVENTS} events", node.span)
                visit(node.child)
            case b.SubPattern():
                visit(node.child)

    visit(query.pattern)
    if (choices := _choices(query.pattern)) > MOST_ALTERNATIVES:
        raise UnsupportedQuery(
            f"the ORs of this pattern make {choices:,} alternatives, more than {MOST_ALTERNATIVES:,}",
            query.text,
            query.pattern.span,
            "several classes in one place are one class defined in WITH: X = (kind IN ('A', 'B')).",
        )


# --- alternatives ------------------------------------------------------------------------------------------------


def _choices(node: b.Node) -> int:
    """How many ways there are to choose at the ORs, negated ones included: each is planned on its own."""
    match node:
        case b.Disjunction():
            return sum(map(_choices, node.children))
        case b.Sequence() | b.Conjunction():
            return prod(map(_choices, node.children))
        case b.Negated() | b.SubPattern():
            return _choices(node.child)
        case _:
            return 1


def or_free_forms(node: b.Node) -> list[tuple[b.Node, ...]]:
    """The pattern without OR, once for each choice. A form is a tuple: !(x | y) is !x and !y, side by side."""
    match node:
        case b.Disjunction():
            return [form for child in node.children for form in or_free_forms(child)]
        case b.Negated():
            return [tuple(replace(node, child=inner) for (inner,) in or_free_forms(node.child))]
        case b.Sequence() | b.Conjunction():
            choices = product(*(or_free_forms(child) for child in node.children))
            return [(replace(node, children=tuple(chain.from_iterable(choice))),) for choice in choices]
        case b.SubPattern():
            return [(replace(node, child=inner),) for (inner,) in or_free_forms(node.child)]
        case _:
            return [(node,)]


def _alternative(query: b.BoundQuery, node: b.Node) -> Alternative:
    lower, upper = Limit(Edge.WINDOW_START), Limit(upper_edge(node))
    steps, negations = _Scope(query, b.ROOT_SCOPE, {}, {}).plan(node, lower, upper)
    alternative = Alternative(query, steps, negations)
    last = len(steps) - 1
    if not alternative.is_sequence:
        # An event of the match may lie inside a negation's interval, and does not forbid itself: all must be bound.
        return replace(alternative, negations=tuple(replace(n, ready=last) for n in negations))
    return alternative


@dataclass(slots=True)
class _Scope:
    """Plans the positive part of a pattern, or of a negated sub-pattern, and the negations inside it."""

    query: b.BoundQuery
    scope: int
    outer: dict[int, int]  # steps of the patterns around, by variable
    equal: dict[Side, Side]  # a union-find forest: what the patterns around make equal

    def plan(self, node: b.Node, lower: Limit, upper: Limit) -> tuple[tuple[Step, ...], tuple[Negation, ...]]:
        first = len(self.outer)
        place = dict(self.outer)
        for variable in positive_leaves(node):
            place[variable] = len(place)
        after: dict[int, tuple[int, ...]] = {}
        found: list[tuple[b.Negated, Limit, Limit]] = []
        self._walk(node, (), lower, upper, place, after, found)
        predicates = self._predicates(place)
        windows = window_pairs(node, place)
        steps = tuple(_step(predicates, v, place, after[v], windows.get(v, [])) for v, p in place.items() if p >= first)
        last = len(place) - 1
        negations = tuple(self._negation(negated, low, high, place, last) for negated, low, high in found)
        return steps, negations

    def _predicates(self, place: dict[int, int]) -> list[b.Predicate]:
        """The scope's own predicates, without equalities that others imply.

        A piece applies only where all its variables are bound: not in the other branch of an OR.
        """
        own = [p for p in self.query.predicates if p.scope == self.scope and place.keys() >= set(p.variables)]
        needed = []
        for predicate in sorted(own, key=lambda p: max((place[v] for v in p.variables), default=0)):
            sides = column_sides(predicate)
            if sides is not None:
                left, right = self._representative(sides[0]), self._representative(sides[1])
                if left == right:
                    continue
                self.equal[right] = left
            needed.append(predicate)
        return needed

    def _representative(self, side: Side) -> Side:
        while side in self.equal:
            side = self.equal[side]
        return side

    def _walk(
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
            case b.Conjunction():
                for child in node.children:
                    self._walk(child, preceding, lower, upper, place, after, found)
            case b.Sequence():
                parts = [tuple(place[v] for v in positive_leaves(child)) for child in node.children]
                lasts = [tuple(place[v] for v in last_leaves(child)) for child in node.children]
                for number, child in enumerate(node.children):
                    before = next((p for p in reversed(lasts[:number]) if p), ())
                    behind = next((p for p in parts[number + 1 :] if p), ())
                    low = Limit(Edge.AFTER, before) if before else lower
                    high = Limit(Edge.BEFORE, behind) if behind else upper
                    self._walk(child, before or preceding, low, high, place, after, found)
            case b.SubPattern():
                if node.window is not None:  # its own outermost: its edges are those of its own events and window
                    own = tuple(place[v] for v in positive_leaves(node.child))
                    lower = Limit(Edge.WINDOW_START, own, node.name)
                    upper = Limit(upper_edge(node), own, node.name)
                self._walk(node.child, preceding, lower, upper, place, after, found)

    def _negation(self, negated: b.Negated, lower: Limit, upper: Limit, place: dict[int, int], last: int) -> Negation:
        inner = _Scope(self.query, negated.scope, place, dict(self.equal))
        steps, negations = inner.plan(negated.child, lower, upper)
        at_an_edge = lower.edge is not Edge.AFTER or upper.edge is not Edge.BEFORE
        used = {*lower.steps, *upper.steps} | {step for step in _steps_used(steps, negations) if step <= last}
        return Negation(len(place), lower, upper, steps, negations, last if at_an_edge else max(used))


def _steps_used(steps: tuple[Step, ...], negations: tuple[Negation, ...]) -> set[int]:
    """The steps that predicates and bounds of a sub-pattern refer to."""
    used: set[int] = set()
    for step in steps:
        used |= {pair.earlier for pair in (*step.lookup, *step.pairs)} | set(step.reads)
    for negation in negations:
        used |= {*negation.lower.steps, *negation.upper.steps}
        used |= _steps_used(negation.steps, negation.negations)
    return used


# --- steps -------------------------------------------------------------------------------------------------------


def _step(
    predicates: list[b.Predicate], variable: int, place: dict[int, int], after: tuple[int, ...], windows: list[Pair]
) -> Step:
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
    return Step(variable, after, tuple(local), lookup, (*rest, *windows, *pairs), tuple(filters), tuple(sorted(reads)))


def _pair(expression: b.Expr, place: dict[int, int]) -> Pair:
    assert isinstance(expression, b.Operation)
    left, right = expression.operands
    (left_variable,), (right_variable,) = variables_of(left), variables_of(right)
    if place[left_variable] < place[right_variable]:
        return Pair(place[left_variable], expression.op, left, right)
    return Pair(place[right_variable], _MIRRORED[expression.op], right, left)


# --- keys --------------------------------------------------------------------------------------------------------


def _shared_columns(query: b.BoundQuery, alternatives: tuple[Alternative, ...]) -> tuple[str, ...]:
    """The columns whose equality joins all variables of every alternative: work can be split by them."""
    columns: list[str] = []
    for predicate in query.predicates:
        sides = column_sides(predicate)
        if sides is not None and sides[0][1] == sides[1][1] != b.TIME and sides[0][1] not in columns:
            columns.append(sides[0][1])
    return tuple(c for c in columns if all(_joins_all(query, alternative, c) for alternative in alternatives))


def _joins_all(query: b.BoundQuery, alternative: Alternative, column: str) -> bool:
    variables = {step.variable for step in alternative.all_steps()}
    links = []
    for predicate in query.predicates:
        sides = column_sides(predicate)
        if sides is not None and {sides[0], sides[1]} <= {(v, column) for v in variables}:
            links.append({sides[0][0], sides[1][0]})
    reached = {alternative.steps[0].variable}
    while more := {v for link in links if reached & link for v in link} - reached:
        reached |= more
    return reached == variables


def _reasons(alternatives: tuple[Alternative, ...], keys: tuple[str, ...]) -> list[str]:
    reasons = ["detect: the query asks for matches, so they are built, last and as row numbers"]
    longest = max(len(alternative.steps) for alternative in alternatives)
    if len(alternatives) > 1:
        reasons.append(f"OR: its {len(alternatives)} choices are found one after the other")
    if longest > 1:
        reasons.append("left to right: each step looks ahead from the event before it, within the window of the first")
    if any(alternative.negations for alternative in alternatives):
        reasons.append("negations: outer events first, then a search inside the interval that ends at the first hit")
    if keys:
        reasons.append(f"keyed by {', '.join(keys)}: every variable of a match shares it")
    elif longest > 1 or any(alternative.negations for alternative in alternatives):
        reasons.append("no key: no column is equal in all variables")
    return reasons
