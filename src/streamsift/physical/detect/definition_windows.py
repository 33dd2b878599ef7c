"""Turn the windows of definitions into comparisons between the events of a sub-match.

"No farther apart than the window" holds of a sub-match exactly if it holds of every two of its events, so it is a
comparison between steps: the place of one event against the last place that the other's window reaches. A search that
binds one event after the other need not test it: it limits where the second event may lie (`window_bound`).

If a single event is the first or the last of a sub-match in time, it is enough that the window holds of that one and
each other: a comparison with each element of a group, by which an element is dropped or kept like by any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from streamsift.errors import UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.physical.plan import Edge

PLACE = "$place"  # Column.name for an event's place in the stream
_UNTIL, _SINCE = "$until ", "$since "


def until(definition: str) -> str:
    """Column.name for the last place that is in one window of the definition with this event, as its first."""
    return _UNTIL + definition


def since(definition: str) -> str:
    """Column.name for the first place that is in one window of the definition with this event, as its last."""
    return _SINCE + definition


class WindowBound(NamedTuple):
    """A limit that a definition's window sets to events beside a bound one: not after it ends, or not before."""

    definition: str
    is_upper: bool


def window_bound(bound_side: b.Expr, this_side: b.Expr) -> WindowBound | None:
    """Return the bound that a definition's window sets for one event beside a bound one; None for any other.

    "The bound event lies in the window of this one" limits this one from below: it lies in the window of the bound one.
    """
    match bound_side, this_side:
        case b.Column(name=one), b.Column(name=other) if PLACE in (one, other):
            return WindowBound((one if other == PLACE else other).removeprefix(_UNTIL), is_upper=other == PLACE)
    return None


def last_leaves(node: b.Node) -> list[int]:
    """Return variables one of which is the latest of the pattern: to follow them is to follow all of it."""
    match node:
        case b.Sequence():
            return next((last for child in reversed(node.children) if (last := last_leaves(child))), [])
        case b.Conjunction() | b.Disjunction() | b.SubPattern():
            return [variable for child in node.children for variable in last_leaves(child)]
        case _:
            return node.leaves()


def upper_edge(node: b.Node) -> Edge:
    """Return where an outermost pattern ends: an AND with its events, behind a definition's name too."""
    while isinstance(node, b.SubPattern):
        node = node.child
    return Edge.MATCH_END if isinstance(node, b.Conjunction) else Edge.WINDOW_END


def window_predicates(query: b.BoundQuery, definition: b.SubPattern) -> Iterator[b.Predicate]:
    """Yield the bounds that a definition's window sets for pairs of events of a sub-match.

    Raise UnsupportedQuery if groups are among them, and no single event speaks for the others.
    """
    for one, other in _pairs(query, definition):
        sides = b.Column(one, until(definition.name), b.Kind.INTEGER), b.Column(other, PLACE, b.Kind.INTEGER)
        expression = b.truth(">=", sides, definition.span)
        assert definition.window is not None
        text = f"{definition.name} within {definition.window.text}"
        scope, variables = query.variables[one].scope, tuple(sorted((one, other)))
        yield b.Predicate(expression, variables, scope, b.PredicateClass.PAIRWISE, text, span=definition.span)


def _pairs(query: b.BoundQuery, definition: b.SubPattern) -> Iterator[tuple[int, int]]:
    """Yield variables of which the second must lie no later than the window of the first reaches."""
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
        yield from ((variables[0], other) for other in variables[1:])  # it comes first, so one test says so
        return
    else:
        pairs = [*combinations(variables, 2)]
    for one, other in pairs:
        yield one, other
        yield other, one


def _is_group(query: b.BoundQuery, variable: int) -> bool:
    return query.variables[variable].quantifier is not None


def _outermost(query: b.BoundQuery, node: b.Node) -> int | None:
    """Return a single variable whose event is the first, or the last, of all; None if there is none."""
    if isinstance(node, b.Conjunction):
        operands = [child for child in node.children if not isinstance(child, b.Negated)]
        leaves = [child.variable for child in operands if isinstance(child, b.Leaf)]
        singles = [variable for variable in leaves if not _is_group(query, variable)]
        # AND puts a Kleene class, as a whole, before or after the other operand.
        return singles[0] if len(leaves) == len(operands) == 2 and len(singles) == 1 else None
    ends = (_end(query, node, side) for side in (0, -1))
    return next((variable for variable in ends if variable is not None), None)


def _end(query: b.BoundQuery, node: b.Node, side: int) -> int | None:
    """Return the single variable at one end of a pattern; None if there is none."""
    while isinstance(node, b.Sequence | b.SubPattern):
        node = [child for child in node.children if not isinstance(child, b.Negated)][side]
    return node.variable if isinstance(node, b.Leaf) and not _is_group(query, node.variable) else None
