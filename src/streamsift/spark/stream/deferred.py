"""Defer the imports of a stateful processor until its first rows.

When a stream starts, Spark unpickles the processor in a Python process of its own that only calls `init`. Importing the
engine there, with Numba and Arrow, took most of the time of a start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from streamsift.spark.stream.stateful import ABOUT, CHUNK, CHUNK_NUMBER, HEADER
from streamsift.spark.workers import loader

if TYPE_CHECKING:
    from streamsift.spark.stream.stateful import BucketProcessor


def deferred(processor: BucketProcessor) -> StatefulProcessor:
    """Return a processor that declares the states, and loads the given one when it has rows or a timer expires.

    Its class is pickled by value, so its body may not use anything of this package (tests/spark/test_workers.py).
    """
    load, head, about, number, chunk = loader(processor), HEADER, ABOUT, CHUNK_NUMBER, CHUNK

    class Deferred(StatefulProcessor):
        loaded: Any = None

        def init(self, handle: Any) -> None:
            self.states = (
                handle,
                handle.getValueState("head", head),
                handle.getValueState("about", about),
                handle.getMapState("chunks", number, chunk),
            )

        def processor(self) -> Any:
            if self.loaded is None:
                self.loaded, _ = load()
                self.loaded.attach(*self.states)
            return self.loaded

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            yield from self.processor().handleInputRows(key, rows, timerValues)

        def handleExpiredTimer(  # noqa: N802
            self,
            key: Any,
            timerValues: Any,  # noqa: N803
            expiredTimerInfo: Any,  # noqa: N803
        ) -> Iterator[Any]:
            yield from self.processor().handleExpiredTimer(key, timerValues, expiredTimerInfo)

        def close(self) -> None:
            pass

    return Deferred()
