"""A plan and events in, result rows out, without Spark: columnar events, Numba kernels, Arrow batches."""

from streamsift.runtime.budget import Budget, default_limit, held, limited, limited_batches
from streamsift.runtime.detect import match_rows
from streamsift.runtime.engine import (
    Engine,
    ManyEngine,
    engine_for,
    engine_for_many,
    load_engine,
    load_engine_for_many,
)
from streamsift.runtime.events import BadRows, Events
from streamsift.runtime.execute import execute
from streamsift.runtime.execute_many import execute_many
from streamsift.runtime.prepared import prepare
from streamsift.runtime.rates import analyze_run
from streamsift.runtime.saved_state import Changes
from streamsift.runtime.schemas import output_schema

__all__ = [
    "BadRows",
    "Budget",
    "Changes",
    "Engine",
    "Events",
    "ManyEngine",
    "analyze_run",
    "default_limit",
    "engine_for",
    "engine_for_many",
    "execute",
    "execute_many",
    "held",
    "limited",
    "limited_batches",
    "load_engine",
    "load_engine_for_many",
    "match_rows",
    "output_schema",
    "prepare",
]
