"""Derive when the matches of a plan become final on a stream, and which events a later result may still read.

A match is final when all its events have arrived and no later event can revoke or extend it. The *horizon* is the time
before which events are late. `Awaited` lists what the horizon has to reach or pass. If the list is empty, a match is
final when the last of its events arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.plan import Alternative, DetectPlan, Edge, GroupNegation, KleeneGroups, Limit, Negation, Plan

Steps = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DefinitionGroups:
    """A definition with a window and Kleene groups: its steps, and its growing groups."""

    limit: Limit
    growing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Awaited:
    """What makes a match final besides the arrival of its events. Steps are numbered as in negations."""

    starts: tuple[Steps, ...]  # the horizon reaches the first event of each of these components
    ends: tuple[Steps, ...]  # it passes the last event of each of these definitions
    end: str  # why it passes the last event of the match; "" if it need not
    window: str  # why it passes the statement's window, which begins with the first event of the match; "" if not
    definitions: tuple[Limit, ...]  # it passes definition windows, which begin with the first event of some steps
    inside: tuple[str, ...]  # definitions inside negations: their windows begin at an event outside the match
    groups: KleeneGroups | None  # with growing groups, or with negations that are checked after groups are built
    grows: bool  # it reaches the single event after each growing group, or passes the window if there is none
    definition_groups: tuple[DefinitionGroups, ...]

    @property
    def depends_on_order(self) -> bool:
        """Return True if only some orders of AND put a single event after each group."""
        if self.groups is None or not self.grows or self.window:
            return False
        return not all(before for order in self.groups.orders for before in order.before)

    @property
    def is_newer(self) -> bool:
        """Return True if versions that waited for the watermark released these matches at other times."""
        return bool(self.inside or self.definition_groups) or self.depends_on_order

    @property
    def is_arrival(self) -> bool:
        """Return True if a match is final when its last event arrives."""
        waits = self.starts or self.ends or self.end or self.window or self.definitions or self.inside
        return not waits and self.groups is None

    @property
    def has_next(self) -> bool:
        """Return True if the horizon has to reach the component after a negation."""
        decided = () if self.groups is None else self.groups.decided
        return bool(self.starts) or any(n.upper.edge is Edge.BEFORE for d in decided for n in d.all_negations)

    @property
    def defining(self) -> tuple[str, ...]:
        """Return the definitions whose windows, or last events, the horizon has to pass."""
        limits = (*self.definitions, *(groups.limit for groups in self.definition_groups))
        return tuple(dict.fromkeys([*(limit.definition or "" for limit in limits), *self.inside]))


def awaited(alternative: Alternative) -> Awaited:
    """Return what makes the matches of an alternative final."""
    query, groups = alternative.query, alternative.groups
    outer = list(alternative.all_negations())
    inner = [n for negation in outer for n in negation.walk() if n is not negation]
    uppers = tuple(dict.fromkeys(n.upper for n in outer))
    is_each = query.emit is Emit.EACH
    growing = groups if groups is not None and groups.growing and not is_each else None
    return Awaited(
        # Groups have bounds that depend on which of them are empty: `decided` lists them.
        starts=tuple(dict.fromkeys(n.upper.steps for n in alternative.negations if n.upper.edge is Edge.BEFORE)),
        ends=tuple(limit.steps for limit in uppers if limit.edge is Edge.MATCH_END and limit.definition),
        end=_why_end(query, uppers),
        window=_why_window((*outer, *inner), growing),
        definitions=tuple(limit for limit in uppers if limit.edge is Edge.WINDOW_END and limit.definition),
        inside=tuple(
            dict.fromkeys(n.upper.definition for n in inner if n.upper.edge is Edge.WINDOW_END and n.upper.definition)
        ),
        groups=groups if growing is not None or (groups is not None and groups.decided) else None,
        grows=growing is not None,
        definition_groups=() if growing is None else tuple(_definition_groups(query, growing)),
    )


def _why_end(query: b.BoundQuery, uppers: tuple[Limit, ...]) -> str:
    if any(upper.edge is Edge.MATCH_END and not upper.definition for upper in uppers):
        return "a negation in an AND that no SEQ encloses"
    if query.has_count_window:
        return "the window counts rows"
    return "EMIT EACH" if query.emit is Emit.EACH else ""


def _why_window(negations: tuple[Negation | GroupNegation, ...], growing: KleeneGroups | None) -> str:
    if any(n.upper.edge is Edge.WINDOW_END and not n.upper.definition for n in negations):
        return "a trailing negation"
    if growing is not None and all(any(not before for before in order.before) for order in growing.orders):
        return "a Kleene group that no single event must follow"
    return ""


def _definition_groups(query: b.BoundQuery, groups: KleeneGroups) -> Iterator[DefinitionGroups]:
    first = {group.variable: group.first for group in groups.growing}
    numbers: dict[int, Steps] = {step.variable: (number,) for number, step in enumerate(groups.steps)}
    numbers |= {group.variable: tuple(range(group.first, group.first + group.size)) for group in groups.chosen}
    numbers |= {variable: (number, number + 1) for variable, number in first.items()}
    for definition in query.pattern.windowed_definitions():
        leaves = definition.leaves()
        growing = tuple(number for number, group in enumerate(groups.growing) if group.variable in leaves)
        if growing:
            steps = tuple(step for variable in leaves for step in numbers.get(variable, ()))
            yield DefinitionGroups(Limit(Edge.WINDOW_END, steps, definition.name), growing)


def is_awaited(plan: Plan) -> bool:
    """Return True if some match of the plan waits for a time after its last event."""
    return any(
        bool(wait.window or wait.definitions or wait.inside) or wait.depends_on_order
        for wait in map(awaited, plan.alternatives)
    )


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
    is_detection = isinstance(plan, DetectPlan)
    waits = is_awaited(plan) or (is_detection and any(awaited(a).definition_groups for a in plan.alternatives))
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
