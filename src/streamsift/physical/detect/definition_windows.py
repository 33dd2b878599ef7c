"""Express definition windows as comparisons between the events of a sub-match.

A sub-match fits in the window if and only if every two of its events do. That is a comparison between steps: the place
of one event with the last place in the window of the other. A search that binds one event after the other does not test
it, but limits the range of the second event (`window_bound`).

If a single event is always the first or the last of a sub-match, it is enough to compare it with each other event. Such
a comparison with each element of a Kleene group filters elements like any other predicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from streamsift.errors import UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.physical.plan import Edge

PLACE = "$place"  # Column.name for the place of an event: its index in time order
_UNTIL, _SINCE = "$until ", "$since "


def until(definition: str) -> str:
    """Return the Column.name for the last place in the window of a definition that starts with this event."""
    return _UNTIL + definition


def since(definition: str) -> str:
    """Return the Column.name for the first place in the window of a definition that ends with this event."""
    return _SINCE + definition


class WindowBound(NamedTuple):
    """An upper or lower bound that a definition window sets for an event, given a bound event."""

    definition: str
    is_upper: bool


def window_bound(bound_side: b.Expr, this_side: b.Expr) -> WindowBound | None:
    """Return the bound that a definition window sets for this event, given a bound event; None for other comparisons.

    "The bound event lies in the window of this event" is a lower bound for this event.
    """
    match bound_side, this_side:
        case b.Column(name=one), b.Column(name=other) if PLACE in (one, other):
            return WindowBound((one if other == PLACE else other).removeprefix(_UNTIL), is_upper=other == PLACE)
    return None


def last_leaves(node: b.Node) -> list[int]:
    """Return the variables that can have the last event: an event after all of them is after the whole pattern."""
    match node:
        case b.Sequence():
            return next((last for child in reversed(node.children) if (last := last_leaves(child))), [])
        case b.Conjunction() | b.Disjunction() | b.SubPattern():
            return [variable for child in node.children for variable in last_leaves(child)]
        case _:
            return node.leaves()


def upper_edge(node: b.Node) -> Edge:
    """Return the upper bound of an outermost pattern. AND, also as a definition, ends with its last event."""
    while isinstance(node, b.SubPattern):
        node = node.child
    return Edge.MATCH_END if isinstance(node, b.Conjunction) else Edge.WINDOW_END


def window_predicates(query: b.BoundQuery, definition: b.SubPattern) -> Iterator[b.Predicate]:
    """Yield the bounds that a definition window sets for pairs of events of a sub-match.

    Raise UnsupportedQuery if it has Kleene groups and no single event is always first or last.
    """
    for one, other in _pairs(query, definition):
        sides = b.Column(one, until(definition.name), b.Kind.INTEGER), b.Column(other, PLACE, b.Kind.INTEGER)
        expression = b.truth(">=", sides, definition.span)
        assert definition.window is not None
        text = f"{definition.name} within {definition.window.text}"
        scope, variables = query.variables[one].scope, tuple(sorted((one, other)))
        yield b.Predicate(expression, variables, scope, b.PredicateClass.PAIRWISE, text, span=definition.span)


def _pairs(query: b.BoundQuery, definition: b.SubPattern) -> Iterator[tuple[int, int]]:
    """Yield pairs of variables. The second must not lie after the window of the first."""
    pattern, variables = definition.child, definition.child.leaves()
    if any(_is_group(query, variable) for variable in variables):
        outermost = _outermost(query, pattern)
        if outermost is None:
            name = definition.name
            message = f"the window of `{name}` requires a single event before or after its Kleene groups"
            hint = f"remove the window of `{name}`, or add such an event."
            raise UnsupportedQuery(message, query.text, definition.span, hint)
        pairs = [(outermost, other) for other in variables if other != outermost]
    elif not any(isinstance(part, b.Conjunction | b.Disjunction) for part in pattern.walk(into_negations=False)):
        yield from (
            (variables[0], other) for other in variables[1:]
        )  # the first event is always the same, so one test per event is enough
        return
    else:
        pairs = [*combinations(variables, 2)]
    for one, other in pairs:
        yield one, other
        yield other, one


def _is_group(query: b.BoundQuery, variable: int) -> bool:
    return query.variables[variable].quantifier is not None


def _outermost(query: b.BoundQuery, node: b.Node) -> int | None:
    """Return a single variable whose event is always the first or always the last; None if there is none."""
    if isinstance(node, b.Conjunction):
        operands = [child for child in node.children if not isinstance(child, b.Negated)]
        leaves = [child.variable for child in operands if isinstance(child, b.Leaf)]
        singles = [variable for variable in leaves if not _is_group(query, variable)]
        # In AND, a whole Kleene group lies before or after the other operand.
        return singles[0] if len(leaves) == len(operands) == 2 and len(singles) == 1 else None
    ends = (_end(query, node, side) for side in (0, -1))
    return next((variable for variable in ends if variable is not None), None)


def _end(query: b.BoundQuery, node: b.Node, side: int) -> int | None:
    """Return the single variable at one end of a pattern; None if there is none."""
    while isinstance(node, b.Sequence | b.SubPattern):
        node = [child for child in node.children if not isinstance(child, b.Negated)][side]
    return node.variable if isinstance(node, b.Leaf) and not _is_group(query, node.variable) else None
