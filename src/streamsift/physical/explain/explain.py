"""Explain a query stage by stage: what runs, and why. Users and scripts read the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_query
from streamsift.physical.count import is_at_edge
from streamsift.physical.explain.algebra import describe_algebra
from streamsift.physical.explain.joins import describe_joins
from streamsift.physical.explain.rank import describe_ranking
from streamsift.physical.explain.words import (
    describe_caching,
    describe_group_filter,
    describe_limit,
    describe_pair,
    describe_tests,
    predicate_lines,
    step_head,
    wrap_lines,
)
from streamsift.physical.plan import (
    AggregatePlan,
    Alternative,
    Branch,
    DetectPlan,
    GroupNegation,
    KleeneGroups,
    Negation,
    Plan,
    RankPlan,
    Step,
    Strategy,
)

Chain = tuple[Step, ...]  # all steps that are bound when a negation is checked, those of enclosing patterns first


def explain(
    text: str,
    bound: b.BoundQuery,
    optimized: b.BoundQuery,
    rules: tuple[str, ...],
    plan: Plan,
    distribution: Iterable[str] = (),
    analyzed: Iterable[str] = (),
    assumed: Iterable[str] = (),
) -> str:
    """Return all stages.

    Engines report `distribution` (over Spark tasks) and `analyzed` (the figures of a run); `assumed` is the schema of a
    query without data.
    """
    sections: dict[str, Iterable[str]] = {
        "Query": text.strip().splitlines(),
        "Assumed": assumed,
        "Logical": describe_query(bound),
        "Optimized": [f"rules: {', '.join(rules)}", *describe_query(optimized)] if rules else ["unchanged"],
        "Algebra": _algebra(bound, plan),
        "Physical": _physical(plan),
        "Why": wrap_lines(plan.reasons),
        "Distribution": distribution,
        "Analyzed": analyzed,
    }
    described = ([title, *(f"  {line}" for line in lines)] for title, lines in sections.items())
    return "\n".join("\n".join(lines) for lines in described if len(lines) > 1)


def _algebra(bound: b.BoundQuery, plan: Plan) -> Iterable[str]:
    """Draw the algebra if the plan builds matches. The algebra cannot express definitions."""
    counts = isinstance(plan, AggregatePlan) and all(br.strategy is not Strategy.DETECT for br in plan.branches)
    if counts or any(isinstance(node, b.SubPattern) for node in bound.pattern.walk()):
        return []
    return describe_algebra(bound.pattern, plan if isinstance(plan, DetectPlan) else plan.detection)


def _physical(plan: Plan) -> Iterator[str]:
    if isinstance(plan, RankPlan):
        yield from describe_ranking(plan)
        plan = plan.detection
    detection = plan if isinstance(plan, DetectPlan) else plan.detection
    for number, alternative in enumerate(plan.alternatives, start=1):
        count = _count(alternative)
        branch = plan.branches[number - 1] if isinstance(plan, AggregatePlan) else None
        how = f"aggregate by {branch.strategy.value}" if branch is not None else "detect"
        yield f"{how}, {count}" if len(plan.alternatives) == 1 else f"alternative {number}: {how}, {count}"
        if branch is not None and branch.strategy is not Strategy.DETECT:
            yield from _counters(branch)
            continue
        yield from _steps(alternative.query, alternative.steps, 0)
        yield from describe_joins(alternative, detection.choices)
        extended = replace(detection, query=alternative.query)  # with variables for the elements of groups
        yield from _negations(extended, alternative.negations, alternative.steps)
        if alternative.groups is not None:
            yield from _groups(extended, alternative.groups)
    if plan.query.has_count_window:
        yield "count window: counts every row, so no row is filtered out before its position is known"
        if plan.query.binding.order is None:
            yield "warning: rows with equal times keep their input order locally and have no fixed order on Spark;"
            yield "         set `order` to a column that orders them"


def _count(alternative: Alternative) -> str:
    groups = len(list(alternative.groups.own_steps())) if alternative.groups is not None else 0
    counts = {"step": len(alternative.steps), "Kleene group": groups}
    return " and ".join(f"{count} {noun}{'s' if count != 1 else ''}" for noun, count in counts.items() if count)


def _steps(query: b.BoundQuery, chain: Chain, first: int) -> Iterator[str]:
    for number, step in enumerate(chain[first:], start=first):
        yield f"{number + 1}. {step_head(step, query)}"
        if step.after != (() if number == 0 else (number - 1,)) and (number > first or step.after):
            after = ", ".join(query.variables[chain[earlier].variable].name for earlier in step.after)
            yield f"   {f'after {after}' if after else 'in any order'}"
        yield from predicate_lines(step, query)


def _negations(
    plan: DetectPlan, negations: Iterable[Negation | GroupNegation], chain: Chain, ready: str = ""
) -> Iterator[str]:
    for negation in negations:
        limits = (describe_limit(plan.query, limit, chain) for limit in (negation.lower, negation.upper))
        interval = f"not exists {', '.join(limits)}"
        if isinstance(negation, GroupNegation):
            yield f"{interval}: {describe_tests([negation])}"
            inside = _groups(plan, negation.groups)
        else:
            when = ready or f"{plan.query.variables[chain[negation.ready].variable].name} is bound"
            yield f"{interval}: checked once {when}, stops at the first hit"
            inside = _inside(plan, negation, (*chain, *negation.steps))
        yield from (f"  {line}" for line in inside)


def _inside(plan: DetectPlan, negation: Negation, chain: Chain) -> Iterator[str]:
    yield describe_caching(negation, plan.choices.cache, plan.query.variables)
    if negation.needs_arrow:
        yield "Arrow filters its candidates in batches: first one per partial match, then twice as many each time"
    yield from _steps(plan.query, chain, negation.first)
    yield from _negations(plan, negation.negations, chain)


def _counters(branch: Branch) -> Iterator[str]:
    """Describe the counters. Prefix n counts the assignments of the first n variables."""
    alternative, query = branch.alternative, branch.alternative.query
    if branch.keys:
        yield f"counters: per {', '.join(branch.keys)}"
    for number, step in enumerate(alternative.steps):
        yield f"{number + 1}. {step_head(step, query)}"
        yield from predicate_lines(step, query, ["filter"])
        pairs = (pair for later, pair in alternative.pairs_beyond(branch.keys) if later == number)
        yield from (f"   join on {describe_pair(pair, query)}" for pair in pairs)
    for negation in alternative.negations:
        (step,) = negation.steps
        prefix = f"resets prefix {negation.lower.steps[0] + 1}" if not is_at_edge(negation) else ""
        effect = prefix or "bounded by the window, so valid ends depend on the start of a match"
        yield f"not exists {step_head(step, query)}; {effect}"
        yield from predicate_lines(step, query, ["filter"])


# --- Kleene groups -------------------------------------------------------------------------------------------------


def _groups(plan: DetectPlan, groups: KleeneGroups) -> Iterator[str]:
    """Describe how groups are built, then the negations checked after that, for each choice of empty groups."""
    yield from _built(plan.query, groups)
    for decided in groups.decided:
        empty = [plan.query.variables[g.variable].name for n, g in enumerate(groups.growing) if decided.empty >> n & 1]
        if len(groups.decided) > 1:
            yield f"if {', '.join(empty) or 'no Kleene group'} {'are' if len(empty) > 1 else 'is'} empty:"
        yield from _negations(plan, decided.all_negations, groups.steps, "all Kleene groups are built")


def _built(query: b.BoundQuery, groups: KleeneGroups) -> Iterator[str]:
    """Describe each group, then the rules that apply to all groups."""
    names = [query.variables[step.variable].name for step in groups.steps]
    growing = [query.variables[group.variable].name for group in groups.growing]
    for chosen in groups.chosen:
        yield _group(query, chosen.step, f"every combination of {chosen.size}" if chosen.size > 1 else "one of the")
        yield _between((names[step] for step in chosen.after), (names[step] for step in chosen.before))
        yield from predicate_lines(chosen.step, query)
    for number, group in enumerate(groups.growing):
        yield _group(query, group.step, "zero or more" if group.may_be_empty else "one or more")
        for order in groups.orders:
            after = [names[step] for step in order.after[number]] + [
                growing[other] for other in order.preceding[number]
            ]
            followers = [name for name, preceding in zip(growing, order.preceding, strict=True) if number in preceding]
            yield _between(after, [names[step] for step in order.before[number]] + followers)
        yield from predicate_lines(group.step, query)
    for key in groups.keys:
        yield f"Kleene groups: per {key.members[0][1].name} of {', '.join(growing[n] for n, _ in key.members)}"
    if growing:
        per_end = "; one search per possible last event" if groups.search.by_end else ""
        yield f"Kleene groups: {groups.search.growth.value}{per_end}"
    yield from (describe_group_filter(expression, query) for expression in groups.filters)


def _group(query: b.BoundQuery, step: Step, count: str) -> str:
    variable = query.variables[step.variable]
    rows = describe_class(variable.event_class, query.binding).replace("every row", "rows")
    return f"{variable.name}: {count} {rows}"


def _between(after: Iterable[str], before: Iterable[str]) -> str:
    sides = {"after": dict.fromkeys(after), "before": dict.fromkeys(before)}
    parts = [f"{word} {', '.join(names)}" for word, names in sides.items() if names]
    return f"   {', '.join(parts) or 'in any order'}"
