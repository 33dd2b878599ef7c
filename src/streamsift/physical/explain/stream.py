"""Describe how a plan runs on a stream: when it emits rows, how it updates them, what it reads and retains."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.language.syntax import Emit
from streamsift.physical.explain.words import wrap_lines
from streamsift.physical.plan import Plan, RankPlan
from streamsift.physical.stream import DecideBy, FinalizedAlternative, FinalizedBy, StreamPlan, stream_plan


def describe_stream(plan: Plan, ordered: tuple[str, ...] | None = None, why_unordered: str = "") -> Iterator[str]:
    """Yield the lines `emit:`, `update:`, `read:` and `state:`; raise if a stream cannot run the plan.

    `ordered` has the columns whose keys arrive in order, if that is promised and used, and `why_unordered` says why it
    is promised and not used.
    """
    return wrap_lines([*_lines(stream_plan(plan), ordered is not None), *_order(ordered, why_unordered)])


def _order(ordered: tuple[str, ...] | None, why_unordered: str) -> Iterator[str]:
    if ordered is not None:
        which = f"event with equal {' and '.join(ordered)}" if ordered else "event of the stream"
        yield f"order:  the horizon is the watermark or the latest {which}, whichever is later"
    elif why_unordered:
        yield f"order:  `ordered` is not used: {why_unordered}"


def _lines(stream: StreamPlan, is_ordered: bool) -> Iterator[str]:
    numbered = [
        (f"alternative {number}: " if len(stream.alternatives) > 1 else "", one)
        for number, one in enumerate(stream.alternatives, start=1)
    ]
    horizon = "horizon" if is_ordered else "watermark"
    yield from (f"emit:   {which}{_released(one, horizon)}" for which, one in numbered)
    if not numbered:
        yield f"emit:   when the watermark passes {_emitted_at(stream)}"
    match stream.decide_by:
        case DecideBy.MATCHES:
            yield from (f"update: {which}{_search(one)}" for which, one in numbered)
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
    moment = "the tick of the row" if stream.plan.query.update is not None else "the time of the row"
    wait = " plus one window, because matches wait for a trailing negation or Kleene group"
    return moment + wait * stream.waits


def _released(one: FinalizedAlternative, horizon: str) -> str:
    """Return when the matches of an alternative are emitted, and why."""
    waits, passed = one.awaited, list[str]()
    if waits.is_arrival:
        return "when the last event of the match arrives: no later event can change the match"
    if waits.window:
        passed.append(f"passed the end of the window ({waits.window})")
    elif waits.end:
        passed.append(f"passed the last event of the match ({waits.end})")
    else:
        if waits.has_next:
            passed.append("reached the event after each negation")
        if waits.grows:
            passed.append("reached the event after each Kleene group")
        if waits.depends_on_order:
            passed.append("passed the end of the window if no event follows a group")
    if waits.ends:
        passed.append("passed the last event of each definition with a negation in AND")
    if waits.defining:
        passed.append(f"passed the end of the window of {', '.join(waits.defining)} (a trailing negation or group)")
    return f"when all events of the match have arrived and the {horizon} has {' and '.join(passed)}"


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
