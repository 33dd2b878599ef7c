"""Record for each event, when it arrives, which steps can bind it, so that no search has to find that out again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, EventClass, Expr
from streamsift.physical.plan import Alternative, Plan, Step
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.prepare import prepare

MOST_BITS = 62  # further steps share the last bit

Kind = tuple[int, EventClass, tuple[Expr, ...]]  # the query, and what a step asks of an event alone


class StepBits:
    """The steps of some plans as bits of an integer; steps that ask the same of an event share a bit."""

    def __init__(self, plans: Iterable[Plan]) -> None:
        self._numbers: dict[Kind, int] = {}
        self._plans = list(plans)  # kept, so that the ids of their queries are not reused
        self._alternatives: list[tuple[BoundQuery, list[tuple[Alternative, list[int]]]]] = []
        for plan in self._plans:
            alternatives = [self._numbered(one) for one in plan.alternatives]
            self._alternatives.append((plan.query, [each for each in alternatives if each[1]]))

    def _numbered(self, one: Alternative) -> tuple[Alternative, list[int]]:
        """Number the steps that are new; return them with their bits."""
        steps: dict[int, Step] = {}
        for step in one.all_steps():
            kind = _kind(one.query, step)
            if kind not in self._numbers:
                steps[len(self._numbers)] = step
                self._numbers[kind] = len(self._numbers)
        return Alternative(one.query, tuple(steps.values()), ()), [min(number, MOST_BITS) for number in steps]

    def of(self, table: pa.Table) -> Int64:
        """Return the bits of each row."""
        bits = np.zeros(table.num_rows, np.int64)
        for query, alternatives in self._alternatives:
            events = prepare(query, table)
            for alternative, numbers in alternatives:
                for number, places in zip(numbers, candidates(alternative, events), strict=True):
                    bits[events.rows_at(places)] |= 1 << number
        return bits

    def mask(self, query: BoundQuery, steps: Sequence[Step]) -> int:
        """Return the bits of some steps of a query."""
        mask = 0
        for step in steps:
            mask |= 1 << min(self._numbers[_kind(query, step)], MOST_BITS)
        return mask


def _kind(query: BoundQuery, step: Step) -> Kind:
    event_class = query.variables[step.variable].event_class
    return id(query), event_class, tuple(predicate.renamed({step.variable: 0}) for predicate in step.local)
