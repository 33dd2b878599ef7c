"""Choose how the top k matches of each alternative are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_expression
from streamsift.physical.plan import (
    Alternative,
    DetectPlan,
    JoinPlan,
    LinearScore,
    MergePlan,
    MonotoneObjective,
    PathPlan,
    PlannerOptions,
    RankBranch,
    RankBy,
    RankPlan,
    Refused,
    Schedule,
    linear_score,
    monotone_objectives,
)
from streamsift.physical.rank.components import merge_plan

MAX_PATHS = 200_000  # read for the top k of one window and group
MAX_KINDS = 1_000_000  # equivalence classes of paths read for the same; above, all matches are enumerated
MANY_MOVES = 12  # windows that contain an event: from here on, reusing joined matches is cheaper
FEW_MATCHES = 20_000  # in one window, on average: up to here, enumerating them is faster
PATHS = (RankBy.LAZY, RankBy.K_SSP, RankBy.K_DSSP)
LACKS_EVENT = "the score reads an event that matches of this alternative do not have"
ENUMERATE = "enumerate: finds and scores every match, keeps the top k"
UNLESS_FEW = f"enumerates all matches in windows with an estimated {FEW_MATCHES:,} matches or fewer"


def ranking(detection: DetectPlan) -> RankPlan:
    """Rank each alternative by the first strategy that applies: best paths, merge, rank join, enumeration."""
    branches: list[RankBranch] = []
    reasons: list[str] = []
    for number, alternative in enumerate(detection.alternatives, start=1):
        which = f"alternative {number}: " if len(detection.alternatives) > 1 else ""
        branch, why = _branch(alternative, detection.keys, detection.choices)
        branches.append(branch)
        reasons += [which + reason for reason in why]
    return RankPlan(detection, tuple(branches), tuple(dict.fromkeys(reasons)))


def _branch(alternative: Alternative, keys: tuple[str, ...], choices: PlannerOptions) -> tuple[RankBranch, list[str]]:
    query, by = alternative.query, choices.rank
    assert query.ranking is not None
    if alternative.groups is not None:
        return alternative, [ENUMERATE, "lazy does not apply: a Kleene group is not an event of a path"]
    score, parts = linear_score(query.ranking), monotone_objectives(query.ranking)
    if score is not None and _lacks_event(alternative, query.ranking):
        return None, [f"skipped: {LACKS_EVENT}, so no match has a score"]
    no_paths, no_merge, no_join = _obstacles(alternative, query.ranking, score, parts)
    if score is not None and no_paths is None and by in (RankBy.AUTO, *PATHS):
        return _paths(alternative, score, keys, by)
    why_not = [f"lazy does not apply: {no_paths}"] if no_paths else []
    unless_few = [UNLESS_FEW] if query.update else []
    merge = merge_plan(alternative) if no_merge is None else Refused(no_merge)
    if isinstance(merge, MergePlan) and by in (RankBy.AUTO, RankBy.NRA, RankBy.TA):
        overlaps = bool(query.update and query.window and query.window.length >= MANY_MOVES * query.update.length)
        merge = replace(merge, schedule=choices.schedule, looks_up=by is RankBy.TA, keeps=overlaps)
        return merge, [*_merge_reasons(merge, query), *unless_few, *why_not]
    why_not += [f"merge does not apply: {merge.reason}"] if isinstance(merge, Refused) else []
    if parts is not None and no_join is None and by in (RankBy.AUTO, RankBy.JOIN):
        return JoinPlan(alternative, parts), [*_join_reasons(query), *unless_few, *why_not]
    why_not += [f"rank join does not apply: {no_join}"] if no_join else []
    return alternative, [ENUMERATE, *why_not]


def _lacks_event(alternative: Alternative, ranking: b.Ranking) -> bool:
    """Return True if the score reads an event that matches of the alternative do not have."""
    named = {variable for objective in ranking.objectives for variable in objective.expression.variables}
    return not named <= {step.variable for step in alternative.steps}


def _obstacles(
    alternative: Alternative,
    ranking: b.Ranking,
    score: LinearScore | None,
    parts: tuple[MonotoneObjective, ...] | None,
) -> Iterator[str | None]:
    """Yield why best paths, a merge and a rank join do not apply to an alternative; None if they apply."""
    query, has_negations = alternative.query, bool(alternative.negations)
    general = next((describe_expression(f, query.variables) for step in alternative.steps for f in step.filters), None)
    lacks_event = {LACKS_EVENT: _lacks_event(alternative, ranking)}
    of_keys = {"each partition has its own count window": query.has_count_window and bool(query.partition_by)}
    apart = {"each GROUP BY group has its own top k": bool(query.group_by), **of_keys}
    counts_beyond = {
        "the count window depends on all rows, not only on the best": query.has_count_window and query.update is None
    }
    has_product = any(merge.count > 1 and merge.function == "PRODUCT" for merge in ranking.merges)
    no_paths = {
        "the score is not a weighted sum of attributes": score is None,
        "a match with negations is not a path": has_negations,
        "the events of a match have no fixed order": not alternative.is_sequence,
        **of_keys,
        f"`{general}` does not compare two events": general is not None,
    }
    no_merge = {
        "a negation can read events of all components": has_negations,
        **apart,
        "a product of negative scores is not monotone": has_product,
        **lacks_event,
        **counts_beyond,
    }
    no_join = {
        "the score is not monotone in each event's contribution": parts is None,
        **lacks_event,
        "a negation depends on all events, not only on the best": has_negations,
        **apart,
        **counts_beyond,
    }
    for reasons in (no_paths, no_merge, no_join):
        yield next((reason for reason, applies in reasons.items() if applies), None)


def _merge_reasons(merge: MergePlan, query: b.BoundQuery) -> Iterator[str]:
    how = "looked up in the other components" if merge.looks_up else "joined with those already read from the others"
    yield f"merge: the components of the score are ranked separately; each match read from one is {how}"
    if query.ranking and any(group.count > 1 and group.function in ("SUM", "AVG") for group in query.ranking.merges):
        yield "objectives that are weighted sums merged by SUM or AVG are combined into one weighted sum"
    if merge.schedule is Schedule.STATISTICS:
        yield "schedule: statistics is the fastest of the four schedules in nearly all measurements"
    if merge.looks_up:
        yield f"lookups: all matches of each component are listed; above {MAX_PATHS:,}, enumerates all matches instead"
    yield f"ties: joins all matches that can tie with rank k; above {MAX_PATHS:,}, enumerates all matches instead"
    if query.update is not None and not merge.keeps:
        yield f"each window is ranked from scratch: an event is in fewer than {MANY_MOVES} windows"
    elif query.update is not None:
        what = "listed" if merge.looks_up else "joined"
        yield f"when the window moves, {what} matches that stay inside are reused"


def _join_reasons(query: b.BoundQuery) -> Iterator[str]:
    monotone = "rank join: the score is monotone in each event's contribution"
    yield f"{monotone}, so events are read best first until no unread event can reach the top k"
    yield "ties: joins all matches that tie with rank k"
    if query.update:
        yield "when the window moves, joined matches that stay inside are reused"


def _paths(
    alternative: Alternative, score: LinearScore, shared: tuple[str, ...], by: RankBy
) -> tuple[PathPlan, list[str]]:
    query = alternative.query
    assert query.ranking is not None
    # A single event is compared with nothing, so it is a match even if a shared column is null.
    shared = shared if len(alternative.steps) > 1 else ()
    keys = tuple(dict.fromkeys((*shared, *query.group_by, *query.partition_by)))
    compared = alternative.pairs_beyond(keys)
    why: list[str] = []
    if len(query.ranking.objectives) > 1:
        why.append("the objectives are weighted sums merged by SUM or AVG, so they are combined into one weighted sum")
    if by not in PATHS:
        by = RankBy.LAZY
    elif by is not RankBy.LAZY and (compared or (query.window is not None and query.update is None)):
        what = "comparisons between events" if compared else "a separate window per match"
        why.append(f"{by.value} does not apply: it does not support {what}; uses lazy instead")
        by = RankBy.LAZY
    if by is not RankBy.LAZY:
        why.append(f"{by.value} reads ties one by one; switches to lazy if there are very many")
    why.insert(0, f"{by.value}: the score is a weighted sum, so the best matches are the best paths of a graph")
    why += _when_close(score, query, keys=bool(keys), compared=bool(compared))
    return PathPlan(alternative, score, keys, compared, by), why


def _when_close(score: LinearScore, query: b.BoundQuery, *, keys: bool, compared: bool) -> Iterator[str]:
    """Yield how paths with equal sums are ranked."""
    failing = " or many paths fail a comparison" if compared else ""
    yield f"ties: if many scores are within rounding error{failing}, reads equivalence classes of paths instead"
    if keys and query.update:
        yield f"above {MAX_PATHS:,} paths in one window, every window reads all its keys, not only those of new events"
    totals: dict[b.Column, Fraction] = {}
    for term in score.terms:
        totals[term.column] = totals.get(term.column, Fraction(0)) + term.coefficient
    for column in (column for column, total in totals.items() if not total and column.kind is b.Kind.FLOAT):
        name = describe_expression(column, query.variables)
        yield f"{name} cancels out except for rounding, so a window has one equivalence class per value of {name}"
    yield f"above {MAX_KINDS:,} equivalence classes in one window, enumerates all matches instead"
