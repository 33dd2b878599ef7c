"""Plan a bound query; raise UnsupportedQuery if no strategy can evaluate it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from math import prod

from streamsift.errors import QueryError, UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.physical.count import aggregation
from streamsift.physical.detect import Equalities, Scope, shared_columns, upper_edge, window_predicates, with_caching
from streamsift.physical.groups import (
    MAX_NEGATED_EVENTS,
    group_alternatives,
    group_reasons,
    kleene_query,
    without_definitions,
)
from streamsift.physical.plan import Alternative, CountBy, DetectPlan, Edge, Limit, Plan, PlannerOptions
from streamsift.physical.rank import ranking

DEFAULTS = PlannerOptions()
MAX_ALTERNATIVES = 1_000


def plan(query: b.BoundQuery, choices: PlannerOptions = DEFAULTS) -> Plan:
    """Return the plan for a query."""
    detected = detection(query, choices)
    if query.aggregates:
        return aggregation(detected)
    if choices.strategy is not CountBy.AUTO:
        hint = "remove strategy, or add an AGG clause."
        raise QueryError(f'strategy="{choices.strategy.value}" requires a query with AGG', hint=hint)
    return ranking(detected) if query.ranking else detected


def detection(query: b.BoundQuery, choices: PlannerOptions) -> DetectPlan:
    """Return the plan that finds matches, with one alternative per OR-free form of the pattern."""
    _check_size(query)
    alternatives = tuple(a for (node,) in or_free_forms(query.pattern) for a in _alternatives(query, node))
    keys = shared_columns(query, alternatives)
    return DetectPlan(query, alternatives, keys, tuple(_reasons(alternatives, keys)), choices)


def _check_size(query: b.BoundQuery) -> None:
    for node in query.pattern.walk():
        if isinstance(node, b.Negated) and len(node.child.leaves()) > MAX_NEGATED_EVENTS:
            message = f"a negated sub-pattern can have at most {MAX_NEGATED_EVENTS} events"
            hint = "shorten the negated sub-pattern."
            raise UnsupportedQuery(message, query.text, node.span, hint)
    if (count := _count_choices(query.pattern)) > MAX_ALTERNATIVES:
        message = (
            f"the ORs of this pattern expand to {count:,} alternatives; at most {MAX_ALTERNATIVES:,} are supported"
        )
        hint = "replace an OR of classes by one class in WITH, such as X = (kind IN ('A', 'B'))."
        raise UnsupportedQuery(message, query.text, query.pattern.span, hint)


# --- alternatives ------------------------------------------------------------------------------------------------


def _count_choices(node: b.Node) -> int:
    """Return the number of OR-free forms, each planned separately; ORs inside negations count too."""
    counts = map(_count_choices, node.children)
    return sum(counts) if isinstance(node, b.Disjunction) else prod(counts)


def or_free_forms(node: b.Node) -> list[tuple[b.Node, ...]]:
    """Return the pattern without OR, once for each choice. A form is a tuple because !(x | y) is !x and !y."""
    match node:
        case b.Disjunction():
            # A Kleene class inside an OR is not a direct operand of the AND around it.
            kept = (b.Sequence((c,), span=c.span) if isinstance(c, b.Leaf) else c for c in node.children)
            return [form for child in kept for form in or_free_forms(child)]
        case b.Negated():
            return [tuple(replace(node, child=inner) for (inner,) in or_free_forms(node.child))]
        case b.Sequence() | b.Conjunction():
            choices = product(*(or_free_forms(child) for child in node.children))
            return [(replace(node, children=tuple(chain.from_iterable(choice))),) for choice in choices]
        case b.SubPattern():
            return [(replace(node, child=inner),) for (inner,) in or_free_forms(node.child)]
        case b.Leaf():
            return [(node,)]


def _alternatives(query: b.BoundQuery, node: b.Node) -> Iterator[Alternative]:
    if any(variable.quantifier is not None for variable in query.variables):
        query, node = without_definitions(query, node)
        yield from group_alternatives(kleene_query(query), node)
        return
    windows = (p for definition in node.windowed_definitions() for p in window_predicates(query, definition))
    scope = Scope(replace(query, predicates=(*query.predicates, *windows)), b.ROOT_SCOPE, {}, Equalities())
    yield with_caching(Alternative(query, *scope.plan(node, Limit(Edge.WINDOW_START), Limit(upper_edge(node)))))


def _reasons(alternatives: tuple[Alternative, ...], keys: tuple[str, ...]) -> Iterator[str]:
    yield "detect: the query returns matches; they are materialized last, as row numbers"
    if len(alternatives) > 1:
        yield f"OR: its {len(alternatives)} alternatives are searched one after the other"
    if any(alternative.negations for alternative in alternatives):
        yield "negations: bind the outer events, then search the interval and stop at the first hit"
    yield from group_reasons(alternatives)
    if keys:
        yield f"key: {', '.join(keys)}; equal in all events of a match"
    elif any(len(alternative.variables) > 1 for alternative in alternatives):
        yield "no key: no column is equal in all events of a match; if one is, add [column] to WHERE"
