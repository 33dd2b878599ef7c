"""Streamsift: find, count and rank patterns in event streams, on Spark and on Arrow tables."""

from streamsift.api import Query, all_of, any_of, event, query, register, seq
from streamsift.errors import (
    BadInputError,
    BadRowsWarning,
    QueryError,
    QuerySyntaxError,
    SetupError,
    StreamsiftError,
    UnsupportedQuery,
)
from streamsift.many import explain_many, metrics, run_many

__version__ = "0.1.0"
__all__ = [
    "BadInputError",
    "BadRowsWarning",
    "Query",
    "QueryError",
    "QuerySyntaxError",
    "SetupError",
    "StreamsiftError",
    "UnsupportedQuery",
    "all_of",
    "any_of",
    "event",
    "explain_many",
    "metrics",
    "query",
    "register",
    "run_many",
    "seq",
]
