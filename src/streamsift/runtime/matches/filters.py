"""Apply the predicates that no kernel can test, to the partial matches that a stage of a search leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamsift.logical.bound import Expr
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.evaluate import mask
from streamsift.runtime.matches.values import match_columns


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps or levels [first, last] that one kernel call binds, and the predicates to apply once they are bound."""

    first: int
    last: int
    filters: tuple[Expr, ...]


def stages_of(filters: Sequence[tuple[Expr, ...]], first: int = 0) -> list[Stage]:
    """Return steps or levels from `first` on, cut after every one with filters."""
    stages: list[Stage] = []
    begin, last = first, first + len(filters) - 1
    for number, ready in enumerate(filters, start=first):
        if ready or number == last:
            stages.append(Stage(begin, number, ready))
            begin = number + 1
    return stages


def passing(alternative: Alternative, events: Events, filters: Sequence[Expr], places: Int32) -> Bool:
    """Return where every filter is true of places [steps, m]; steps that no filter names may hold anything."""
    seen = match_columns(alternative, events, places)
    return np.logical_and.reduce([mask(predicate, seen) for predicate in filters])
