"""A plan in, the lines that tell how it runs on a stream out: when rows come, how they are found, what is held."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.plan import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.physical.stream import (
    Anchor,
    Anchored,
    anchored,
    awaited,
    check_stream,
    counts_rows,
    group_keys,
    is_awaited,
    keeps_no_events,
    state_windows,
    stream_keys,
    why_recounted,
)


def describe_stream(plan: Plan) -> Iterator[str]:
    """What a stream cannot have raises."""
    check_stream(plan)
    yield from _released(plan)
    if isinstance(plan, DetectPlan):
        for number, alternative in enumerate(plan.alternatives, start=1):
            which = f"alternative {number}: " if len(plan.alternatives) > 1 else ""
            yield f"{which}{_found(anchored(plan, alternative))}"
        yield _among(stream_keys(plan), plan.query, "an event that decides one")
    elif isinstance(plan, AggregatePlan) and keeps_no_events(plan):
        yield "new events are counted on from the counters of their keys"
    elif isinstance(plan, AggregatePlan) and (why := why_recounted(plan)) is None:
        yield "new events are counted on: the two stacks of each key go on from where they were"
    elif (update := plan.query.update) is not None:
        told = "ranked again" if isinstance(plan, RankPlan) else f"counted again: {why}"
        yield f"every {update.text} the window is {told}"
    else:
        yield f"the window is counted again as time passes, and only rows of later times come out: {why}"
        yield _among(group_keys(plan), plan.query, "an event that may end one")
    yield f"state: {_state(plan)}"


def _released(plan: Plan) -> Iterator[str]:
    waits = [awaited(alternative) for alternative in plan.alternatives]
    end = "a row comes when time has passed "
    if isinstance(plan, DetectPlan):
        what = ["the last event of its match"]
        if any(wait.window for wait in waits):
            what.append("where an upper edge or a trailing group waits for it, the end of the window")
        if any(wait.definitions or wait.inside for wait in waits):
            what.append("the windows of definitions that it waits for")
        yield end + "; ".join(what)
        return
    own = "its tick" if plan.query.update is not None else "its time"
    yield end + own + (", and a window more: matches wait for their upper edges" if is_awaited(plan) else "")


def _found(one: Anchored) -> str:
    if one.alternative.groups is not None and not one.is_marked:
        return "the matches of these rows are found, and those that are newly decided come out"
    return (
        f"only matches that are newly decided are built: {one.anchor.value}"
        if one.anchor is not Anchor.ANY
        else (f"matches are found {one.anchor.value}; those that are newly decided come out")
    )


def _among(keys: tuple[str, ...], query: b.BoundQuery, what: str) -> str:
    if keys:
        return f"looked at are rows that share {', '.join(keys)} with {what}"
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return "looked at are all rows that are held: the window counts the rows of all keys"
    if query.aggregates:
        return f"looked at are all rows that are held: {_why_all(query)}"
    return "looked at are all rows that are held: no column is shared by all variables"


def _why_all(query: b.BoundQuery) -> str:
    if query.emit is Emit.CHANGES:
        return "an event of one group may show that another changed"
    return "totals wait for the end of a window" if query.group_by else "totals are over all keys"


def _state(plan: Plan) -> str:
    query = plan.query
    if isinstance(plan, AggregatePlan) and keeps_no_events(plan):
        return "the counters of each key and the totals of each group; no event is kept"
    what = "events of the pattern's classes that pass its local predicates"
    if query.window is None:
        return f"all {what}, for ever: there is no WITHIN, and they may be looked at again"
    if counts_rows(query):
        of_each = f" of each {', '.join(query.partition_by)}" if query.partition_by else ""
        return f"the last rows{of_each}: {_reach(plan)}"
    if isinstance(plan, AggregatePlan) and why_recounted(plan) is None:
        return f"{what}: {_reach(plan)}; the stacks are in memory, and made anew from them where a state is read"
    return f"{what}: {_reach(plan)}"


def _reach(plan: Plan) -> str:
    """Return how far back state reaches, with the reason for each window."""
    query = plan.query
    assert query.window is not None
    reasons = state_windows(plan)
    count = ("one window", "two windows", "three windows")[len(reasons) - 1]
    own = ", ".join(f"{d.window.text} ({d.name})" for d in query.pattern.windowed_definitions() if d.window is not None)
    reach = f"{count} of {query.window.text}" + (f" and the windows of definitions, {own}" if own else "")
    until = " before the last of them" if query.emit is Emit.CHANGES else ""
    return f"{reach}{until}, kept {' and '.join(reason.value for reason in reasons)}"
