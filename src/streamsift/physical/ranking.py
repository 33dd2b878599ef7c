"""A detection plan and the query's preferences in, the ranking plan out: how the k best matches will be found."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.errors import QueryError
from streamsift.logical import bound as b
from streamsift.logical.describe import describe_expression
from streamsift.physical.linear import LinearScore, linear_score
from streamsift.physical.plan import Alternative, DetectPlan, Pair, PathPlan, RankPlan

STRATEGIES = ("auto", "paths", "enumerate")


def ranking(detection: DetectPlan, strategy: str = "auto") -> RankPlan:
    """Each alternative by best paths where it can be, by enumeration where not."""
    if strategy not in STRATEGIES:
        raise QueryError(f"strategy={strategy!r}", hint=f"a ranking's is one of {', '.join(STRATEGIES)}.")
    query = detection.query
    assert query.ranking is not None
    branches: list[PathPlan | Alternative | None] = []
    score = linear_score(query.ranking)
    reasons: list[str] = []
    for number, alternative in enumerate(detection.alternatives, start=1):
        which = f"alternative {number}: " if len(detection.alternatives) > 1 else ""
        obstacle = "asked for" if strategy == "enumerate" else _obstacle(alternative)
        if score is not None and not _binds_all(alternative, score):
            branches.append(None)
            reasons.append(f"{which}left out: the score names an event that its matches do not have")
        elif obstacle is None and score is not None:
            branches.append(_paths(alternative, score, detection.keys))
            reasons.append(which + "paths: the score is a weighted sum, so the best matches are the best paths")
        else:
            branches.append(alternative)
            reasons.append(f"{which}enumerate: {obstacle}; every match is found and scored, the best are kept")
    return RankPlan(query, detection, tuple(branches), tuple(dict.fromkeys(reasons)))


def _binds_all(alternative: Alternative, score: LinearScore) -> bool:
    bound = {step.variable for step in alternative.steps}
    return all(term.column.variable in bound for term in score.terms)


def _obstacle(alternative: Alternative) -> str | None:
    """What keeps an alternative from being ranked by paths; None if nothing does."""
    query = alternative.query
    assert query.ranking is not None
    counts_keys = query.window is not None and query.window.kind is b.WindowKind.COUNT and query.partition_by
    if alternative.negations:
        return "a match with negations is no path"
    if not alternative.is_sequence:
        return "the events of a match have no one order"
    if counts_keys:
        return "each key has a window of its own"
    if linear_score(query.ranking) is None:
        return "the score is no weighted sum of attributes"
    general = next((f for step in alternative.steps for f in step.filters), None)
    if general is not None:
        return f"{describe_expression(general, query.variables)} is no comparison of two events"
    return None


def _paths(alternative: Alternative, score: LinearScore, shared: tuple[str, ...]) -> PathPlan:
    query = alternative.query
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
        else:
            yield f"{which}all matches, in chunks" if branch else f"{which}no match has a score"


def _until(branch: PathPlan) -> str:
    if not branch.compared:
        return "the best are known"
    return "enough of them pass the comparisons; what a broken comparison rules out is not looked at"
