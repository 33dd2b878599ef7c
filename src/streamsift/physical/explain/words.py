"""Word the parts of a plan that several sections of explain show."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from textwrap import wrap

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_expression
from streamsift.physical.detect import value_reads, window_bound
from streamsift.physical.plan import Cache, Edge, GroupNegation, Limit, Negation, Pair, Step

_ARROW = "filter (Arrow)"  # evaluated on Arrow columns, not in a kernel
_ALL_TESTS = ("filter", "lookup", "compare", _ARROW)
_WIDTH = 110
_LABEL = re.compile(r"(?:alternative \d+: )?(?:[\w() -]{1,30}: +)?")


def wrap_lines(lines: Iterable[str]) -> Iterator[str]:
    """Wrap long lines; continuation lines are indented past the label (`emit:`, `not sem:`)."""
    for line in lines:
        label = _LABEL.match(line)
        indent = " " * label.end() if label is not None else ""
        yield from wrap(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def describe_limit(query: b.BoundQuery, limit: Limit, chain: tuple[Step, ...]) -> str:
    if limit.definition is not None:
        return f"{limit.edge.value} of {limit.definition}"
    if limit.edge is Edge.WINDOW_START and query.window is None:
        return "from the start of the stream"
    # The variables of a Kleene group's elements have the name of the group.
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


def describe_tests(negations: Collection[Negation | GroupNegation]) -> str:
    """Describe how the forms of one negation are evaluated."""
    texts = []
    if any(isinstance(negation, GroupNegation) for negation in negations):
        texts.append("builds its Kleene groups like those of the pattern")
    single = [negation for negation in negations if isinstance(negation, Negation)]
    if single:
        with_arrow = ", Arrow filters its candidates" * any(negation.needs_arrow for negation in single)
        texts.append(f"stops at the first hit{with_arrow}")
    return " or ".join(texts)


def describe_group_filter(expression: b.Expr, query: b.BoundQuery) -> str:
    return f"{_ARROW} {describe_expression(expression, query.variables)}, on whole Kleene groups"


def predicates_of(step: Step, query: b.BoundQuery) -> Iterator[tuple[str, str, frozenset[int]]]:
    """Yield the tests of a step in order of cost: the verb, the predicate and the other variables in it."""
    for expression in step.local:
        yield "filter", describe_expression(expression, query.variables), expression.variables
    for pair in step.lookup:
        yield "lookup", describe_pair(pair, query), pair.earlier_side.variables
    for text, pair in {describe_pair(pair, query): pair for pair in step.pairs}.items():
        yield "compare", text, pair.earlier_side.variables
    for expression in step.filters:
        yield _ARROW, describe_expression(expression, query.variables), expression.variables


def predicate_lines(step: Step, query: b.BoundQuery, words: Collection[str] = _ALL_TESTS) -> Iterator[str]:
    yield from (f"   {word:<7} {text}" for word, text, _ in predicates_of(step, query) if word in words)


def step_head(step: Step, query: b.BoundQuery) -> str:
    variable = query.variables[step.variable]
    return f"{variable.name}: {describe_class(variable.event_class, query.binding)}"


def describe_caching(negation: Negation, cache: Cache, variables: tuple[b.Variable, ...]) -> str:
    """Describe the cache of a negation's results, or why there is none."""
    if cache is Cache.OFF:
        return "cache: off, as requested"
    if negation.never_cached:
        return f"cache: does not apply; {negation.never_cached}"
    sides = [side for _, sides in sorted(value_reads(negation).items()) for side in sides]
    keys = ["interval start", *(describe_expression(side, variables) for side in sides)]
    unless_few_hits = "; disabled if the hit rate is below 25 %" if cache is Cache.AUTO else ""
    return f"cache key: {', '.join(keys)}{unless_few_hits}"
