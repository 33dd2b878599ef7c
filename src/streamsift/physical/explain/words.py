"""Put parts of a plan into words: all sections of explain use the same ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_expression
from streamsift.physical.detect import value_reads, window_bound
from streamsift.physical.plan import Cache, Edge, GroupNegation, Limit, Negation, Pair, Step

_ALL_TESTS = ("filter", "lookup", "compare", "check")


def describe_limit(query: b.BoundQuery, limit: Limit, chain: tuple[Step, ...]) -> str:
    if limit.definition is not None:
        return f"{limit.edge.value} of {limit.definition}"
    if limit.edge is Edge.WINDOW_START and query.window is None:
        return "from the beginning"
    # All elements that stand for a group have its name.
    names = ", ".join(dict.fromkeys(query.variables[chain[step].variable].name for step in limit.steps))
    return f"{limit.edge.value} {names}".rstrip()


def describe_pair(pair: Pair, query: b.BoundQuery) -> str:
    bound = window_bound(pair.earlier_side, pair.this_side)
    if bound is None:
        return pair.describe(query.variables)
    windows = {d.name: d.window for d in query.pattern.windowed_definitions()}
    (earlier,), (this,) = pair.earlier_side.variables, pair.this_side.variables
    names, window = f"{query.variables[earlier].name}, {query.variables[this].name}", windows[bound.definition]
    assert window is not None
    return f"{names} within {window.text} ({bound.definition})"


def describe_test(negation: Negation | GroupNegation) -> str:
    if isinstance(negation, GroupNegation):
        return "its groups are made as those of the pattern"
    return "ends at the first hit" + (", Arrow checks its candidates" if negation.needs_arrow else "")


def predicates_of(step: Step, query: b.BoundQuery) -> Iterator[tuple[str, str, frozenset[int]]]:
    """Yield the tests of a step in order of cost: how, the predicate, and the other variables in it."""
    for expression in step.local:
        yield "filter", describe_expression(expression, query.variables), expression.variables
    for pair in step.lookup:
        yield "lookup", describe_pair(pair, query), pair.earlier_side.variables
    for text, pair in {describe_pair(pair, query): pair for pair in step.pairs}.items():
        yield "compare", text, pair.earlier_side.variables
    for expression in step.filters:
        yield "check", describe_expression(expression, query.variables), expression.variables


def predicate_lines(step: Step, query: b.BoundQuery, words: Collection[str] = _ALL_TESTS) -> Iterator[str]:
    yield from (f"   {word:<7} {text}" for word, text, _ in predicates_of(step, query) if word in words)


def step_head(step: Step, query: b.BoundQuery) -> str:
    variable = query.variables[step.variable]
    return f"{variable.name}: {describe_class(variable.event_class, query.binding)}"


def describe_caching(negation: Negation, cache: Cache, variables: tuple[b.Variable, ...]) -> str:
    """Return whether and how its results are cached."""
    if cache is Cache.OFF:
        return "not cached: cache is off"
    if negation.never_cached:
        return f"not cached: {negation.never_cached}"
    sides = [side for _, sides in sorted(value_reads(negation).items()) for side in sides]
    keys = ["the start of the interval", *(describe_expression(side, variables) for side in sides)]
    while_it_pays = ", as long as 1 of 4 questions finds its answer there" if cache is Cache.AUTO else ""
    return f"cached by {', '.join(keys)}{while_it_pays}"
