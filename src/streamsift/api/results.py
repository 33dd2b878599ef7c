"""A result's schema in, the same schema signed with the query that made it out, and back: what `show` needs to know."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

KEY = b"streamsift"


@dataclass(frozen=True, slots=True)
class Origin:
    """The query that a table is the result of, and the column that was its time."""

    query: str
    time: str


def signed(schema: pa.Schema, query: str, time: str) -> pa.Schema:
    """Metadata takes no part in the equality of Arrow schemas, and Parquet files keep it."""
    return schema.with_metadata({KEY: json.dumps({"query": query, "time": time}).encode()})


def origin(schema: pa.Schema) -> Origin | None:
    found = (schema.metadata or {}).get(KEY)
    return None if found is None else Origin(**json.loads(found))
