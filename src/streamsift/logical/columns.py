"""Resolve columns and their kinds in a schema, and the caller's bindings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo

import pyarrow as pa
from pyarrow import types as t

from streamsift.errors import NOWHERE, QueryError, Span, nearest, with_article
from streamsift.logical.bound import TIME, Binding, Kind, TimeKind


def kind_of(data_type: pa.DataType) -> Kind:
    """Return the kind of a column's values, which determines the operators that apply."""
    if t.is_dictionary(data_type):
        return kind_of(data_type.value_type)
    checks = (
        (t.is_uint64, Kind.DECIMAL),  # beyond int64: arithmetic uses decimal(20, 0)
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
# Strings are parsed as timestamps. A column without values, as in an empty file, may have any type.
_TIME_KINDS |= {Kind.STRING: TimeKind.TEXT, Kind.NULL: TimeKind.TEXT}


@dataclass(frozen=True, slots=True)
class EventColumns:
    """The columns of a stream's events; names resolve as in Spark."""

    schema: pa.Schema
    binding: Binding
    case_sensitive: bool
    zone: tzinfo = UTC  # of timestamp literals without a time zone
    distinct_case: bool = True  # True if names of output columns may differ only by case

    def has_zone(self, name: str) -> bool:
        """Return True if a column has a time zone, so that it holds instants and not local times."""
        column = self.binding.time if name == TIME else name
        return column in self.schema.names and getattr(self.schema.field(column).type, "tz", None) is not None

    def find(self, name: str, text: str, span: Span) -> tuple[str, Kind]:
        """Return the column of an attribute and its kind; TIME for `time` and `t` unless they are columns."""
        column = _find(self.schema, name, self.case_sensitive, text, span)
        if column is not None:
            return column
        if name.lower() in ("time", "t"):
            return TIME, _VALUE_KIND[self.binding.time_kind]
        raise QueryError(f"unknown column `{name}`", text, span, nearest(name, self.schema.names))


@dataclass(frozen=True, slots=True)
class UnknownColumns(EventColumns):
    """Columns of a query without a schema: every name is a column of unknown kind."""

    def find(self, name: str, text: str, span: Span) -> tuple[str, Kind]:
        return name, Kind.NULL


UNKNOWN_COLUMNS = UnknownColumns(pa.schema([]), Binding("time", TimeKind.TIMESTAMP), case_sensitive=True)


def bind_columns(schema: pa.Schema, time: str, type: str | None, order: str | None, case_sensitive: bool) -> Binding:
    """Check the caller's `time`, `type` and `order` against the schema."""
    time_column, time_kind = _bound(schema, "time", time, case_sensitive)
    type_column, _ = _bound(schema, "type", type, case_sensitive) if type is not None else (None, None)
    order_column, _ = _bound(schema, "order", order, case_sensitive) if order is not None else (None, None)
    return Binding(time_column, _TIME_KINDS[time_kind], type_column, order_column)


_ROLES = {  # role: the kinds that its column may have, and a hint
    "time": (
        frozenset(_TIME_KINDS),
        "use a column of timestamps, dates or numbers, or of strings in ISO 8601 format.",
    ),
    "type": (
        frozenset({Kind.STRING, Kind.NULL}),
        "use a string column of class names, or define the classes in WITH.",
    ),
    "order": (frozenset(Kind) - {Kind.OTHER}, "use a column of numbers, strings, booleans or times."),
}


def _bound(schema: pa.Schema, role: str, name: str, case_sensitive: bool) -> tuple[str, Kind]:
    if not isinstance(name, str):
        raise QueryError(f"invalid value for {role}: {name!r}", hint="pass the name of a column.")
    column = _find(schema, name, case_sensitive, "", NOWHERE)
    if column is None:
        raise QueryError(f"the {role} column `{name}` is not in the data", hint=nearest(name, schema.names))
    kinds, hint = _ROLES[role]
    if column[1] not in kinds:
        raise QueryError(f"`{column[0]}` cannot be the {role} column: it is {with_article(column[1].value)}", hint=hint)
    return column


def _find(schema: pa.Schema, name: str, case_sensitive: bool, text: str, span: Span) -> tuple[str, Kind] | None:
    exact = [n for n in schema.names if n == name]
    matching = exact or [n for n in schema.names if n.lower() == name.lower() and not case_sensitive]
    if len(matching) > 1:
        columns = ", ".join(f"`{column}`" for column in matching)
        raise QueryError(f"`{name}` is ambiguous: it matches the columns {columns}", text, span, "rename one of them.")
    return (matching[0], kind_of(schema.field(matching[0]).type)) if matching else None
