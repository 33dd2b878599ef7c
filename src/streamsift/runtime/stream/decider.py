"""Define what the engine asks of one query: which rows a watermark step makes final, and which events to retain."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.watermark import Tick, WatermarkStep


class Decider(ABC):
    schema: pa.Schema
    keys: tuple[str, ...] = ()  # columns by which it finds rows among those held

    @property
    def follows(self) -> bool:
        """Return True if what becomes final depends on the events that are held alone."""
        return True

    @property
    def nbytes(self) -> int:
        """Return what it holds in memory beside the events and its state."""
        return 0

    def state(self) -> dict[str, KeyedVectors]:
        """Return what must be written beside the events."""
        return {}

    @abstractmethod
    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        """Return the rows that a step makes final; rows of the store from `arrived` on came with it."""

    @abstractmethod
    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        """Return the first row, or which rows, a later result may read."""

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        """Return the earliest time whose passing would make a row final or let one be evicted; None: nothing waits."""
        return None
