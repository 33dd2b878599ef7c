"""Find the intervals that the negations of a pattern cover, to shade them in a chart.

Negations inside a negated sub-pattern are omitted: no events of the match bound them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamsift.logical import bound as b

Bounds = tuple[tuple[int, ...], ...]  # the variables of the parts before or after, the nearest part first


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval that must not contain what `label` names.

    It starts at the nearest bound part of `after` and ends at the nearest bound part of `before`. Without such a part,
    it extends to the bound of the window, or to the end of the match if `ends_with_match`.
    """

    label: str
    after: Bounds
    before: Bounds
    ends_with_match: bool = False


def gaps(query: b.BoundQuery) -> list[Gap]:
    """Return the gaps of a pattern in order of appearance."""
    is_conjunction = isinstance(query.pattern, b.Conjunction)
    return list(_inside(query, query.pattern, (), (), is_conjunction))


def _inside(query: b.BoundQuery, node: b.Node, after: Bounds, before: Bounds, ends: bool) -> Iterator[Gap]:
    match node:
        case b.Sequence():
            for place, child in enumerate(node.children):
                earlier = tuple(tuple(c.leaves()) for c in reversed(node.children[:place]))
                later = tuple(tuple(c.leaves()) for c in node.children[place + 1 :])
                yield from _inside(query, child, (*earlier, *after), (*later, *before), ends)
        case b.Negated():
            yield Gap("no " + _words(query, node.child), after, before, ends)
        case _:
            for child in node.children:
                yield from _inside(query, child, after, before, ends)


def _words(query: b.BoundQuery, node: b.Node) -> str:
    match node:
        case b.Leaf():
            return query.variables[node.variable].event_class.name
        case b.Negated():
            return "no " + _words(query, node.child)
        case _:
            joints = {b.Sequence: ", then ", b.Conjunction: " and ", b.Disjunction: " or ", b.SubPattern: ""}
            return joints[type(node)].join(_words(query, child) for child in node.children)


def interval(gap: Gap, times: Mapping[int, Sequence[Any]], window: Any | None) -> tuple[Any, Any] | None:
    """Return where a gap starts and ends in one match; `times` are those of each variable's events, empty if unbound.

    Return None if a bound is unknown: the query has a count window, or no window.
    """
    every = [at for of_variable in times.values() for at in of_variable]
    lower = next(map(max, _bound(gap.after, times)), None)
    upper = next(map(min, _bound(gap.before, times)), None)
    if lower is None and window is not None:
        lower = max(every) - window
    if upper is None and gap.ends_with_match:
        upper = max(every)
    elif upper is None and window is not None:
        upper = min(every) + window
    return None if lower is None or upper is None else (lower, upper)


def _bound(parts: Bounds, times: Mapping[int, Sequence[Any]]) -> Iterator[list[Any]]:
    """Yield the times of each part that binds an event."""
    for part in parts:
        if of_part := [at for variable in part for at in times.get(variable, ())]:
            yield of_part
