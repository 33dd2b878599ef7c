"""A query on its way through the stages in, the text that tells what will run and why out. The text is an interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_expression, describe_query
from streamsift.physical.definitions import describe_window_pair
from streamsift.physical.plan import Edge, Limit, Negation, Pair, Plan, RankPlan, Step
from streamsift.physical.ranking import describe_ranking


def explain(
    text: str,
    bound: b.BoundQuery,
    optimised: b.BoundQuery,
    rules: tuple[str, ...],
    plan: Plan,
    where: Iterable[str] = (),
) -> str:
    """All stages; `where` says how the work is spread, which only the caller's engine knows."""
    sections = [
        ("Query", text.strip().splitlines()),
        ("Logical", list(describe_query(bound))),
        ("Optimised", _optimised(optimised, rules)),
        ("Physical", list(_physical(plan))),
        ("Why", list(plan.reasons)),
        ("Where", list(where)),
    ]
    return "\n".join("\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in sections if lines)


def _optimised(optimised: b.BoundQuery, rules: tuple[str, ...]) -> list[str]:
    return [f"by {', '.join(rules)}:", *describe_query(optimised)] if rules else ["unchanged"]


def _physical(plan: Plan) -> Iterator[str]:
    if isinstance(plan, RankPlan):
        yield from describe_ranking(plan)
    for number, alternative in enumerate(plan.alternatives, start=1):
        count = f"{len(alternative.steps)} step{'s' if len(alternative.steps) > 1 else ''}"
        yield f"detect, {count}" if len(plan.alternatives) == 1 else f"alternative {number}: detect, {count}"
        yield from _steps(alternative.query, alternative.steps, alternative.steps, "", 0)
        yield from _negations(alternative.query, alternative.negations, alternative.steps, "")
    window = plan.query.window
    if window is not None and window.kind is b.WindowKind.COUNT:
        yield "window by row position: every row counts, so no row can be filtered before its position is known"
        if plan.query.binding.order is None:
            yield "warning: rows of equal time have their input order locally and any order on Spark; bind `order`"


def _steps(
    query: b.BoundQuery, steps: tuple[Step, ...], chain: tuple[Step, ...], indent: str, first: int
) -> Iterator[str]:
    variables = query.variables
    for number, step in enumerate(steps, start=first):
        variable = variables[step.variable]
        yield f"{indent}{number + 1}. {variable.name}: {describe_class(variable.event_class, query.binding)}"
        if step.after != (() if number == 0 else (number - 1,)) and (number > first or step.after):
            after = ", ".join(variables[chain[earlier].variable].name for earlier in step.after)
            yield f"{indent}   {f'after {after}' if after else 'in any order'}"
        for expression in step.local:
            yield f"{indent}   filter  {describe_expression(expression, variables)}"
        for pair in step.lookup:
            yield f"{indent}   lookup  {_pair(pair, query)}"
        for compared in dict.fromkeys(_pair(pair, query) for pair in step.pairs):
            yield f"{indent}   compare {compared}"
        for expression in step.filters:
            yield f"{indent}   check   {describe_expression(expression, variables)}"


def _negations(
    query: b.BoundQuery, negations: tuple[Negation, ...], chain: tuple[Step, ...], indent: str
) -> Iterator[str]:
    for negation in negations:
        inside = (*chain, *negation.steps)
        when = query.variables[chain[negation.ready].variable].name
        interval = f"{_limit(query, negation.lower, chain)}, {_limit(query, negation.upper, chain)}"
        how = "ends at the first hit" if negation.is_simple else "occurrences are tested in chunks"
        yield f"{indent}not, {interval}; decided once {when} is bound; {how}"
        yield from _steps(query, negation.steps, inside, indent + "  ", negation.first)
        yield from _negations(query, negation.negations, inside, indent + "  ")


def _limit(query: b.BoundQuery, limit: Limit, chain: tuple[Step, ...]) -> str:
    names = ", ".join(query.variables[chain[step].variable].name for step in limit.steps)
    if limit.definition is not None:
        return f"{limit.edge.value} of {limit.definition}"
    if limit.edge is Edge.WINDOW_START and query.window is None:
        return "from the beginning"
    return f"{limit.edge.value} {names}".rstrip()


def _pair(pair: Pair, query: b.BoundQuery) -> str:
    window = describe_window_pair(pair, query.variables, query.pattern)
    earlier, this = (describe_expression(side, query.variables) for side in (pair.earlier_side, pair.this_side))
    return window or f"{earlier} {pair.op} {this}"
