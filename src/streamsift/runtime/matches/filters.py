"""Predicates that no kernel can test in, the stages that a search is cut into and what passes them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import Expr
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.evaluate import Rows, mask


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps or levels [first, last] that one kernel call binds, and the predicates to apply once they are bound."""

    first: int
    last: int
    filters: tuple[Expr, ...]


def passing(alternative: Alternative, events: Events, filters: Sequence[Expr], rows: Int32) -> Bool:
    """Where every filter is true of the table rows [steps, m]; steps that no filter names may hold anything."""
    step_of = {step.variable: number for number, step in enumerate(alternative.steps)}
    gathered: dict[tuple[int, str], pa.Array] = {}

    def column(variable: int, name: str) -> pa.Array:
        if (variable, name) not in gathered:
            gathered[variable, name] = events.columns.at(name, rows[step_of[variable]])
        return gathered[variable, name]

    seen = Rows(column, rows.shape[1], alternative.query.text)
    return np.logical_and.reduce([mask(predicate, seen) for predicate in filters])
