"""Describe how a plan runs on a stream: when it emits rows, how it updates them, what it reads and retains."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.language.syntax import Emit
from streamsift.physical.explain.words import wrap_lines
from streamsift.physical.plan import Plan, RankPlan
from streamsift.physical.stream import DecideBy, FinalizedAlternative, FinalizedBy, StreamPlan, stream_plan


def describe_stream(plan: Plan) -> Iterator[str]:
    """Yield the lines `emit:`, `update:`, `read:` and `state:`; raise if a stream cannot run the plan."""
    return wrap_lines(_lines(stream_plan(plan)))


def _lines(stream: StreamPlan) -> Iterator[str]:
    yield f"emit:   when the watermark passes {_emitted_at(stream)}"
    match stream.decide_by:
        case DecideBy.MATCHES:
            for number, one in enumerate(stream.alternatives, start=1):
                which = f"alternative {number}: " if len(stream.alternatives) > 1 else ""
                yield f"update: {which}{_search(one)}"
            yield f"read:   {_rows_read(stream, 'an event that makes a match final')}"
        case DecideBy.RUNNING_TOTALS:
            yield "update: incremental; new events update the counters of their keys"
        case DecideBy.WINDOW_TOTALS:
            yield "update: incremental; the two stacks of each key are kept between micro-batches"
        case DecideBy.RECOMPUTED if (update := stream.plan.query.update) is not None:
            why = "" if isinstance(stream.plan, RankPlan) else f": {stream.why_recomputed}"
            ranked = "ranks the window again" if isinstance(stream.plan, RankPlan) else "recomputes the window"
            yield f"update: {ranked} every {update.text}{why}"
        case DecideBy.RECOMPUTED:
            yield f"update: recomputes the window when the watermark advances: {stream.why_recomputed}"
            yield f"read:   {_rows_read(stream, 'an event that can end a match')}"
    yield f"state:  {_state(stream)}"


def _emitted_at(stream: StreamPlan) -> str:
    if stream.decide_by is not DecideBy.MATCHES:
        moment = "the tick of the row" if stream.plan.query.update is not None else "the time of the row"
        wait = " plus one window, because matches wait for a trailing negation or Kleene group"
        return moment + wait * stream.waits
    waits = [one.awaited for one in stream.alternatives]
    text = "the last event of the match"
    if any(wait.window for wait in waits):
        text += ", or the end of its window if a trailing negation or Kleene group has to wait for it"
    if any(wait.definitions or wait.inside for wait in waits):
        text += " and the ends of the definition windows that the match waits for"
    return text


def _search(one: FinalizedAlternative) -> str:
    if one.alternative.groups is not None and not one.is_marked:
        return "searches all rows read and emits the newly final matches"
    if one.by is FinalizedBy.ANY:
        return f"searches {one.by.value} and emits the newly final matches"
    return f"incremental; builds only newly final matches, {one.by.value}"


def _rows_read(stream: StreamPlan, event: str) -> str:
    query = stream.plan.query
    if stream.keys:
        return f"rows that share {', '.join(stream.keys)} with {event}"
    if query.has_count_window:
        why = "the window counts the rows of all keys"
    elif not query.aggregates:
        why = "no column is equal in all events of a match"
    elif query.emit is Emit.CHANGES:
        why = "an event of one group can reveal a change in another"
    else:
        why = "totals wait for the end of a window" if query.group_by else "totals cover all keys"
    return f"all retained rows: {why}"


def _state(stream: StreamPlan) -> str:
    query = stream.plan.query
    if stream.decide_by is DecideBy.RUNNING_TOTALS:
        return "the counters of each key and the totals of each group; no events"
    events = "events of the pattern's classes that pass its single-event predicates"
    if query.window is None:
        return f"all {events}, forever: without WITHIN, any of them can be read again"
    if stream.counts_rows:
        events = "the last rows" + (f" per {', '.join(query.partition_by)}" if query.partition_by else "")
    count = ("one window", "two windows", "three windows")[len(stream.state_windows) - 1]
    definitions = [(d.name, d.window) for d in query.pattern.windowed_definitions()]
    windows = ", ".join(f"{window.text} ({name})" for name, window in definitions if window is not None)
    reach = f"{count} of {query.window.text}" + (f" and the definition windows: {windows}" if windows else "")
    until = " before the latest of them" if query.emit is Emit.CHANGES else ""
    why = " and ".join(reason.value for reason in stream.state_windows)
    is_stacked = stream.decide_by is DecideBy.WINDOW_TOTALS and not stream.counts_rows
    rebuilt = "; the stacks are kept in memory and rebuilt from these events when state is loaded" * is_stacked
    return f"{events}, for {reach}{until}; needed {why}{rebuilt}"
