"""A plan and events in, result rows out, without Spark: columnar events, Numba kernels, Arrow batches."""

from streamsift.runtime.analyze import analyze
from streamsift.runtime.detect import match_rows
from streamsift.runtime.events import BadRows, Events, prepare
from streamsift.runtime.execute import execute, output_schema

__all__ = ["BadRows", "Events", "analyze", "execute", "match_rows", "output_schema", "prepare"]
