"""A plan in, what time decides on a stream out: when rows are released, what they look back on, what must be refused.

A match is decided by its last event, unless a negation's upper edge or a trailing group is to be awaited: then by the
end of the window of its first event, or of a definition's own window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from streamsift.errors import QueryError, UnsupportedQuery
from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.logical.durations import limits_nothing, unit_of
from streamsift.physical.plan import (
    AggregatePlan,
    Alternative,
    DetectPlan,
    Edge,
    KleeneGroups,
    Limit,
    Negation,
    Plan,
    RankPlan,
    Strategy,
)


@dataclass(frozen=True, slots=True)
class Awaited:
    """What decides a match besides its last event."""

    window: bool  # the end of the statement's window, that begins with its first event
    definitions: tuple[Limit, ...]  # the ends of own windows, that begin with the first event of some steps
    inside: tuple[str, ...]  # definitions inside negations: their windows begin at an event that is not of the match


def awaited(alternative: Alternative) -> Awaited:
    """What decides the matches of an alternative."""
    window, definitions, inside = _may_still_grow(alternative), [], []
    for limit, is_outermost in _limits(alternative):
        if limit.edge is not Edge.WINDOW_END:
            continue
        if limit.definition is None:
            window = True
        elif is_outermost:
            definitions.append(limit)
        else:
            inside.append(limit.definition)
    return Awaited(window, tuple(dict.fromkeys(definitions)), tuple(dict.fromkeys(inside)))


def _may_still_grow(alternative: Alternative) -> bool:
    """Whether a later event may join a `+` or `*` group: no single event comes after it."""
    groups = alternative.groups
    if groups is None or alternative.query.emit is Emit.EACH:
        return False
    return any(not before for order in groups.orders for before in order.before)


def looks_back(alternative: Alternative) -> bool:
    """Return True if events before a match, back to a window before its end, affect whether it is one.

    A leading negation forbids them; an element of a leading `+` or `*` group makes the match part of a larger one.
    """
    return any(limit.edge is Edge.WINDOW_START for limit, _ in _limits(alternative)) or _has_leading_group(alternative)


def _has_leading_group(alternative: Alternative) -> bool:
    """Return True if an earlier event may join a `+` or `*` group: no single event comes before it."""
    groups = alternative.groups
    return groups is not None and any(not after for order in groups.orders for after in order.after)


def _limits(alternative: Alternative) -> Iterator[tuple[Limit, bool]]:
    """Both ends of all intervals of negations, and whether the negation is one of the pattern itself."""
    yield from _of_negations(alternative.negations, is_outermost=True)
    if alternative.groups is not None:
        yield from _of_groups(alternative.groups, is_outermost=True)


def _of_negations(negations: tuple[Negation, ...], *, is_outermost: bool) -> Iterator[tuple[Limit, bool]]:
    for negation in negations:
        yield negation.lower, is_outermost
        yield negation.upper, is_outermost
        yield from _of_negations(negation.negations, is_outermost=False)


def _of_groups(groups: KleeneGroups, *, is_outermost: bool) -> Iterator[tuple[Limit, bool]]:
    for decided in groups.decided:
        yield from _of_negations(decided.negations, is_outermost=is_outermost)
        for negation in decided.group_negations:
            yield negation.lower, is_outermost
            yield negation.upper, is_outermost
            yield from _of_groups(negation.groups, is_outermost=False)


# --- state -----------------------------------------------------------------------------------------------------------


class StateWindow(Enum):
    """Why state must cover one more window before the watermark. The value is how explain spells it."""

    WAITING = "until a match is final"  # the window that begins with its first event has to pass
    MATCH = "for the events of a match"  # it ends with an event that has not arrived yet
    ROW = "for the matches of a row"  # those that lie in the window before its time
    BEFORE = "for events before a match, which may rule it out or extend its first group"  # they reach to end − w


def state_windows(plan: Plan) -> tuple[StateWindow, ...]:
    """Return one reason for each window, one behind the other, whose events a later result may still read."""
    waits = is_awaited(plan)
    found = [StateWindow.WAITING] if waits else []
    if not isinstance(plan, DetectPlan):
        found.append(StateWindow.ROW)
    elif not waits:
        found.append(StateWindow.MATCH)
    # Until its last event arrives, a match has a window behind it that covers what lies before the match, too.
    if StateWindow.MATCH not in found and any(map(looks_back, plan.alternatives)):
        found.append(StateWindow.BEFORE)
    return tuple(found)


# --- windows ---------------------------------------------------------------------------------------------------------


def windows(query: b.BoundQuery) -> Iterator[tuple[b.BoundWindow, tuple[str, ...]]]:
    """The windows of the statement and of its definitions, with the columns by which a count window counts apart."""
    if query.window is not None:
        yield query.window, query.partition_by
    for definition in query.pattern.windowed_definitions():
        assert definition.window is not None
        yield definition.window, definition.partition_by or query.partition_by


def counts_rows(query: b.BoundQuery) -> bool:
    """Whether rows have positions, so that none can be left out before its position is known."""
    return any(window.kind is b.WindowKind.COUNT for window, _ in windows(query)) or ticks_count_rows(query)


def ticks_count_rows(query: b.BoundQuery) -> bool:
    return query.update is not None and query.update.kind is b.WindowKind.COUNT


def _counts_prefixes(plan: AggregatePlan) -> bool:
    """Whether all that is ever looked at again are the counters of prefixes: nothing leaves."""
    return plan.query.window is None and all(branch.strategy is Strategy.PREFIX for branch in plan.branches)


def keeps_no_events(plan: AggregatePlan) -> bool:
    """Whether counters and totals are all that a stream must hold. Extremes of texts and wide decimals are ranked."""
    return _counts_prefixes(plan) and _extremes_have_codes(plan.query)


def why_recounted(plan: AggregatePlan) -> str | None:
    """Why totals over a window are counted again from its events as time passes; None if they are counted on."""
    query, counted = plan.query, (Strategy.PREFIX, Strategy.TWO_STACK)
    if (
        other := next((branch.strategy for branch in plan.branches if branch.strategy not in counted), None)
    ) is not None:
        return f"{other.value} looks at the events of the window"
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return "the window counts rows"
    if query.emit is Emit.CHANGES:
        return "EMIT CHANGES compares with rows that are told already"
    if any(len(branch.alternative.steps) == 1 and set(branch.keys) != set(query.group_by) for branch in plan.branches):
        return "a single event without a key is a match"
    if pa.types.is_decimal(query.schema.field(query.binding.time).type):
        return "the digits of decimal times depend on the events"
    if not _extremes_have_codes(query):
        return "extremes of texts and decimals are ranked among the events"
    return None


def _extremes_have_codes(query: b.BoundQuery) -> bool:
    extremes = [a.column for a in query.aggregates if a.function in ("MIN", "MAX") and a.column is not None]
    return all(column == b.TIME or _has_codes(query.schema.field(column).type) for column in extremes)


def _has_codes(kind: pa.DataType) -> bool:
    """Whether a number of 64 bits stands for each value: whole numbers, doubles, times."""
    whole = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    time = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind)
    return bool(whole or time or kind == pa.float64() or kind == pa.float32())


def is_awaited(plan: Plan) -> bool:
    """Whether some match of the plan is decided later than its last event."""
    found = [awaited(alternative) for alternative in plan.alternatives]
    return any(a.window or a.definitions or a.inside for a in found)


# --- what a stream cannot have ---------------------------------------------------------------------------------------


def check_stream(plan: Plan) -> None:
    """Raises what makes a query meaningless, or not evaluated, on a stream."""
    query = plan.query
    if isinstance(plan, DetectPlan) and query.window is None:
        hint = "a match could begin with any event of the past: say how long one may take, as in WITHIN 1 hour."
        raise QueryError("detection on a stream needs WITHIN", query.text, query.pattern.span, hint)
    if isinstance(plan, RankPlan) and query.update is None:
        hint = "a stream has no end at which the best of all could be told: UPDATE 1 min ranks at every full minute."
        raise QueryError("ranking on a stream needs UPDATE", query.text, query.pattern.span, hint)
    _refuse_endless_windows(query)
    _refuse_mixed_windows(query)
    if isinstance(plan, AggregatePlan | RankPlan) and is_awaited(plan):
        if query.window is None:
            hint = "any later event could join a group that nothing follows: say how long, as in WITHIN 1 hour."
            raise QueryError("a trailing group on a stream needs WITHIN", query.text, query.pattern.span, hint)
        _refuse_open_keys(query)


def _refuse_endless_windows(query: b.BoundQuery) -> None:
    """A window beyond the range of the time column never ends, as if there were none."""
    unit = unit_of(query)
    for window, _ in windows(query):
        if limits_nothing(window, unit):
            raise QueryError(
                f"WITHIN {window.text} limits nothing on a stream: no two times of `{query.binding.time}` ({unit}) are "
                "that far apart",
                query.text,
                window.span,
                "say how long a match may take, as in WITHIN 3600.",
            )


def _refuse_mixed_windows(query: b.BoundQuery) -> None:
    """How far back rows are needed is told in time or in rows of one kind of partition, not in both."""
    found = list(windows(query))
    kinds = {(window.kind, keys if window.kind is b.WindowKind.COUNT else ()) for window, keys in found}
    if len(kinds) > 1:
        raise UnsupportedQuery(
            "on a stream, windows that count rows beside windows of time, or rows of other partitions",
            query.text,
            found[-1][0].span,
            "give all windows as times, or all as rows of the same partitions.",
        )


def _refuse_open_keys(query: b.BoundQuery) -> None:
    """A row over all keys would wait for keys that may never have another event."""
    counted = [window for window, keys in windows(query) if window.kind is b.WindowKind.COUNT and keys]
    if counted:
        raise UnsupportedQuery(
            "on a stream, totals and ranks of matches that wait for the end of a count window within PARTITION BY",
            query.text,
            counted[0].span,
            "give the window as a time, or close the pattern with a positive event.",
        )
