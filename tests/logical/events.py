"""Define the schema of the binder's tests, with one column of each kind."""

from __future__ import annotations

import pyarrow as pa

from streamsift.language import parse
from streamsift.logical import bound as b
from streamsift.logical.binder import bind

SCHEMA = pa.schema(
    [
        ("t", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("kind", pa.string()),
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("n", pa.int32()),
        ("s", pa.string()),
        ("Price", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("seq", pa.int64()),
    ]
)


def bound(text: str, *, time: str = "t", type: str | None = "kind", order: str | None = None) -> b.BoundQuery:
    return bind(parse(text), SCHEMA, time=time, type=type, order=order)


def predicates(text: str) -> list[tuple[str, str, int]]:
    """Return (text, class, scope) of each conjunct."""
    return [(p.text, p.predicate_class.value, p.scope) for p in bound(text).predicates]
