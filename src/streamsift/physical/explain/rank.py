"""Describe how the best matches are found."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.physical.detect import PLACE
from streamsift.physical.plan import JoinPlan, MergePlan, PathPlan, RankBranch, RankBy, RankPlan

_HOW = {
    RankBy.LAZY: "one after the other",
    RankBy.K_SSP: "window by window (k-SSP)",
    RankBy.K_DSSP: "window by window, with those that stay inside (k-DSSP)",
}


def describe_ranking(plan: RankPlan) -> Iterator[str]:
    """Yield how each alternative is ranked; the steps of detection follow."""
    query = plan.query
    assert query.ranking is not None
    of_group = f" of each {', '.join(query.group_names)}" if query.group_names else ""
    at_tick = f" every {query.update.text}" if query.update else ""
    yield f"rank, the best {query.ranking.limit}{of_group}{at_tick}"
    for number, branch in enumerate(plan.branches, start=1):
        yield (f"alternative {number}: " if len(plan.branches) > 1 else "") + _describe_branch(branch)
        if isinstance(branch, MergePlan):
            yield from _describe_merge(branch)


def _describe_branch(branch: RankBranch) -> str:
    match branch:
        case PathPlan():
            inside = f" inside each {', '.join(branch.keys)}" if branch.keys else ""
            passed = "enough of them pass the comparisons; what a broken comparison rules out is not looked at"
            until = passed if branch.compared else "the best are known"
            return f"best paths of the stratified graph{inside}, {_HOW[branch.by]}, until {until}"
        case MergePlan():
            how = "TA: sorted access and lookups" if branch.looks_up else "NRA: sorted access alone"
            return f"top-k merge of {len(branch.components)} parts ({how}), read by {branch.schedule.value}"
        case JoinPlan():
            queues = len(branch.alternative.steps)
            return f"rank join of {queues} queues of events, best first, each read to its boundary"
    return "all matches, in chunks" if branch else "no match has a score"


def _describe_merge(branch: MergePlan) -> Iterator[str]:
    names = [variable.name for variable in branch.alternative.query.variables]
    for number, component in enumerate(branch.components, start=1):
        ranked = "best paths" if isinstance(component.plan, PathPlan) else "a rank join"
        events = ", ".join(names[branch.alternative.steps[step].variable] for step in component.steps)
        yield f"  part {number}: ({events}) by {ranked}, into sum {component.sum + 1}"
    groups = [
        f"{function} of sum {', '.join(str(s + 1) for s, group in enumerate(branch.groups) if group == number)}"
        for number, function in enumerate(branch.functions)
    ]
    yield f"  score: {'the least of ' if len(groups) > 1 else ''}{'; '.join(groups)}"
    sides = [names[column.variable] + f".{column.name}" * (column.name != PLACE) for _, column in branch.key]
    if sides:
        yield f"  linked by {' = '.join(dict.fromkeys(sides))}"
