"""A query on its way through the stages in, the text that tells what will run and why out. The text is an interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_expression, describe_query
from streamsift.physical.plan import DetectPlan, Pair


def explain(
    text: str,
    bound: b.BoundQuery,
    optimised: b.BoundQuery,
    rules: tuple[str, ...],
    plan: DetectPlan,
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


def _physical(plan: DetectPlan) -> Iterator[str]:
    variables, binding = plan.query.variables, plan.query.binding
    yield f"detect, {len(plan.steps)} step{'s' if len(plan.steps) > 1 else ''}"
    for number, step in enumerate(plan.steps, start=1):
        variable = variables[step.variable]
        yield f"{number}. {variable.name}: {describe_class(variable.event_class, binding)}"
        for expression in step.local:
            yield f"   filter  {describe_expression(expression, variables)}"
        for pair in step.lookup:
            yield f"   lookup  {_pair(pair, variables)}"
        for pair in step.pairs:
            yield f"   compare {_pair(pair, variables)}"
        for expression in step.filters:
            yield f"   check   {describe_expression(expression, variables)}"
    window = plan.query.window
    if window is not None and window.kind is b.WindowKind.COUNT:
        yield "window by row position: every row counts, so no row can be filtered before its position is known"
        if binding.order is None:
            yield "warning: rows of equal time have their input order locally and any order on Spark; bind `order`"


def _pair(pair: Pair, variables: tuple[b.Variable, ...]) -> str:
    earlier, this = (describe_expression(side, variables) for side in (pair.earlier_side, pair.this_side))
    return f"{earlier} {pair.op} {this}"
