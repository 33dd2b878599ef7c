"""Describe how the top k matches are found."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.physical.detect import PLACE
from streamsift.physical.plan import JoinPlan, MergePlan, PathPlan, RankBranch, RankBy, RankPlan

_HOW = {
    RankBy.LAZY: "read lazily",
    RankBy.K_SSP: "read per window (k-SSP)",
    RankBy.K_DSSP: "read per window, reusing paths that stay inside (k-DSSP)",
}


def describe_ranking(plan: RankPlan) -> Iterator[str]:
    """Describe how each alternative is ranked, without the steps of detection."""
    query = plan.query
    assert query.ranking is not None
    per_group = f" per {', '.join(query.group_names)}" if query.group_names else ""
    at_tick = f", every {query.update.text}" if query.update else ""
    yield f"rank: top {query.ranking.limit}{per_group}{at_tick}"
    for number, branch in enumerate(plan.branches, start=1):
        yield (f"alternative {number}: " if len(plan.branches) > 1 else "") + _describe_branch(branch)
        if isinstance(branch, MergePlan):
            yield from _describe_merge(branch)


def _describe_branch(branch: RankBranch) -> str:
    match branch:
        case PathPlan():
            per_key = f" per {', '.join(branch.keys)}" if branch.keys else ""
            passed = "until k of them pass the comparisons"
            until = passed if branch.compared else "until the top k are known"
            return f"best paths of the stratified graph{per_key}, {_HOW[branch.by]} {until}"
        case MergePlan():
            how = "TA: sorted access and lookups" if branch.looks_up else "NRA: sorted access only"
            return f"top-k merge of {len(branch.components)} components ({how}), schedule {branch.schedule.value}"
        case JoinPlan():
            queues = len(branch.alternative.steps)
            return f"rank join of {queues} event queues, each read best first up to its threshold score"
    return "all matches, scored in chunks" if branch else "skipped: no match has a score"


def _describe_merge(branch: MergePlan) -> Iterator[str]:
    names = [variable.name for variable in branch.alternative.query.variables]
    for number, component in enumerate(branch.components, start=1):
        ranked = "best paths" if isinstance(component.plan, PathPlan) else "rank join"
        events = ", ".join(names[branch.alternative.steps[step].variable] for step in component.steps)
        yield f"  component {number}: ({events}) by {ranked}, added to sum {component.sum + 1}"
    groups = [
        f"{function}({', '.join(f'sum {s + 1}' for s, group in enumerate(branch.groups) if group == number)})"
        for number, function in enumerate(branch.functions)
    ]
    merged = ", ".join(groups)
    yield f"  score: {merged if len(groups) == 1 else f'MIN({merged})'}"
    sides = [names[column.variable] + f".{column.name}" * (column.name != PLACE) for _, column in branch.key]
    if sides:
        distinct = list(dict.fromkeys(sides))
        yield f"  join on {' = '.join(distinct) if len(distinct) > 1 else f'the same event {distinct[0]}'}"
