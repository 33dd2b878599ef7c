"""A detection plan and the query's preferences in, the ranking plan out: how the k best matches will be found."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_expression
from streamsift.physical.choices import RankBy
from streamsift.physical.components import merge_plan
from streamsift.physical.linear import LinearScore, linear_score
from streamsift.physical.monotone import MonotoneObjective, monotone_objectives
from streamsift.physical.plan import Alternative, DetectPlan, JoinPlan, MergePlan, Pair, PathPlan, RankPlan

MOST_PATHS = 200_000  # that are looked at for the k best of one window and group
FEW_MATCHES = 20_000  # of one window, on average: below, finding them all is quicker
Branch = PathPlan | MergePlan | JoinPlan | Alternative | None


def ranking(detection: DetectPlan, by: RankBy) -> RankPlan:
    """Each alternative by the first strategy that can do it: best paths, a rank join, enumeration."""
    branches: list[Branch] = []
    reasons: list[str] = []
    for number, alternative in enumerate(detection.alternatives, start=1):
        which = f"alternative {number}: " if len(detection.alternatives) > 1 else ""
        branch, why = _branch(alternative, detection.keys, by)
        branches.append(branch)
        reasons += [which + reason for reason in why]
    return RankPlan(detection.query, detection, tuple(branches), tuple(dict.fromkeys(reasons)))


def _branch(alternative: Alternative, keys: tuple[str, ...], by: RankBy) -> tuple[Branch, list[str]]:
    query = alternative.query
    assert query.ranking is not None
    score, parts = linear_score(query.ranking), monotone_objectives(query.ranking)
    if score is not None and not {term.column.variable for term in score.terms} <= _bound(alternative):
        return None, ["left out: the score names an event that its matches do not have"]
    no_paths = _no_paths(alternative, score)
    if score is not None and no_paths is None and by in (RankBy.AUTO, RankBy.PATHS):
        return _paths(alternative, score, keys), [
            "paths: the score is a weighted sum, so the best matches are the best paths",
            f"more than {MOST_PATHS:,} paths for one window, for ties or broken comparisons: all matches instead",
        ]
    why_not = [f"no paths: {no_paths}"] if no_paths else []
    merge = _no_merge(alternative) or merge_plan(alternative)
    if isinstance(merge, MergePlan) and by in (RankBy.AUTO, RankBy.MERGE):
        why = "merge: each part of the pattern has its own objectives, so its best paths meet the others' best"
        return merge, [why, *_unless_few(query), *why_not]
    why_not += [f"no merge: {merge}"] if isinstance(merge, str) else []
    no_join = _no_join(alternative, parts)
    if parts is not None and no_join is None and by in (RankBy.AUTO, RankBy.JOIN):
        why = (
            "join: the score rises with each event's own part, so events are taken best first until the rest cannot win"
        )
        return JoinPlan(alternative, parts), [why, *_unless_few(query), *why_not]
    why_not += [f"no rank join: {no_join}"] if no_join else []
    return alternative, ["enumerate: every match is found and scored, the best are kept", *why_not]


def _unless_few(query: b.BoundQuery) -> list[str]:
    few = f"windows that hold {FEW_MATCHES:,} matches or fewer, as their events let expect: all matches instead"
    return [few] if query.update else []


def _bound(alternative: Alternative) -> set[int]:
    return {step.variable for step in alternative.steps}


def _no_paths(alternative: Alternative, score: LinearScore | None) -> str | None:
    """What keeps an alternative from being ranked by paths; None if nothing does."""
    query = alternative.query
    general = next((f for step in alternative.steps for f in step.filters), None)
    if score is None:
        return "the score is no weighted sum of attributes"
    if alternative.negations:
        return "a match with negations is no path"
    if not alternative.is_sequence:
        return "the events of a match have no one order"
    if _counts_rows_of_keys(query):
        return "each key has a window of its own"
    if general is not None:
        return f"{describe_expression(general, query.variables)} is no comparison of two events"
    return None


def _no_merge(alternative: Alternative) -> str | None:
    """What keeps an alternative from being ranked by merging, whatever its parts are; None if nothing does."""
    query = alternative.query
    assert query.ranking is not None
    if alternative.negations:
        return "a negation looks at events of all parts"
    if query.group_by:
        return "every group has a best of its own"
    if _counts_rows_of_keys(query):
        return "each key has a window of its own"
    if any(merge.count > 1 and merge.function == "PRODUCT" for merge in query.ranking.merges):
        return "a product of negative scores falls"
    return None


def _no_join(alternative: Alternative, parts: tuple[MonotoneObjective, ...] | None) -> str | None:
    """What keeps an alternative from being ranked by a rank join; None if nothing does."""
    query = alternative.query
    if parts is None:
        return "the score does not rise with each event's own part"
    if not {part.variable for objective in parts for part in objective.parts} <= _bound(alternative):
        return "the score names an event that its matches do not have"
    if alternative.negations:
        return "a negation looks at events beyond the best"
    if query.group_by:
        return "every group has a best of its own"
    if _counts_rows_of_keys(query):
        return "each key has a window of its own"
    if query.window is not None and query.window.kind is b.WindowKind.COUNT and query.update is None:
        return "the window counts rows beyond the best"
    return None


def _counts_rows_of_keys(query: b.BoundQuery) -> bool:
    return query.window is not None and query.window.kind is b.WindowKind.COUNT and bool(query.partition_by)


def _paths(alternative: Alternative, score: LinearScore, shared: tuple[str, ...]) -> PathPlan:
    query = alternative.query
    # An event alone equals nothing: a null there does not keep it from being a match.
    shared = shared if len(alternative.steps) > 1 else ()
    keys = tuple(dict.fromkeys((*shared, *query.group_by, *query.partition_by)))
    compared = [
        (number, pair)
        for number, step in enumerate(alternative.steps)
        for pair in (*step.lookup, *step.pairs)
        if not _is_key(pair, keys)
    ]
    return PathPlan(alternative, score, keys, tuple(compared))


def _is_key(pair: Pair, keys: tuple[str, ...]) -> bool:
    match pair:
        case Pair(op="=", earlier_side=b.Column(name=one), this_side=b.Column(name=other)):
            return one == other and one in keys
    return False


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
            yield f"{which}best paths of the stratified graph{inside}, one after the other, until {_until(branch)}"
        elif isinstance(branch, MergePlan):
            parts = " and ".join(_names(branch, component.steps) for component in branch.components)
            yield f"{which}best paths of {parts}, merged by {branch.function} until no other can be better"
        elif isinstance(branch, JoinPlan):
            queues = len(branch.alternative.steps)
            yield f"{which}rank join of {queues} queues of events, best first, each read to its boundary"
        else:
            yield f"{which}all matches, in chunks" if branch else f"{which}no match has a score"


def _names(branch: MergePlan, steps: tuple[int, ...]) -> str:
    variables = branch.alternative.query.variables
    return "(" + ", ".join(variables[branch.alternative.steps[step].variable].name for step in steps) + ")"


def _until(branch: PathPlan) -> str:
    if not branch.compared:
        return "the best are known"
    return "enough of them pass the comparisons; what a broken comparison rules out is not looked at"
