"""Resolve columns and their kinds in a schema, and the caller's bindings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo

import pyarrow as pa
from pyarrow import types as t

from streamsift.errors import NOWHERE, QueryError, Span, nearest, with_article
from streamsift.logical.bound import TIME, Binding, Kind, TimeKind


def kind_of(data_type: pa.DataType) -> Kind:
    """What a column's values are, as far as operators care."""
    if t.is_dictionary(data_type):
        return kind_of(data_type.value_type)
    checks = (
        (t.is_uint64, Kind.DECIMAL),  # beyond int64: computed with as decimal(20, 0)
        (t.is_integer, Kind.INTEGER),
        (t.is_floating, Kind.FLOAT),
        (t.is_decimal, Kind.DECIMAL),
        (t.is_boolean, Kind.BOOLEAN),
        (t.is_timestamp, Kind.TIMESTAMP),
        (t.is_date, Kind.DATE),
        (t.is_duration, Kind.DURATION),
        (t.is_null, Kind.NULL),
        (lambda d: t.is_string(d) or t.is_large_string(d) or t.is_string_view(d), Kind.STRING),
    )
    return next((kind for check, kind in checks if check(data_type)), Kind.OTHER)


_TIME_KINDS: dict[Kind, TimeKind] = {Kind(kind.value): kind for kind in TimeKind if kind is not TimeKind.TEXT}
_VALUE_KIND = {kind: value for value, kind in _TIME_KINDS.items()} | {TimeKind.TEXT: Kind.TIMESTAMP}
# Text is read as timestamps; a column without a single value, as of an empty file, may be anything.
_TIME_KINDS |= {Kind.STRING: TimeKind.TEXT, Kind.NULL: TimeKind.TEXT}


@dataclass(frozen=True, slots=True)
class EventColumns:
    """The event columns of one stream: finds them by name as Spark does."""

    schema: pa.Schema
    binding: Binding
    case_sensitive: bool
    zone: tzinfo = UTC  # of timestamp literals that name none
    distinct_case: bool = True  # whether output columns may differ by case only

    def has_zone(self, name: str) -> bool:
        """Whether a column holds instants, not clock times."""
        column = self.binding.time if name == TIME else name
        return column in self.schema.names and getattr(self.schema.field(column).type, "tz", None) is not None

    def find(self, name: str, text: str, span: Span) -> tuple[str, Kind]:
        """The column that an attribute names and its kind; TIME for `time` and `t` where no column has that name."""
        found = _matching(self.schema, name, self.case_sensitive)
        if found:
            column = _the_only(found, name, text, span)
            return column, kind_of(self.schema.field(column).type)
        if name.lower() in ("time", "t"):
            return TIME, _VALUE_KIND[self.binding.time_kind]
        raise QueryError(f"unknown column `{name}`", text, span, nearest(name, self.schema.names))


@dataclass(frozen=True, slots=True)
class UnknownColumns(EventColumns):
    """Stands in where there is no schema yet: every column is there, and could be of any kind."""

    def find(self, name: str, text: str, span: Span) -> tuple[str, Kind]:
        return name, Kind.NULL


UNKNOWN_COLUMNS = UnknownColumns(pa.schema([]), Binding("time", TimeKind.TIMESTAMP), case_sensitive=True)


def bind_columns(
    schema: pa.Schema,
    time: str,
    type: str | None,
    order: str | None,
    case_sensitive: bool = False,
    zone: tzinfo = UTC,
    distinct_case: bool = True,
) -> EventColumns:
    """Checks the caller's `time`, `type` and `order` against the schema."""
    time_column, time_kind = _bound(schema, "time", time, case_sensitive)
    if time_kind not in _TIME_KINDS:
        hint = "time is a timestamp, a date or a number; a string is read as an ISO-8601 timestamp."
        raise QueryError(f"the time column `{time_column}` is {with_article(time_kind.value)}", hint=hint)
    type_column = order_column = None
    if type is not None:
        type_column, type_kind = _bound(schema, "type", type, case_sensitive)
        if type_kind not in (Kind.STRING, Kind.NULL):
            hint = "type is a string column with class names; classes over other columns are defined in WITH."
            raise QueryError(f"the type column `{type_column}` is {with_article(type_kind.value)}", hint=hint)
    if order is not None:
        order_column, order_kind = _bound(schema, "order", order, case_sensitive)
        if order_kind is Kind.OTHER:
            hint = "order events by a number, a string or a time."
            raise QueryError(f"the order column `{order_column}` is {with_article(order_kind.value)}", hint=hint)
    binding = Binding(time_column, _TIME_KINDS[time_kind], type_column, order_column)
    return EventColumns(schema, binding, case_sensitive, zone, distinct_case)


def _bound(schema: pa.Schema, role: str, name: str, case_sensitive: bool) -> tuple[str, Kind]:
    if not isinstance(name, str):
        raise QueryError(f"{role}={name!r}", hint=f"`{role}` is the name of a column.")
    found = _matching(schema, name, case_sensitive)
    if not found:
        raise QueryError(f"the {role} column `{name}` is not in the data", hint=nearest(name, schema.names))
    column = _the_only(found, name, "", NOWHERE)
    return column, kind_of(schema.field(column).type)


def _matching(schema: pa.Schema, name: str, case_sensitive: bool) -> list[str]:
    exact = [n for n in schema.names if n == name]
    return exact or ([] if case_sensitive else [n for n in schema.names if n.lower() == name.lower()])


def _the_only(found: list[str], name: str, text: str, span: Span) -> str:
    if len(found) > 1:
        hint = "rename one of them."
        raise QueryError(f"`{name}` could be any of the columns {', '.join(f'`{f}`' for f in found)}", text, span, hint)
    return found[0]
