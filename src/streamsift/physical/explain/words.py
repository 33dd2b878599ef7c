"""Put parts of a plan into words: all sections of explain use the same ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_expression
from streamsift.physical.detect import PLACE, until, value_reads
from streamsift.physical.plan import Cache, Edge, Limit, Negation, Pair, Step

_ALL_TESTS = ("filter", "lookup", "compare", "check")


def describe_limit(query: b.BoundQuery, limit: Limit, chain: tuple[Step, ...]) -> str:
    # All elements that stand for a group have its name.
    names = ", ".join(dict.fromkeys(query.variables[chain[step].variable].name for step in limit.steps))
    if limit.definition is not None:
        return f"{limit.edge.value} of {limit.definition}"
    if limit.edge is Edge.WINDOW_START and query.window is None:
        return "from the beginning"
    return f"{limit.edge.value} {names}".rstrip()


def describe_pair(pair: Pair, query: b.BoundQuery) -> str:
    window = _describe_window_pair(pair, query.variables, query.pattern)
    earlier, this = (describe_expression(side, query.variables) for side in (pair.earlier_side, pair.this_side))
    return window or f"{earlier} {pair.op} {this}"


def describe_test(negation: Negation) -> str:
    return "ends at the first hit" + (", Arrow checks its candidates" if negation.needs_arrow else "")


def _describe_window_pair(pair: Pair, variables: tuple[b.Variable, ...], pattern: b.Node) -> str | None:
    """Return how explain spells a comparison of a definition's window; None for one between attributes."""
    match pair.earlier_side, pair.this_side:
        case (b.Column(variable=earlier, name=one), b.Column(variable=this, name=other)) if PLACE in (one, other):
            limit = other if one == PLACE else one
            definition = next(d for d in pattern.windowed_definitions() if until(d.name) == limit)
            assert definition.window is not None
            names = f"{variables[earlier].name}, {variables[this].name}"
            return f"{names} within {definition.window.text} ({definition.name})"
    return None


def predicates_of(step: Step, query: b.BoundQuery) -> Iterator[tuple[str, str, frozenset[int]]]:
    """Yield what a step tests, in order of cost: how, the predicate, and the other variables that it may mention."""
    for expression in step.local:
        yield "filter", describe_expression(expression, query.variables), expression.variables
    for pair in step.lookup:
        yield "lookup", describe_pair(pair, query), pair.earlier_side.variables
    for pair in {describe_pair(pair, query): pair for pair in step.pairs}.values():
        yield "compare", describe_pair(pair, query), pair.earlier_side.variables
    for expression in step.filters:
        yield "check", describe_expression(expression, query.variables), expression.variables


def predicate_lines(step: Step, query: b.BoundQuery, words: Collection[str] = _ALL_TESTS) -> Iterator[str]:
    yield from (f"   {word:<7} {text}" for word, text, _ in predicates_of(step, query) if word in words)


def step_head(step: Step, query: b.BoundQuery) -> str:
    variable = query.variables[step.variable]
    return f"{variable.name}: {describe_class(variable.event_class, query.binding)}"


def describe_caching(negation: Negation, cache: Cache, variables: tuple[b.Variable, ...]) -> str:
    """Whether and how its answers are kept, for explain."""
    if cache is Cache.OFF:
        return "not cached: cache is off"
    if negation.never_cached:
        return f"not cached: {negation.never_cached}"
    sides = [side for _, sides in sorted(value_reads(negation).items()) for side in sides]
    keys = ["the start of the interval", *(describe_expression(side, variables) for side in sides)]
    while_it_pays = ", as long as 1 of 4 questions finds its answer there" if cache is Cache.AUTO else ""
    return f"cached by {', '.join(keys)}{while_it_pays}"
