"""TODO"""

from streamsift.runtime.stream.engine import (
    Engine,
    ManyEngine,
    engine_for,
    engine_for_many,
    load_engine,
    load_engine_for_many,
)

__all__ = ["Engine", "ManyEngine", "engine_for", "engine_for_many", "load_engine", "load_engine_for_many"]
