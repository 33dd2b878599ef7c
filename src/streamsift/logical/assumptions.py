"""Assume a schema for a query without data, so that its plan can be explained.

The search starts with `double` for every column that the query names, and lets the binder check it. If an expression
does not fit, the search changes the type of one of its columns and tries again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from streamsift.errors import QueryError, Span
from streamsift.language.syntax import Script
from streamsift.logical.binder import bind, sketch
from streamsift.logical.bound import Binding, ClassRule, Kind, TimeKind
from streamsift.logical.columns import UnknownColumns

_INSTANT = pa.timestamp("us", "UTC")
_TYPES = {pa.float64(): "double", pa.string(): "string", _INSTANT: "timestamp", pa.bool_(): "boolean"}
_TIME_TYPES = (_INSTANT, pa.float64())
_MAX_TRIES = 500
Types = dict[str, pa.DataType]


class Assumptions(NamedTuple):
    """An assumed schema and the columns with a role in it."""

    schema: pa.Schema
    time: str
    type: str | None
    order: str | None

    def describe(self) -> Iterator[str]:
        """Yield the assumed columns, for explain."""
        yield "no data: column types are assumed from the query; the plan for real data can differ"
        yield f"time: {self.time} ({_TYPES[self.schema.field(self.time).type]})"
        if self.type is not None:
            yield f"type: {self.type} (string)"
        if self.order is not None:
            yield f"order: {self.order} ({_TYPES[self.schema.field(self.order).type]})"
        others = (f"{each.name} ({_TYPES[each.type]})" for each in self.schema if each.name not in self[1:])
        if columns := ", ".join(others):
            yield f"columns: {columns}"


@dataclass(frozen=True, slots=True)
class _NamedColumns(UnknownColumns):
    """Accept any column, and record each use of one."""

    uses: list[tuple[str, Span]] = field(default_factory=list)

    def find(self, name: str, text: str, span: Span) -> tuple[str, Kind]:
        self.uses.append((name, span))
        return UnknownColumns.find(self, name, text, span)

    def near(self, span: Span) -> list[str]:
        """Return the columns that a part of the query names, then the last one before it (`x IN (…)`)."""
        uses = sorted((use.start, name) for name, use in self.uses)
        inside = [name for start, name in uses if span.start <= start < span.end]
        return [*inside, *[name for start, name in uses if start < span.start][-1:]]


def assume_schema(
    script: Script, time: str | None = None, type: str | None = None, order: str | None = None
) -> Assumptions:
    """Return a schema for which the query is valid; raise QueryError if none is found.

    The time column is called `time` if no name is given, and the type column `type` if the query needs one.
    """
    columns = _NamedColumns(pa.schema([]), Binding("time", TimeKind.TIMESTAMP), case_sensitive=True)
    variables = sketch(script, columns).variables
    if type is None and any(variable.event_class.rule is ClassRule.ALL for variable in variables):
        type = "type"
    time = time or "time"
    names = {name.lower(): name for name in (time, type, order) if name is not None}
    names |= {alias: time for alias in ("time", "t") if alias not in names}  # both name the time column
    for name, _ in columns.uses:
        names.setdefault(name.lower(), name)
    types: Types = dict.fromkeys(names.values(), pa.float64())
    types[time] = _INSTANT
    if type is not None:
        types[type] = pa.string()
    queue, seen = deque([types]), [types]
    errors: list[QueryError] = []
    while queue and len(errors) < _MAX_TRIES:
        types = queue.popleft()
        try:
            bind(script, pa.schema(types.items()), time=time, type=type, order=order)
        except QueryError as error:
            errors.append(error)
            for name in dict.fromkeys(names[use.lower()] for use in columns.near(error.span)):
                others = () if name == type else _TIME_TYPES if name == time else _TYPES
                changed = [types | {name: other} for other in others]
                queue += [candidate for candidate in changed if candidate not in seen]
                seen += changed
        else:
            return Assumptions(pa.schema(types.items()), time, type, order)
    if len(errors) == 1:  # no column can be changed
        raise errors[0]
    message, hint = f"no column types fit this query: {errors[0].message}", "explain it with its data or its schema."
    raise QueryError(message, errors[0].text, errors[0].span, hint)
