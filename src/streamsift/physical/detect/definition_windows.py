"""A definition's own window in, the comparisons that keep its sub-match inside it out.

"No farther apart than the window" holds of a sub-match exactly if it holds of every two of its events, so it is a
comparison between steps: the place of one event against the last place that the other's window reaches. A search that
binds one event after the other need not test it: it limits where the second event may lie (`window_bound`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamsift.logical import bound as b
from streamsift.physical.plan import Edge, Pair

PLACE = "$place"  # Column.name for an event's place in the stream
_UNTIL, _SINCE = "$until ", "$since "


def until(definition: str) -> str:
    """Column.name for the last place that is in one window of the definition with this event, as its first."""
    return _UNTIL + definition


def since(definition: str) -> str:
    """Column.name for the first place that is in one window of the definition with this event, as its last."""
    return _SINCE + definition


class WindowBound(NamedTuple):
    """Where a definition's window lets an event lie beside one that is bound: not after it ends, or not before."""

    definition: str
    is_upper: bool


def window_bound(bound_side: b.Expr, own_side: b.Expr) -> WindowBound | None:
    """Return what a comparison of a definition's window asks of one event beside a bound one; None for any other.

    "The bound event lies in the window of this one" limits this one from below: it lies in the window of the bound one.
    """
    match bound_side, own_side:
        case b.Column(name=limit), b.Column(name=place) if place == PLACE and limit.startswith(_UNTIL):
            return WindowBound(limit.removeprefix(_UNTIL), is_upper=True)
        case b.Column(name=place), b.Column(name=limit) if place == PLACE and limit.startswith(_UNTIL):
            return WindowBound(limit.removeprefix(_UNTIL), is_upper=False)
    return None


def last_leaves(node: b.Node) -> list[int]:
    """Return variables one of which is the latest of the pattern: what follows them follows all of it."""
    match node:
        case b.Sequence():
            return next((last for child in reversed(node.children) if (last := last_leaves(child))), [])
        case b.Conjunction() | b.Disjunction() | b.SubPattern():
            return [variable for child in node.children for variable in last_leaves(child)]
        case _:
            return node.leaves()


def upper_edge(node: b.Node) -> Edge:
    """An AND that no SEQ encloses ends with its events, behind a definition's name too."""
    while isinstance(node, b.SubPattern):
        node = node.child
    return Edge.MATCH_END if isinstance(node, b.Conjunction) else Edge.WINDOW_END


def window_pairs(node: b.Node, place: dict[int, int]) -> dict[int, list[Pair]]:
    """By variable, the comparisons with earlier steps that the definitions of a positive pattern ask for."""
    found: dict[int, list[Pair]] = {}
    for definition in node.windowed_definitions(into_negations=False):
        steps = sorted(definition.child.leaves(), key=place.__getitem__)
        ordered = last_leaves(definition.child) == steps[-1:] and _is_chain(definition.child)
        for number, variable in enumerate(steps[1:], start=1):
            for earlier in steps[:1] if ordered else steps[:number]:
                found.setdefault(variable, []).extend(_apart(definition.name, earlier, variable, place, ordered))
    return found


def _is_chain(node: b.Node) -> bool:
    """Return True if the events of the pattern come one after the other, the first variable's first."""
    operators = (b.Conjunction, b.Disjunction)
    return not any(isinstance(part, operators) for part in node.walk(into_negations=False))


def _apart(definition: str, earlier: int, this: int, place: dict[int, int], ordered: bool) -> Iterator[Pair]:
    """Neither lies beyond the window of the other; if the earlier step's event comes first, one test says so."""

    def column(variable: int, name: str) -> b.Column:
        return b.Column(variable, name, b.Kind.INTEGER)

    limit = until(definition)
    yield Pair(place[earlier], ">=", column(earlier, limit), column(this, PLACE))
    if not ordered:
        yield Pair(place[earlier], "<=", column(earlier, PLACE), column(this, limit))


def describe_window_pair(pair: Pair, variables: tuple[b.Variable, ...], pattern: b.Node) -> str | None:
    """How explain spells such a comparison; None for one between attributes."""
    match pair.earlier_side, pair.this_side:
        case (b.Column(variable=earlier, name=one), b.Column(variable=this, name=other)) if PLACE in (one, other):
            limit = other if one == PLACE else one
            definition = next(d for d in pattern.windowed_definitions() if until(d.name) == limit)
            assert definition.window is not None
            names = f"{variables[earlier].name}, {variables[this].name}"
            return f"{names} within {definition.window.text} ({definition.name})"
    return None
