"""Derive when the matches of a plan become final on a stream, and which events a later result may still read.

A match is final with its last event, unless a negation's upper edge or a trailing group is to be awaited: then at the
end of the window of its first event, or of a definition's own window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.plan import (
    Alternative,
    DetectPlan,
    Edge,
    KleeneGroups,
    Limit,
    Negation,
    Plan,
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


def looks_back(plan: Plan) -> bool:
    """Return True if events before a match, back to a window before its end, affect whether it is one.

    A leading negation forbids them; an element of a leading `+` or `*` group makes the match part of a larger one.
    """
    return any(
        _has_leading_group(alternative) or any(limit.edge is Edge.WINDOW_START for limit, _ in _limits(alternative))
        for alternative in plan.alternatives
    )


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
    if StateWindow.MATCH not in found and looks_back(plan):
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
    """Return True if the query counts rows, so that no row may be dropped before its position is known."""
    lengths = [window for window, _ in windows(query)] + ([query.update] if query.update is not None else [])
    return any(length.kind is b.WindowKind.COUNT for length in lengths)


def is_awaited(plan: Plan) -> bool:
    """Return True if some match of the plan becomes final later than its last event."""
    return any(wait.window or wait.definitions or wait.inside for wait in map(awaited, plan.alternatives))
