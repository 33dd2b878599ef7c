"""Describe the counters of an aggregation that builds no match."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.physical.count import adjacent_pairs, is_at_edge
from streamsift.physical.explain.words import describe_pair, predicate_lines, step_head
from streamsift.physical.plan import Branch


def describe_counting(branch: Branch) -> Iterator[str]:
    """Prefix n counts what the first n variables can be."""
    alternative, query = branch.alternative, branch.alternative.query
    if branch.keys:
        yield f"counters for each {', '.join(branch.keys)}"
    for number, step in enumerate(alternative.steps, start=1):
        yield f"{number}. {step_head(step, query)}"
        yield from predicate_lines(step, query, ["filter"])
        for later, pair in adjacent_pairs(alternative, branch.keys):
            if later == number - 1:
                yield f"   accept  {describe_pair(pair, query)}"
    for negation in alternative.negations:
        (step,) = negation.steps
        what = "ties ends to starts" if is_at_edge(negation) else f"empties prefix {negation.lower.steps[0] + 1}"
        yield f"not {step_head(step, query)}; {what}"
        yield from predicate_lines(step, query, ["filter"])
