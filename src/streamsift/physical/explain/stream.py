"""Describe how a plan runs on a stream: when rows are emitted, how they are found, what is retained."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.language.syntax import Emit
from streamsift.physical.plan import Plan, RankPlan
from streamsift.physical.stream import DecideBy, FinalizedAlternative, FinalizedBy, StreamPlan, stream_plan


def describe_stream(plan: Plan) -> Iterator[str]:
    """Yield when rows are emitted, how they are found and what is retained; raise if a stream cannot run the plan."""
    stream = stream_plan(plan)
    yield f"a row comes when time has passed {_awaited(stream)}"
    match stream.decide_by:
        case DecideBy.MATCHES:
            for number, one in enumerate(stream.alternatives, start=1):
                which = f"alternative {number}: " if len(stream.alternatives) > 1 else ""
                yield f"{which}{_built(one)}"
            yield f"looked at are {_rows_read(stream, 'an event that decides one')}"
        case DecideBy.RUNNING_TOTALS:
            yield "new events are counted on from the counters of their keys"
        case DecideBy.WINDOW_TOTALS:
            yield "new events are counted on: the two stacks of each key go on from where they were"
        case DecideBy.RECOMPUTED if (update := plan.query.update) is not None:
            again = "ranked again" if isinstance(plan, RankPlan) else f"counted again: {stream.why_recomputed}"
            yield f"every {update.text} the window is {again}"
        case DecideBy.RECOMPUTED:
            again = "the window is counted again as time passes, and only rows of later times come out"
            yield f"{again}: {stream.why_recomputed}"
            yield f"looked at are {_rows_read(stream, 'an event that may end one')}"
    yield f"state: {_state(stream)}"


def _awaited(stream: StreamPlan) -> str:
    if stream.decide_by is not DecideBy.MATCHES:
        moment = "its tick" if stream.plan.query.update is not None else "its time"
        return moment + ", and a window more: matches wait for their upper edges" * stream.waits
    waits = [one.awaited for one in stream.alternatives]
    parts = ["the last event of its match"]
    if any(wait.window for wait in waits):
        parts.append("where an upper edge or a trailing group waits for it, the end of the window")
    if any(wait.definitions or wait.inside for wait in waits):
        parts.append("the windows of definitions that it waits for")
    return "; ".join(parts)


def _built(one: FinalizedAlternative) -> str:
    if one.alternative.groups is not None and not one.is_marked:
        return "the matches of these rows are found, and those that are newly decided come out"
    if one.by is FinalizedBy.ANY:
        return f"matches are found {one.by.value}; those that are newly decided come out"
    return f"only matches that are newly decided are built: {one.by.value}"


def _rows_read(stream: StreamPlan, event: str) -> str:
    query = stream.plan.query
    if stream.keys:
        return f"rows that share {', '.join(stream.keys)} with {event}"
    if query.has_count_window:
        why = "the window counts the rows of all keys"
    elif not query.aggregates:
        why = "no column is shared by all variables"
    elif query.emit is Emit.CHANGES:
        why = "an event of one group may show that another changed"
    else:
        why = "totals wait for the end of a window" if query.group_by else "totals are over all keys"
    return f"all rows that are held: {why}"


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
    count = ("one window", "two windows", "three windows")[len(stream.state_windows) - 1]
    definitions = [(d.name, d.window) for d in query.pattern.windowed_definitions()]
    windows = ", ".join(f"{window.text} ({name})" for name, window in definitions if window is not None)
    reach = f"{count} of {query.window.text}" + (f" and the windows of definitions, {windows}" if windows else "")
    until = " before the last of them" if query.emit is Emit.CHANGES else ""
    why = f"kept {' and '.join(reason.value for reason in stream.state_windows)}"
    is_stacked = stream.decide_by is DecideBy.WINDOW_TOTALS and not stream.counts_rows
    rebuilt = "; the stacks are in memory, and made anew from them where a state is read" * is_stacked
    return f"{what}: {reach}{until}, {why}{rebuilt}"
