"""Explain a query stage by stage: what will run and why. The text is an interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_query
from streamsift.physical.count import adjacent_pairs, is_at_edge
from streamsift.physical.explain.algebra import describe_algebra
from streamsift.physical.explain.groups import describe_groups
from streamsift.physical.explain.joins import describe_joins
from streamsift.physical.explain.rank import describe_ranking
from streamsift.physical.explain.words import (
    describe_caching,
    describe_limit,
    describe_pair,
    predicate_lines,
    step_head,
)
from streamsift.physical.plan import (
    AggregatePlan,
    Alternative,
    Branch,
    DetectPlan,
    KleeneGroups,
    Negation,
    Plan,
    RankPlan,
    Step,
    Strategy,
)


def explain(
    text: str,
    bound: b.BoundQuery,
    optimised: b.BoundQuery,
    rules: tuple[str, ...],
    plan: Plan,
    where: Iterable[str] = (),
    analysed: Iterable[str] = (),
) -> str:
    """All stages; `where` says how the work is spread and `analysed` what a run built, which only an engine knows."""
    sections = [
        ("Query", text.strip().splitlines()),
        ("Logical", list(describe_query(bound))),
        ("Optimised", _optimised(optimised, rules)),
        ("Algebra", _algebra(bound, plan.detection if isinstance(plan, RankPlan) else plan)),
        ("Physical", list(_physical(plan))),
        ("Why", list(plan.reasons)),
        ("Where", list(where)),
        ("Analysed", list(analysed)),
    ]
    return "\n".join("\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in sections if lines)


def _optimised(optimised: b.BoundQuery, rules: tuple[str, ...]) -> list[str]:
    return [f"by {', '.join(rules)}:", *describe_query(optimised)] if rules else ["unchanged"]


def _algebra(bound: b.BoundQuery, plan: Plan) -> list[str]:
    """Of the matches, where any are built. It knows no windows of definitions."""
    if isinstance(plan, AggregatePlan):
        is_found = any(branch.strategy is Strategy.DETECT for branch in plan.branches)
        return _algebra(bound, plan.detection) if is_found else []
    if isinstance(plan, RankPlan):
        return _algebra(bound, plan.detection)
    has_definitions = any(isinstance(node, b.SubPattern) for node in bound.pattern.walk())
    return [] if has_definitions else list(describe_algebra(bound.pattern, plan))


def _physical(plan: Plan) -> Iterator[str]:
    if isinstance(plan, RankPlan):
        yield from describe_ranking(plan)
        plan = plan.detection
    for number, alternative in enumerate(plan.alternatives, start=1):
        count = f"{len(alternative.steps)} step{'s' if len(alternative.steps) != 1 else ''}"
        branch = plan.branches[number - 1] if isinstance(plan, AggregatePlan) else None
        how = f"aggregate by {branch.strategy.value}" if branch is not None else "detect"
        yield f"{how}, {count}" if len(plan.alternatives) == 1 else f"alternative {number}: {how}, {count}"
        if branch is not None and branch.strategy is not Strategy.DETECT:
            yield from _counters(branch)
            continue
        found = plan.detection if isinstance(plan, AggregatePlan) else plan
        yield from _steps(alternative.query, alternative.steps, alternative.steps, "", 0)
        yield from describe_joins(alternative, found.choices)
        own = replace(found, query=alternative.query)  # with variables for the elements of groups
        yield from _negations(own, alternative.negations, alternative.steps, "")
        if alternative.groups is not None:
            yield from _groups(own, alternative, alternative.groups, "")
    window = plan.query.window
    if window is not None and window.kind is b.WindowKind.COUNT:
        yield "window by row position: every row counts, so no row can be filtered before its position is known"
        if plan.query.binding.order is None:
            yield "warning: rows of equal time have their input order locally and any order on Spark; bind `order`"


def _groups(plan: DetectPlan, alternative: Alternative, groups: KleeneGroups, indent: str) -> Iterator[str]:
    """How groups are made, then the negations that they decide, for each choice of empty groups."""
    query = alternative.query
    for line in describe_groups(alternative, groups):
        yield indent + line
    for decided in groups.decided:
        empty = [query.variables[g.variable].name for n, g in enumerate(groups.growing) if decided.empty >> n & 1]
        if len(groups.decided) > 1:
            yield f"{indent}where {', '.join(empty) or 'no group'} {'are' if len(empty) > 1 else 'is'} empty:"
        yield from _negations(plan, decided.negations, groups.steps, indent, "all groups are made")
        for negation in decided.group_negations:
            limits = (describe_limit(query, limit, groups.steps) for limit in (negation.lower, negation.upper))
            yield f"{indent}not, {', '.join(limits)}; its groups are made as those of the pattern"
            yield from _groups(plan, alternative, negation.groups, indent + "  ")


def _steps(
    query: b.BoundQuery, steps: tuple[Step, ...], chain: tuple[Step, ...], indent: str, first: int
) -> Iterator[str]:
    for number, step in enumerate(steps, start=first):
        yield f"{indent}{number + 1}. {step_head(step, query)}"
        if step.after != (() if number == 0 else (number - 1,)) and (number > first or step.after):
            after = ", ".join(query.variables[chain[earlier].variable].name for earlier in step.after)
            yield f"{indent}   {f'after {after}' if after else 'in any order'}"
        yield from (indent + line for line in predicate_lines(step, query))


def _negations(
    plan: DetectPlan, negations: tuple[Negation, ...], chain: tuple[Step, ...], indent: str, decided: str = ""
) -> Iterator[str]:
    query = plan.query
    for negation in negations:
        inside = (*chain, *negation.steps)
        when = decided or f"{query.variables[chain[negation.ready].variable].name} is bound"
        interval = f"{describe_limit(query, negation.lower, chain)}, {describe_limit(query, negation.upper, chain)}"
        yield f"{indent}not, {interval}; decided once {when}; ends at the first hit"
        yield f"{indent}  {describe_caching(negation, plan.choices.cache, query.variables)}"
        if negation.needs_arrow:
            yield f"{indent}  Arrow checks its candidates: the first of each partial match, then twice as many, …"
        yield from _steps(query, negation.steps, inside, indent + "  ", negation.first)
        yield from _negations(plan, negation.negations, inside, indent + "  ")


def _counters(branch: Branch) -> Iterator[str]:
    """Describe counters: prefix n counts what the first n variables can be."""
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
