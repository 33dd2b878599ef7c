"""Derive when the matches of a plan become final on a stream, and which events a later result may still read.

A match is final with its last event. With a trailing negation or Kleene group, it is final at the end of its window,
which begins with its first event, or at the end of a definition window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.plan import Alternative, DetectPlan, Edge, Limit, Plan


@dataclass(frozen=True, slots=True)
class Awaited:
    """The times that make a match final besides its last event."""

    window: bool  # the end of the statement's window, which begins with the first event of the match
    definitions: tuple[Limit, ...]  # the ends of definition windows, which begin with the first event of some steps
    inside: tuple[str, ...]  # definitions inside negations: their windows begin at an event outside the match


def awaited(alternative: Alternative) -> Awaited:
    """Return the conditions that make the matches of an alternative final."""
    negations = [(inner, inner is outer) for outer in alternative.all_negations() for inner in outer.walk()]
    ends = [(n.upper, is_outermost) for n, is_outermost in negations if n.upper.edge is Edge.WINDOW_END]
    # A later event can extend a `+` or `*` group that no single event follows.
    groups = alternative.groups if alternative.query.emit is not Emit.EACH else None
    may_grow = groups is not None and any(not before for order in groups.orders for before in order.before)
    return Awaited(
        window=may_grow or any(limit.definition is None for limit, _ in ends),
        definitions=tuple(dict.fromkeys(limit for limit, is_outermost in ends if limit.definition and is_outermost)),
        inside=tuple(
            dict.fromkeys(limit.definition for limit, outermost in ends if limit.definition and not outermost)
        ),
    )


def is_awaited(plan: Plan) -> bool:
    """Return True if some match of the plan becomes final later than its last event."""
    return any(wait.window or wait.definitions or wait.inside for wait in map(awaited, plan.alternatives))


def looks_back(plan: Plan) -> bool:
    """Return True if events before a match, up to one window before its end, can rule it out or extend it.

    A leading negation rules out the match; an element of a leading `+` or `*` group extends it.
    """
    negations = (n for a in plan.alternatives for outer in a.all_negations() for n in outer.walk())
    orders = (order for a in plan.alternatives if a.groups is not None for order in a.groups.orders)
    return any(n.lower.edge is Edge.WINDOW_START for n in negations) or any(not all(order.after) for order in orders)


# --- state -----------------------------------------------------------------------------------------------------------


class StateWindow(Enum):
    """A reason why state covers one more window before the watermark. `explain` prints the value."""

    WAITING = "until a match is final"  # the window that begins with its first event has to pass
    MATCH = "for matches in progress"  # each ends with an event that has not arrived yet
    ROW = "for the matches that a row covers"  # they lie in the window before its time
    BEFORE = "for earlier events that can rule out a match or extend its first Kleene group"  # back to end − WITHIN


def state_windows(plan: Plan) -> tuple[StateWindow, ...]:
    """Return one reason for each consecutive window whose events a later result can still read."""
    is_detection, waits = isinstance(plan, DetectPlan), is_awaited(plan)
    # Until its last event arrives, the window of a match also covers the events before the match.
    is_covered = is_detection and not waits
    reasons = {
        StateWindow.WAITING: waits,
        StateWindow.MATCH: is_covered,
        StateWindow.ROW: not is_detection,
        StateWindow.BEFORE: not is_covered and looks_back(plan),
    }
    return tuple(reason for reason, applies in reasons.items() if applies)


# --- windows ---------------------------------------------------------------------------------------------------------


def windows(query: b.BoundQuery) -> Iterator[tuple[b.BoundWindow, tuple[str, ...]]]:
    """Yield the windows of the statement and its definitions, with the partition columns of count windows."""
    if query.window is not None:
        yield query.window, query.partition_by
    for definition in query.pattern.windowed_definitions():
        assert definition.window is not None
        yield definition.window, definition.partition_by or query.partition_by


def counts_rows(query: b.BoundQuery) -> bool:
    """Return True if the query counts rows, so that no row may be dropped before its position is known."""
    lengths = [query.update, *(window for window, _ in windows(query))]
    return any(length is not None and length.kind is b.WindowKind.COUNT for length in lengths)
