"""Pack comparisons and lookups of events as integers, so that no kernel is compiled for the types of a query.

A comparison is two columns of codes and an operator. A lookup groups the candidates of a step by the values that an
earlier event must equal: `offsets` has where each group starts, `links` the group of each earlier event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, Column, Expr
from streamsift.physical.detect import WindowBound
from streamsift.runtime.arrays.comparing import OPERATORS
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64
from streamsift.runtime.arrays.parts import Parts
from streamsift.runtime.events.candidates import stream_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import evaluate

Read = tuple[Int32, Expr]  # one side of a comparison: the candidates of a step, ascending, and what is read of them


class CandidateCodes:
    """Codes of what is read of candidates; a column is read once for all comparisons of the same candidates."""

    def __init__(self, query: BoundQuery, events: Events) -> None:
        self.query, self.events = query, events
        # By identity, as long as what it is the identity of is kept beside it.
        self._columns: dict[tuple[int, str], tuple[Int32, pa.Array]] = {}
        self._alone: dict[int, tuple[pa.Array, Int64]] = {}

    def groups(self, equalities: Iterable[Sequence[Read]]) -> tuple[list[Int32], int]:
        """Return for each participant the group of each candidate, -1 for none, and how many groups there are."""
        return group_codes([[self._values(side) for side in sides] for sides in equalities])

    def compared(self, op: str, left: Read, right: Read) -> list[Int64]:
        """Return the codes of both sides, for each of their candidates."""
        values = [self._values(left), self._values(right)]
        if all(pa.types.is_floating(column.type) for column in values):
            return [self._coded_alone(column) for column in values]
        return codes(values, ordered=op not in ("=", "!="))

    def by_place(self, candidates: Int32, values: np.ndarray) -> np.ndarray:
        """Return int32 groups or int64 codes of candidates by place in the stream; none and UNKNOWN elsewhere."""
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
        """Return the codes of floating-point numbers: they need no joint codes, so a column is coded once."""
        if id(values) not in self._alone:
            self._alone[id(values)] = values, codes([values])[0]
        return self._alone[id(values)][1]


@dataclass(slots=True)
class Comparisons:
    """Comparisons, and limits by definitions' windows, as rows of a kernel's tables."""

    rows: list[tuple[int, ...]] = field(default_factory=list)
    sides: list[Int64] = field(default_factory=list)
    limits: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, steps: Sequence[int], op: str, sides: Iterable[Int64]) -> None:
        """Add a row (first step, operator, other steps), and the codes of both sides by place."""
        self.rows.append((steps[0], OPERATORS[op], *steps[1:]))
        self.sides += sides

    def add_limit(self, step: int, window: WindowBound, window_rows: dict[str, int]) -> None:
        """Add a row (step, row of the definitions' windows, whether that is an upper limit)."""
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
    """The groups of several steps, laid end to end."""

    offsets: Parts = field(default_factory=Parts)
    links: Parts = field(default_factory=Parts)

    def add(self, offsets: Int64, links: Int32 | None) -> tuple[int, int]:
        """Return where the offsets of a step start, and its links; -1 without links."""
        return self.offsets.add(offsets), -1 if links is None else self.links.add(links)

    def tables(self) -> tuple[Int64, Int64, Int32]:
        """Return all offsets, hints [2, offsets] of where the last searches of a group ended, and all links."""
        offsets = self.offsets.joined(np.int64)
        return offsets, np.stack([offsets, offsets]), self.links.joined(np.int32)
