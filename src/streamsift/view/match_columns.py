"""Choose what a text table shows of a result: for matches, the times of events and the attributes that matter.

An attribute matters if the query mentions it, or if its value differs between events. One that all events of every
match share is shown once. `match_start` and `match_end` repeat times of events and are not shown next to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import IntEnum
from typing import Any

import pyarrow as pa

from streamsift.logical.bound import BoundQuery, Column, GroupAggregate
from streamsift.view.tables import cell_text, datetime_text

MAX_LISTED = 2  # values of a Kleene group in one cell; of a larger group, the first and the last
BOUNDS = ("match_start", "match_end")


class Weight(IntEnum):
    """How much a column matters. A narrow terminal drops columns from the last weight on."""

    RETURNED = 0  # a column of the result itself, or the time of an event
    COMPARED = 1  # the query compares or ranks events by it
    FILTERED = 2  # the query compares it with constants; or it repeats another column
    RELATED = 3  # the query mentions it for another variable
    OTHER = 4


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of a text table."""

    name: str
    cells: list[str]
    weight: Weight = Weight.RETURNED

    @property
    def attribute(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class MatchRoles:
    """The query of a result, and the columns of its events with the time and the event class."""

    query: BoundQuery | None = None
    time: str | None = None
    type: str | None = None

    @property
    def returns_all(self) -> bool:
        """Return True if RETURN names the columns."""
        return self.query is None or not self.query.show_bounds

    def weights(self) -> dict[tuple[str, str], Weight]:
        """Return the weight of each attribute that the query mentions: by variable, and attribute in lowercase."""
        weights: dict[tuple[str, str], Weight] = {}
        if self.query is None:
            return weights
        ranking = self.query.ranking
        expressions = [(objective.expression, Weight.COMPARED) for objective in ranking.objectives] if ranking else []
        for predicate in self.query.predicates:
            several = len(predicate.variables) > 1
            expressions.append((predicate.expression, Weight.COMPARED if several else Weight.FILTERED))
        for expression, weight in expressions:
            for part in expression.walk():
                if isinstance(part, Column | GroupAggregate):
                    name = part.name if isinstance(part, Column) else part.column
                    variable = self.query.variables[part.variable].name
                    if name is not None:
                        mention = variable, name.lower()
                        weights[mention] = min(weight, weights.get(mention, weight))
        for event_variable in self.query.variables:
            condition = event_variable.event_class.predicate
            for part in condition.walk() if condition is not None else ():
                if isinstance(part, Column):
                    weights.setdefault((event_variable.name, part.name.lower()), Weight.FILTERED)
        return weights


def text_columns(rows: pa.Table, roles: MatchRoles) -> list[TextColumn]:
    """Return the columns of a result as text, in the order in which a table shows them."""
    events = [name for name in rows.column_names if _event_type(rows.schema.field(name).type) is not None]
    columns: list[TextColumn] = []
    for name in rows.column_names:
        if name in events:
            if name == events[0]:
                columns += _Events(rows, events, roles).columns()
        elif not (events and name in BOUNDS):
            columns.append(TextColumn(name, _texts(rows.column(name).to_pylist()), _plain_weight(rows, name)))
    return columns


def _plain_weight(rows: pa.Table, name: str) -> Weight:
    """Return the weight of a column that is not an event; the only objective of a ranking repeats the score."""
    is_objective = name.startswith("objective_") and "score" in rows.column_names
    return Weight.FILTERED if is_objective and rows.column(name).equals(rows.column("score")) else Weight.RETURNED


def _event_type(kind: pa.DataType) -> pa.StructType | None:
    """Return the type of the events in a column; None if its values are not events."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return kind if pa.types.is_struct(kind) else None


@dataclass(frozen=True, slots=True)
class _Events:
    """The variables of a result whose columns are whole events."""

    rows: pa.Table
    variables: list[str]
    roles: MatchRoles
    values: dict[str, list[list[dict[str, Any]]]] = field(init=False)  # the events of each row, by variable

    def __post_init__(self) -> None:
        values = {name: [_as_events(cell) for cell in self.rows.column(name).to_pylist()] for name in self.variables}
        object.__setattr__(self, "values", values)

    def columns(self) -> Iterator[TextColumn]:
        """Yield shared attributes, then for each variable its time and the attributes that differ."""
        names = {name: self._attributes(name) for name in self.variables}
        others = dict.fromkeys(attribute for attributes in names.values() for attribute in attributes)
        shared = [each for each in others if each not in (self.roles.time, self.roles.type) and self._is_shared(each)]
        weights = self.roles.weights()
        for attribute in shared:
            cells = [self._first(row, attribute) for row in range(self.rows.num_rows)]
            weight = min((w for (_, name), w in weights.items() if name == attribute.lower()), default=Weight.OTHER)
            yield TextColumn(attribute, _texts(cells), weight)
        dates: list[date | None] = [None] * self.rows.num_rows  # the date shown last, in each row
        for name in self.variables:
            if self._is_group(name):
                yield TextColumn(f"count({name})", [str(len(events)) for events in self.values[name]])
            if self.roles.time is not None and self.roles.time in names[name]:
                yield TextColumn(f"{name}.{self.roles.time}", self._times(name, self.roles.time, dates))
            for attribute in names[name]:
                if attribute == self.roles.type and self._is_constant(name, attribute):
                    continue
                if attribute != self.roles.time and attribute not in shared:
                    yield self._own_column(name, attribute, weights)

    def _own_column(self, name: str, attribute: str, weights: dict[tuple[str, str], Weight]) -> TextColumn:
        cells = [_listed([event[attribute] for event in events]) for events in self.values[name]]
        is_related = any(mentioned == attribute.lower() for _, mentioned in weights)
        weight = weights.get((name, attribute.lower()), Weight.RELATED if is_related else Weight.OTHER)
        if attribute == self.roles.type:
            weight = min(weight, Weight.FILTERED)
        return TextColumn(f"{name}.{attribute}", cells, Weight.RETURNED if self.roles.returns_all else weight)

    def _attributes(self, name: str) -> list[str]:
        kind = _event_type(self.rows.schema.field(name).type)
        return [] if kind is None else [kind.field(n).name for n in range(kind.num_fields)]

    def _is_shared(self, attribute: str) -> bool:
        """Return True if there are several variables, and all events of each match have the same value."""
        if len(self.variables) < 2 or self.rows.num_rows == 0 or self.roles.returns_all:
            return False
        for row in range(self.rows.num_rows):
            events = [event for name in self.variables for event in self.values[name][row]]
            if any(event.get(attribute) != events[0].get(attribute) for event in events):
                return False
        return True

    def _is_constant(self, name: str, attribute: str) -> bool:
        return len({str(event[attribute]) for events in self.values[name] for event in events}) <= 1

    def _first(self, row: int, attribute: str) -> Any:
        events = (event for name in self.variables for event in self.values[name][row])
        return next((event.get(attribute) for event in events), None)

    def _times(self, name: str, time: str, dates: list[date | None]) -> list[str]:
        """Return the times of a variable, without the date where it is the one shown before in the same row."""
        cells, precision = [], _precision([event[time] for events in self.values[name] for event in events])
        for row, events in enumerate(self.values[name]):
            texts = []
            for event in _ends(events):
                texts.append(_moment_text(event[time], precision, dates[row]))
                dates[row] = event[time].date() if isinstance(event[time], datetime) else None
            cells.append(_joined(texts, len(events)))
        return cells

    def _is_group(self, name: str) -> bool:
        return not pa.types.is_struct(self.rows.schema.field(name).type)


def _as_events(cell: Any) -> list[dict[str, Any]]:
    return [] if cell is None else cell if isinstance(cell, list) else [cell]


def _ends(values: list[Any]) -> list[Any]:
    """Return all values, or the first and the last if there are many."""
    return values if len(values) <= MAX_LISTED else [values[0], values[-1]]


def _joined(texts: list[str], count: int) -> str:
    if not texts:
        return "-"
    return ", ".join(texts) if count == len(texts) else " … ".join(texts)


def _listed(values: list[Any]) -> str:
    return _joined([cell_text(value) for value in _ends(values)], len(values))


def _texts(values: list[Any]) -> list[str]:
    """Return the cells of a column; its times have the same number of decimals, its lists are on one line."""
    precision = _precision(values)
    return [
        _moment_text(value, precision, None)
        if isinstance(value, datetime)
        else ", ".join(map(cell_text, value))
        if isinstance(value, list)
        else cell_text(value)
        for value in values
    ]


def _precision(values: list[Any]) -> str:
    """Return the precision that shows every time of a column exactly."""
    fractions = [value.microsecond for value in values if isinstance(value, datetime)]
    return "microseconds" if any(f % 1000 for f in fractions) else "milliseconds" if any(fractions) else "seconds"


def _moment_text(value: Any, precision: str, shown: date | None) -> str:
    if not isinstance(value, datetime):
        return cell_text(value)
    text = datetime_text(value, precision)
    return text[11:] if value.date() == shown else text
