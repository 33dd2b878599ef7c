"""A branch of an aggregation plan that counts without matching in, the lines of explain out: its counters."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.logical.describe import describe_class, describe_expression
from streamsift.physical.count import adjacent_pairs, is_at_edge
from streamsift.physical.explain.words import describe_pair
from streamsift.physical.plan import Branch


def describe_counting(branch: Branch) -> Iterator[str]:
    """Prefix n counts what the first n variables can be."""
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
                yield f"   accept  {describe_pair(pair, query)}"
    for negation in alternative.negations:
        (step,) = negation.steps
        variable = query.variables[step.variable]
        what = "ties ends to starts" if is_at_edge(negation) else f"empties prefix {negation.lower.steps[0] + 1}"
        yield f"not {variable.name}: {describe_class(variable.event_class, query.binding)}; {what}"
        for expression in step.local:
            yield f"   filter  {describe_expression(expression, query.variables)}"
