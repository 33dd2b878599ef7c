"""Describe how a plan runs on a stream: when rows come, how they are found, what is held."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.plan import Plan, RankPlan
from streamsift.physical.stream import DecideBy, FinalizedAlternative, FinalizedBy, StreamPlan, stream_plan


def describe_stream(plan: Plan) -> Iterator[str]:
    """Yield when rows come, how they are found and what is held; what a stream cannot have raises."""
    stream = stream_plan(plan)
    yield _released(stream)
    match stream.decide_by:
        case DecideBy.MATCHES:
            for number, one in enumerate(stream.alternatives, start=1):
                which = f"alternative {number}: " if len(stream.alternatives) > 1 else ""
                yield f"{which}{_found(one)}"
            yield _among(stream.keys, plan.query, "an event that decides one")
        case DecideBy.RUNNING_TOTALS:
            yield "new events are counted on from the counters of their keys"
        case DecideBy.WINDOW_TOTALS:
            yield "new events are counted on: the two stacks of each key go on from where they were"
        case DecideBy.RECOMPUTED if (update := plan.query.update) is not None:
            told = "ranked again" if isinstance(plan, RankPlan) else f"counted again: {stream.why_recomputed}"
            yield f"every {update.text} the window is {told}"
        case DecideBy.RECOMPUTED:
            again = "the window is counted again as time passes, and only rows of later times come out"
            yield f"{again}: {stream.why_recomputed}"
            yield _among(stream.keys, plan.query, "an event that may end one")
    yield f"state: {_state(stream)}"


def _released(stream: StreamPlan) -> str:
    end = "a row comes when time has passed "
    if stream.decide_by is not DecideBy.MATCHES:
        own = "its tick" if stream.plan.query.update is not None else "its time"
        return end + own + ", and a window more: matches wait for their upper edges" * stream.waits
    waits = [one.awaited for one in stream.alternatives]
    what = ["the last event of its match"]
    if any(wait.window for wait in waits):
        what.append("where an upper edge or a trailing group waits for it, the end of the window")
    if any(wait.definitions or wait.inside for wait in waits):
        what.append("the windows of definitions that it waits for")
    return end + "; ".join(what)


def _found(one: FinalizedAlternative) -> str:
    if one.alternative.groups is not None and not one.is_marked:
        return "the matches of these rows are found, and those that are newly decided come out"
    if one.by is FinalizedBy.ANY:
        return f"matches are found {one.by.value}; those that are newly decided come out"
    return f"only matches that are newly decided are built: {one.by.value}"


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


def _state(stream: StreamPlan) -> str:
    query = stream.plan.query
    if stream.decide_by is DecideBy.RUNNING_TOTALS:
        return "the counters of each key and the totals of each group; no event is kept"
    what = "events of the pattern's classes that pass its local predicates"
    if query.window is None:
        return f"all {what}, for ever: there is no WITHIN, and they may be looked at again"
    if stream.counts_rows:
        of_each = f" of each {', '.join(query.partition_by)}" if query.partition_by else ""
        what = f"the last rows{of_each}"
    anew = "; the stacks are in memory, and made anew from them where a state is read"
    is_stacked = stream.decide_by is DecideBy.WINDOW_TOTALS and not stream.counts_rows
    return f"{what}: {_reach(stream)}" + anew * is_stacked


def _reach(stream: StreamPlan) -> str:
    """Return how far back state reaches, with the reason for each window."""
    query, reasons = stream.plan.query, stream.state_windows
    assert query.window is not None
    count = ("one window", "two windows", "three windows")[len(reasons) - 1]
    own = ", ".join(f"{d.window.text} ({d.name})" for d in query.pattern.windowed_definitions() if d.window is not None)
    reach = f"{count} of {query.window.text}" + (f" and the windows of definitions, {own}" if own else "")
    until = " before the last of them" if query.emit is Emit.CHANGES else ""
    return f"{reach}{until}, kept {' and '.join(reason.value for reason in reasons)}"
