"""Encode events as symbols of an alphabet shared by many queries.

An event class with its single-event predicates extends or empties prefixes of several queries. There is one symbol for
each length of these prefixes, so that operations on longer prefixes come before those on shorter ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamsift.logical.bound import BoundQuery
from streamsift.logical.expressions import anonymous
from streamsift.physical.plan import Alternative, Step
from streamsift.physical.share import TreeNode
from streamsift.runtime.count import SymbolEvents
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events


def parts_of(query: BoundQuery, nodes: Sequence[TreeNode], events: Events) -> list[SymbolEvents]:
    """Return the events of each symbol, and the prefixes, numbered from 1 on, that it adds to or (negative) empties."""
    steps: dict[object, Step] = {}
    lists: dict[tuple[object, int], list[int]] = {}
    for number, node in enumerate(nodes, start=1):
        for step, sign in ((node.step, 1), *((step, -1) for step in node.negated)):
            event_class = query.variables[step.variable].event_class
            key = event_class, tuple(anonymous(predicate) for predicate in step.local)
            steps.setdefault(key, step)
            lists.setdefault((key, sign * node.depth), []).append(sign * number)
    found = candidates(Alternative(query, tuple(steps.values()), ()), events)
    places = dict(zip(steps, found, strict=True))
    return [SymbolEvents(places[key], level, entries) for (key, level), entries in lists.items()]
