"""A plan and events in, result rows out, without Spark: columnar events, Numba kernels, Arrow batches."""

from streamsift.runtime.analyze import analyze_run
from streamsift.runtime.detect import match_places
from streamsift.runtime.events.bad_rows import BadRows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.execute import execute
from streamsift.runtime.resources import Budget, default_limit, held, limited, limited_batches
from streamsift.runtime.schema import output_schema
from streamsift.runtime.share import execute_many
from streamsift.runtime.state import Changes
from streamsift.runtime.stream import ManyEngine

__all__ = [
    "BadRows",
    "Budget",
    "Changes",
    "Events",
    "ManyEngine",
    "analyze_run",
    "default_limit",
    "execute",
    "execute_many",
    "held",
    "limited",
    "limited_batches",
    "match_places",
    "output_schema",
    "prepare",
]
