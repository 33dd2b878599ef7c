"""Sign a result's schema with the query that made it, and read the signature: what `show` needs to know."""

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
    """Add the signature as metadata, which takes no part in the equality of schemas and which Parquet files keep."""
    return schema.with_metadata({KEY: json.dumps({"query": query, "time": time}).encode()})


def origin(schema: pa.Schema) -> Origin | None:
    found = (schema.metadata or {}).get(KEY)
    return None if found is None else Origin(**json.loads(found))
