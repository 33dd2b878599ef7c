"""Describe how the best matches are found."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.physical.detect import PLACE
from streamsift.physical.plan import JoinPlan, MergePlan, PathPlan, RankBy, RankPlan


def describe_ranking(plan: RankPlan) -> Iterator[str]:
    """What is ranked and how, for explain; the steps of detection follow."""
    query = plan.query
    assert query.ranking is not None
    of_group = f" of each {', '.join(query.group_names)}" if query.group_names else ""
    at_tick = f" every {query.update.text}" if query.update else ""
    yield f"rank, the best {query.ranking.limit}{of_group}{at_tick}"
    for number, branch in enumerate(plan.branches, start=1):
        which = f"alternative {number}: " if len(plan.branches) > 1 else ""
        if isinstance(branch, PathPlan):
            inside = f" inside each {', '.join(branch.keys)}" if branch.keys else ""
            yield f"{which}best paths of the stratified graph{inside}, {_HOW[branch.by]}, until {_until(branch)}"
        elif isinstance(branch, MergePlan):
            yield from _describe_merge(branch, which)
        elif isinstance(branch, JoinPlan):
            queues = len(branch.alternative.steps)
            yield f"{which}rank join of {queues} queues of events, best first, each read to its boundary"
        else:
            yield f"{which}all matches, in chunks" if branch else f"{which}no match has a score"


_HOW = {
    RankBy.LAZY: "one after the other",
    RankBy.K_SSP: "window by window (k-SSP)",
    RankBy.K_DSSP: "window by window, with those that stay inside (k-DSSP)",
}


def _describe_merge(branch: MergePlan, which: str) -> Iterator[str]:
    how = "TA: sorted access and lookups" if branch.looks_up else "NRA: sorted access alone"
    yield f"{which}top-k merge of {len(branch.components)} parts ({how}), read by {branch.schedule.value}"
    for number, component in enumerate(branch.components, start=1):
        ranked = "best paths" if isinstance(component.plan, PathPlan) else "a rank join"
        yield f"  part {number}: {_names(branch, component.steps)} by {ranked}, into sum {component.sum + 1}"
    groups = [
        f"{function} of sum {', '.join(str(s + 1) for s, group in enumerate(branch.groups) if group == number)}"
        for number, function in enumerate(branch.functions)
    ]
    least = "the least of " if len(groups) > 1 else ""
    yield f"  score: {least}{'; '.join(groups)}"
    variables = branch.alternative.query.variables
    if branch.key:
        sides = dict.fromkeys(
            variables[column.variable].name + ("" if column.name == PLACE else f".{column.name}")
            for _, column in branch.key
        )
        yield f"  linked by {' = '.join(sides)}"


def _names(branch: MergePlan, steps: tuple[int, ...]) -> str:
    variables = branch.alternative.query.variables
    return "(" + ", ".join(variables[branch.alternative.steps[step].variable].name for step in steps) + ")"


def _until(branch: PathPlan) -> str:
    if not branch.compared:
        return "the best are known"
    return "enough of them pass the comparisons; what a broken comparison rules out is not looked at"
