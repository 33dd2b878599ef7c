"""Choose how the k best matches of each alternative are found."""

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
    RankBy,
    RankPlan,
    Refused,
    linear_score,
    monotone_objectives,
)
from streamsift.physical.rank.components import merge_plan

MAX_PATHS = 200_000  # that are looked at for the k best of one window and group
MAX_KINDS = 1_000_000  # of paths, for the same: finding all matches costs more, however long that takes
MANY_MOVES = 12  # that a window is in: from here on, keeping what was joined costs less than joining it again
FEW_MATCHES = 20_000  # of one window, on average: below, finding them all is quicker
PATHS = (RankBy.LAZY, RankBy.K_SSP, RankBy.K_DSSP)
ENUMERATE = "enumerate: every match is found and scored, the best are kept"
Branch = PathPlan | MergePlan | JoinPlan | Alternative | None


def ranking(detection: DetectPlan) -> RankPlan:
    """Each alternative by the first strategy that can do it: best paths, a merge of parts, a rank join, enumeration."""
    branches: list[Branch] = []
    reasons: list[str] = []
    for number, alternative in enumerate(detection.alternatives, start=1):
        which = f"alternative {number}: " if len(detection.alternatives) > 1 else ""
        branch, why = _branch(alternative, detection.keys, detection.choices)
        branches.append(branch)
        reasons += [which + reason for reason in why]
    return RankPlan(detection.query, detection, tuple(branches), tuple(dict.fromkeys(reasons)))


def _branch(alternative: Alternative, keys: tuple[str, ...], choices: PlannerOptions) -> tuple[Branch, list[str]]:
    query, by = alternative.query, choices.rank
    assert query.ranking is not None
    if alternative.groups is not None:
        return alternative, [ENUMERATE, "no paths: a group is no event of a path"]
    score, parts = linear_score(query.ranking), monotone_objectives(query.ranking)
    if score is not None and not {term.column.variable for term in score.terms} <= _bound(alternative):
        return None, ["left out: the score names an event that its matches do not have"]
    no_paths = _no_paths(alternative, score)
    if score is not None and no_paths is None and by in (RankBy.AUTO, *PATHS):
        return _paths(alternative, score, keys, by)
    why_not = [f"no paths: {no_paths}"] if no_paths else []
    merge = merge_plan(alternative) if (no_merge := _no_merge(alternative)) is None else Refused(no_merge)
    if isinstance(merge, MergePlan) and by in (RankBy.AUTO, RankBy.NRA, RankBy.TA):
        merge = replace(merge, schedule=choices.schedule, looks_up=by is RankBy.TA, keeps=_keeps(query))
        return merge, [*_merge_reasons(merge), *_unless_few(query), *why_not]
    why_not += [f"no merge: {merge.reason}"] if isinstance(merge, Refused) else []
    no_join = _no_join(alternative, parts)
    if parts is not None and no_join is None and by in (RankBy.AUTO, RankBy.JOIN):
        why = (
            "join: the score rises with each event's own part, so events are taken best first until the rest cannot win"
        )
        kept = ["when the window moves, what was joined and stays inside is kept"] if query.update else []
        tied = "all that tie with the last of the best are joined"
        return JoinPlan(alternative, parts), [why, tied, *kept, *_unless_few(query), *why_not]
    why_not += [f"no rank join: {no_join}"] if no_join else []
    return alternative, [ENUMERATE, *why_not]


def _merge_reasons(merge: MergePlan) -> list[str]:
    ranking = merge.alternative.query.ranking
    assert ranking is not None
    how = "looked up in the others by what links them" if merge.looks_up else "joined with what was read of the others"
    found = [f"merge: the parts of the score are ranked apart; a part's match that is read is {how}"]
    if any(group.count > 1 and group.function in ("SUM", "AVG") for group in ranking.merges):
        found.append("objectives that are weighted sums and merged by SUM or AVG are one weighted sum")
    if merge.looks_up:
        found.append(f"to be looked up, all matches of each part are listed; past {MAX_PATHS:,} all matches instead")
    found.append(f"all that may tie with the last of the best are joined; past {MAX_PATHS:,} all matches instead")
    if merge.alternative.query.update is None:
        return found
    if not merge.keeps:
        found.append(f"every window is begun anew: fewer than {MANY_MOVES} of them share an event")
    elif merge.looks_up:
        found.append("when the window moves, what was listed and stays inside is kept")
    else:
        found.append("when the window moves, what was read and joined and stays inside is kept")
    return found


def _keeps(query: b.BoundQuery) -> bool:
    if query.update is None or query.window is None:
        return False
    return query.window.length >= MANY_MOVES * query.update.length


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
    if not {v for o in query.ranking.objectives for v in o.expression.variables} <= _bound(alternative):
        return "the score names an event that its matches do not have"
    if query.update is None and query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return "the window counts rows beyond the best"
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


def _paths(
    alternative: Alternative, score: LinearScore, shared: tuple[str, ...], by: RankBy
) -> tuple[PathPlan, list[str]]:
    query = alternative.query
    assert query.ranking is not None
    # An event alone equals nothing: a null there does not keep it from being a match.
    shared = shared if len(alternative.steps) > 1 else ()
    keys = tuple(dict.fromkeys((*shared, *query.group_by, *query.partition_by)))
    compared = alternative.pairs_beyond(keys)
    why = ["paths: the score is a weighted sum, so the best matches are the best paths"]
    if len(query.ranking.objectives) > 1:
        why.append("objectives that are weighted sums and merged by SUM or AVG are one weighted sum: nothing is joined")
    if by not in PATHS:
        by = RankBy.LAZY
    elif by is not RankBy.LAZY and (compared or (query.window is not None and query.update is None)):
        what = "comparison between events" if compared else "window of each match's own"
        why.append(f"no {by.value}: it knows no {what}; lazy instead")
        by = RankBy.LAZY
    if by is not RankBy.LAZY:
        why.append(f"{by.value} reads ties one by one: where they are very many, lazy instead")
    why += _when_close(score, query, keys=bool(keys), compared=bool(compared))
    return PathPlan(alternative, score, keys, compared, by), why


def _when_close(score: LinearScore, query: b.BoundQuery, *, keys: bool, compared: bool) -> Iterator[str]:
    """What happens where sums do not tell paths apart."""
    broken = ", or break a comparison" if compared else ""
    yield f"where many sums round alike{broken}: kinds of paths instead, events with equal values being one"
    if keys and query.update:
        yield f"past {MAX_PATHS:,} of them in one window, every window looks at all its keys"
    totals: dict[b.Column, Fraction] = {}
    for term in score.terms:
        totals[term.column] = totals.get(term.column, Fraction(0)) + term.coefficient
    for column in (column for column, total in totals.items() if not total and column.kind is b.Kind.FLOAT):
        name = describe_expression(column, query.variables)
        yield f"{name} cancels out but for rounding: a window costs as many kinds as it has values there"
    yield f"more than {MAX_KINDS:,} kinds for one window: all matches instead"
