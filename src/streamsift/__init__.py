"""Streamsift: find, count and rank patterns in event streams, on Spark and on Arrow tables."""

import logging

from streamsift.api import (
    Query,
    Stream,
    StreamMetrics,
    all_of,
    any_of,
    check_cluster,
    event,
    explain_many,
    load_ipython_extension,
    match_recognize,
    metrics,
    open_many,
    plot,
    query,
    register,
    resume,
    run_many,
    seq,
    show,
    sql,
    unload_ipython_extension,
)
from streamsift.errors import (
    BadInputError,
    BadRowsWarning,
    MemoryLimitExceeded,
    QueryError,
    QuerySyntaxError,
    SetupError,
    StreamsiftError,
    StreamsiftWarning,
    UnmatchedClassWarning,
    UnsupportedQuery,
)

# As libraries should: silent unless the application adds a handler to this logger or its parents.
logging.getLogger("streamsift").addHandler(logging.NullHandler())

__version__ = "0.1.0"
__all__ = [
    "BadInputError",
    "BadRowsWarning",
    "MemoryLimitExceeded",
    "Query",
    "QueryError",
    "QuerySyntaxError",
    "SetupError",
    "Stream",
    "StreamMetrics",
    "StreamsiftError",
    "StreamsiftWarning",
    "UnmatchedClassWarning",
    "UnsupportedQuery",
    "all_of",
    "any_of",
    "check_cluster",
    "event",
    "explain_many",
    "match_recognize",
    "metrics",
    "open_many",
    "plot",
    "query",
    "register",
    "resume",
    "run_many",
    "seq",
    "show",
    "sql",
]
