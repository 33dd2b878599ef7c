"""Pack comparisons and lookups of events as integers, so that kernels do not depend on the types of a query.

A comparison consists of two columns of codes and an operator. A lookup groups the candidates of a step by the values
that an earlier event must equal: `offsets` holds the start of each group, `links` the group of each earlier event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, Column, Expr
from streamsift.physical.detect import WindowBound, window_bound
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.comparing import OPERATORS
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.arrays.growing import Parts
from streamsift.runtime.events.candidates import candidates, stream_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.reach import limit_rows, reach_of
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import evaluate

Read = tuple[Int32, Expr]  # one side of a comparison: the ascending candidates of a step, and an expression over them


class CandidateCodes:
    """Encode expressions over candidates; a column is read once for all comparisons of the same candidates."""

    def __init__(self, query: BoundQuery, events: Events) -> None:
        self.query, self.events = query, events
        # Keyed by id(array); the array is kept too, so that its id is not reused.
        self._columns: dict[tuple[int, str], tuple[Int32, pa.Array]] = {}
        self._alone: dict[int, tuple[pa.Array, Int64]] = {}

    def groups(self, equalities: Iterable[Sequence[Read]]) -> tuple[list[Int32], int]:
        """Return for each participant the group of each candidate (-1 for none), and the number of groups."""
        return group_codes([[self._values(side) for side in sides] for sides in equalities])

    def compared(self, op: str, left: Read, right: Read) -> list[Int64]:
        """Return the codes of both sides for their candidates."""
        values = [self._values(left), self._values(right)]
        if all(pa.types.is_floating(column.type) for column in values):
            return [self._coded_alone(column) for column in values]
        return codes(values, ordered=op not in ("=", "!="))

    def by_place(self, candidates: Int32, values: np.ndarray) -> np.ndarray:
        """Spread int32 groups or int64 codes of candidates to all places; other places get -1 or UNKNOWN."""
        if candidates.size == self.events.rank.size:
            return values
        column = np.full(self.events.rank.size, -1 if values.dtype == np.int32 else UNKNOWN, values.dtype)
        column[candidates] = values
        return column

    def compared_by_place(self, op: str, left: Read, right: Read) -> list[Int64]:
        both = self.compared(op, left, right)
        return [self.by_place(side[0], coded) for side, coded in zip((left, right), both, strict=True)]

    def _values(self, side: Read) -> pa.Array:
        places, expression = side
        if not isinstance(expression, Column):
            return evaluate(expression, stream_rows(self.query, self.events, places))
        key = (id(places), expression.name)
        if key not in self._columns:
            self._columns[key] = places, evaluate(expression, stream_rows(self.query, self.events, places))
        return self._columns[key][1]

    def _coded_alone(self, values: pa.Array) -> Int64:
        """Encode floating-point numbers. They need no joint codes, so a column is encoded once."""
        if id(values) not in self._alone:
            self._alone[id(values)] = values, codes([values])[0]
        return self._alone[id(values)][1]


@dataclass(slots=True)
class Comparisons:
    """Comparisons, and bounds from windows of definitions, as rows of a kernel's tables."""

    rows: list[tuple[int, ...]] = field(default_factory=list)
    sides: list[Int64] = field(default_factory=list)
    limits: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, steps: Sequence[int], op: str, sides: Iterable[Int64]) -> None:
        """Add a row (first step, operator, other steps) and the codes of both sides by place."""
        self.rows.append((steps[0], OPERATORS[op], *steps[1:]))
        self.sides += sides

    def add_limit(self, step: int, window: WindowBound, window_rows: dict[str, int]) -> None:
        """Add a row (step, row in the definition windows, 1 for an upper bound or 0)."""
        self.limits.append((step, window_rows[window.definition] + window.is_upper, int(window.is_upper)))

    def tables(self, fields: int, places: int) -> tuple[Int64, Int64, Int64]:
        """Return the rows [comparisons, fields], the codes [2 * comparisons, places] and the limits [limits, 3]."""
        return (
            np.array(self.rows, np.int64).reshape(-1, fields),
            np.stack(self.sides) if self.sides else np.empty((0, places), np.int64),
            np.array(self.limits, np.int64).reshape(-1, 3),
        )


@dataclass(slots=True)
class Lookups:
    """The concatenated lookup groups of several steps."""

    offsets: Parts = field(default_factory=Parts)
    links: Parts = field(default_factory=Parts)

    def add(self, offsets: Int64, links: Int32 | None) -> tuple[int, int]:
        """Append a step, and return where its offsets and its links start; -1 without links."""
        return self.offsets.add(offsets), -1 if links is None else self.links.add(links)

    def tables(self) -> tuple[Int64, Int64, Int32]:
        """Return all offsets, hints [2, offsets] where the last searches in each group ended, and all links."""
        offsets = self.offsets.joined(np.int64)
        return offsets, np.stack([offsets, offsets]), self.links.joined(np.int32)


class StepCandidates:
    """The candidates of steps, and the codes for their lookups and comparisons, by place."""

    def __init__(self, query: BoundQuery, events: Events, steps: Iterable[Step]) -> None:
        self.query, self.events, self.reach = query, events, reach_of(query, events)
        self.codes, self.window_rows = CandidateCodes(query, events), limit_rows(query)
        distinct = {id(step): step for step in steps}
        places = candidates(Alternative(query, tuple(distinct.values()), ()), events)
        self._places = dict(zip(distinct, places, strict=True))

    def __getitem__(self, step: Step) -> Int32:
        return self._places[id(step)]

    def __setitem__(self, step: Step, places: Int32) -> None:
        self._places[id(step)] = places

    def grouped(self, step: Step, chain: Sequence[Step]) -> tuple[Int32, Int64, Int32 | None]:
        """Return a step's candidates sorted by lookup group, the start of each group, and the groups of earlier events.

        The groups of earlier events are by place; None without a lookup.
        """
        if not step.lookup:
            return self[step], np.array([0, self[step].size], np.int64), None
        this, others = self[step], self[chain[step.lookup[0].earlier]]
        equalities = [[(others, pair.earlier_side), (this, pair.this_side)] for pair in step.lookup]
        (of_others, of_this), groups = self.codes.groups(equalities)
        offsets, order = group_entries(of_this, groups)
        return this[order], offsets, self.codes.by_place(others, of_others)

    def compare(self, step: Step, chain: Sequence[Step], comparisons: Comparisons) -> None:
        """Add a step's comparisons and its bounds from windows of definitions."""
        for pair in step.pairs:
            if (window := window_bound(pair.earlier_side, pair.this_side)) is None:
                sides = (self[chain[pair.earlier]], pair.earlier_side), (self[step], pair.this_side)
                comparisons.add((pair.earlier,), pair.op, self.codes.compared_by_place(pair.op, *sides))
            else:
                comparisons.add_limit(pair.earlier, window, self.window_rows)
