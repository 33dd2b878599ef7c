"""A query on its way through the stages in, the text that tells what will run and why out. The text is an interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_expression, describe_query
from streamsift.physical.aggregation import adjacent_pairs, is_at_edge
from streamsift.physical.plan import AggregatePlan, Branch, Edge, Limit, Negation, Pair, Plan, Step, Strategy


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
    for number, alternative in enumerate(plan.alternatives, start=1):
        count = f"{len(alternative.steps)} step{'s' if len(alternative.steps) > 1 else ''}"
        how = (
            f"aggregate by {plan.branches[number - 1].strategy.value}" if isinstance(plan, AggregatePlan) else "detect"
        )
        yield f"{how}, {count}" if len(plan.alternatives) == 1 else f"alternative {number}: {how}, {count}"
        if isinstance(plan, AggregatePlan) and plan.branches[number - 1].strategy is not Strategy.DETECT:
            yield from _counted(plan.branches[number - 1])
        else:
            yield from _steps(alternative.query, alternative.steps, alternative.steps, "", 0)
            yield from _negations(alternative.query, alternative.negations, alternative.steps, "")
    window = plan.query.window
    if window is not None and window.kind is b.WindowKind.COUNT:
        yield "window by row position: every row counts, so no row can be filtered before its position is known"
        if plan.query.binding.order is None:
            yield "warning: rows of equal time have their input order locally and any order on Spark; bind `order`"


def _counted(branch: Branch) -> Iterator[str]:
    """The counters of a branch: prefix n counts what the first n variables can be."""
    alternative, query = branch.alternative, branch.alternative.query
    if branch.keys:
        yield f"counters for each {', '.join(branch.keys)}"
    for number, step in enumerate(alternative.steps, start=1):
        variable = query.variables[step.variable]
        yield f"{number}. {variable.name}: {describe_class(variable.event_class, query.binding)}"
        for expression in step.local:
            yield f"   filter  {describe_expression(expression, query.variables)}"
        for later, pair in adjacent_pairs(alternative, branch.keys):
            if later == number - 1:
                yield f"   accept  {_pair(pair, query.variables)}"
    for negation in alternative.negations:
        (step,) = negation.steps
        variable = query.variables[step.variable]
        what = "ties ends to starts" if is_at_edge(negation) else f"empties prefix {negation.lower.steps[0] + 1}"
        yield f"not {variable.name}: {describe_class(variable.event_class, query.binding)}; {what}"
        for expression in step.local:
            yield f"   filter  {describe_expression(expression, query.variables)}"


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
            yield f"{indent}   lookup  {_pair(pair, variables)}"
        for pair in step.pairs:
            yield f"{indent}   compare {_pair(pair, variables)}"
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
    if limit.edge is Edge.WINDOW_START and query.window is None:
        return "from the beginning"
    return f"{limit.edge.value} {names}".rstrip()


def _pair(pair: Pair, variables: tuple[b.Variable, ...]) -> str:
    earlier, this = (describe_expression(side, variables) for side in (pair.earlier_side, pair.this_side))
    return f"{earlier} {pair.op} {this}"
