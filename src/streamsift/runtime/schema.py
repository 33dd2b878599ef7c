"""Return the Arrow schema of a query's result, the same for every input, empty ones too."""

from __future__ import annotations

import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.runtime.count import aggregate_schema
from streamsift.runtime.matches import match_schema
from streamsift.runtime.rank import rank_schema


def output_schema(query: BoundQuery) -> pa.Schema:
    if query.aggregates:
        return aggregate_schema(query)
    return rank_schema(query) if query.ranking else match_schema(query)
