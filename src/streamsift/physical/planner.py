"""Bound query in, physical plan out; what no strategy can evaluate raises UnsupportedQuery at its place."""

from __future__ import annotations

from collections import Counter

from streamsift.errors import Span, UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.logical.expressions import variables_of
from streamsift.optimizer.drop_implied_equalities import column_equality
from streamsift.physical.plan import DetectPlan, Pair, Step

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def plan(query: b.BoundQuery) -> DetectPlan:
    """Detection of a flat sequence, left to right."""
    order = _flat_sequence(query)
    place = {variable: number for number, variable in enumerate(order)}
    steps = tuple(_step(query, order[number], place) for number in range(len(order)))
    keys = shared_columns(query, order)
    return DetectPlan(query, steps, keys, tuple(_reasons(query, steps, keys)))


def _flat_sequence(query: b.BoundQuery) -> tuple[int, ...]:
    """The variables of a flat sequence in order; anything else is refused here, and only here."""

    def refuse(what: str, span: Span) -> UnsupportedQuery:
        return UnsupportedQuery(
            f"{what} cannot be evaluated yet",
            query.text,
            span,
            "this version finds flat sequences of single events: `A; B; C` or SEQ(A, B, C).",
        )

    if query.aggregates:
        raise refuse("aggregation (AGG)", query.aggregates[0].span)
    if query.ranking:
        raise refuse("ranking (PREF)", query.ranking.objectives[0].span)

    def leaves(node: b.Node) -> list[int]:
        match node:
            case b.Leaf():
                quantifier = query.variables[node.variable].quantifier
                if quantifier is not None:
                    raise refuse("a Kleene class (`+`, `*`, `[n]`)", quantifier.span)
                return [node.variable]
            case b.Sequence():
                return [variable for child in node.children for variable in leaves(child)]
            case b.Negated():
                raise refuse("negation (`!`)", node.span)
            case b.Conjunction():
                raise refuse("AND of patterns", node.span)
            case b.Disjunction():
                raise refuse("OR of patterns", node.span)
            case b.SubPattern():
                raise refuse(f"the definition `{node.name}`", node.span)

    return tuple(leaves(query.pattern))


def _step(query: b.BoundQuery, variable: int, place: dict[int, int]) -> Step:
    """The step that binds a variable, with every predicate that is complete once it is bound."""
    number = place[variable]
    local: list[b.Expr] = []
    equalities: list[Pair] = []
    pairs: list[Pair] = []
    filters: list[b.Expr] = []
    for predicate in query.predicates:
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
    # The candidates are looked up by the equalities with one earlier step: the one that has most of them.
    shared = Counter(pair.earlier for pair in equalities).most_common(1)
    lookup = tuple(p for p in equalities if shared and p.earlier == shared[0][0])
    rest = tuple(p for p in equalities if p not in lookup)
    return Step(variable, tuple(local), lookup, (*rest, *pairs), tuple(filters))


def _pair(expression: b.Expr, place: dict[int, int]) -> Pair:
    assert isinstance(expression, b.Operation)
    left, right = expression.operands
    (left_variable,), (right_variable,) = variables_of(left), variables_of(right)
    if place[left_variable] < place[right_variable]:
        return Pair(place[left_variable], expression.op, left, right)
    return Pair(place[right_variable], _MIRRORED[expression.op], right, left)


def shared_columns(query: b.BoundQuery, order: tuple[int, ...]) -> tuple[str, ...]:
    """The columns whose equality joins all variables of a match: work can be split by them."""
    links: dict[str, list[tuple[int, int]]] = {}
    for predicate in query.predicates:
        sides = column_equality(predicate)
        if sides is not None and sides[0][1] == sides[1][1] != b.TIME:
            links.setdefault(sides[0][1], []).append((sides[0][0], sides[1][0]))
    keys = []
    for column, pairs in links.items():
        reached = {order[0]}
        while more := {x for pair in pairs if reached & set(pair) for x in pair} - reached:
            reached |= more
        if reached == set(order):
            keys.append(column)
    return tuple(keys)


def _reasons(query: b.BoundQuery, steps: tuple[Step, ...], keys: tuple[str, ...]) -> list[str]:
    reasons = ["detect: the query asks for matches, so they are built, last and as row numbers"]
    if len(steps) > 1:
        reasons.append("left to right: each step looks ahead from the event before it, within the window of the first")
    if keys:
        reasons.append(f"keyed by {', '.join(keys)}: every variable of a match shares it")
    elif len(steps) > 1:
        reasons.append("no key: no column is equal in all variables")
    return reasons
