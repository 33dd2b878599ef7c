"""Enforce the memory limit of a query.

Before it allocates a large array, a run reserves the bytes in the budget of its context; it also counts its matches
there. Without a budget nothing is limited: tests and streams pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import pyarrow as pa

from streamsift.errors import MemoryLimitExceeded, StreamsiftError
from streamsift.runtime.resources.memory import free_bytes

MIN_FREE = 1 << 27  # bytes left to the system, whatever the limit
UNLIMITED = 1 << 62
_SMALLER_RESULT = (
    "use batches() to stream the result, limit=n to stop after n matches, or AGG COUNT to count matches without"
    " building them; or shorten WITHIN, add conditions or RETURN fewer columns"
)
FEWER_EVENTS = "shorten WITHIN or add conditions to combine fewer events"
FEWER_TIES = "rank by an objective with fewer ties, shorten WITHIN or add conditions"
FEWER_TICKS = "use a longer UPDATE interval"


@dataclass(slots=True)
class Budget:
    """The memory limit of a query, the size of its result so far, and how many matches it has found."""

    limit: int
    matches: int = 0
    result_bytes: int = 0
    _buffers: dict[int, int] = field(default_factory=dict)  # sizes of the result's buffers by address

    def hold(self, batch: pa.RecordBatch) -> None:
        """Count a batch that the caller keeps. Raise if the result has become too large."""
        for column in batch.columns:
            for buffer in column.buffers():
                if buffer is not None and buffer.size > (counted := self._buffers.get(buffer.address, 0)):
                    self._buffers[buffer.address] = buffer.size
                    self.result_bytes += buffer.size - counted
        if self.result_bytes > self.limit:
            raise self._exceeded(f"its result takes {size_text(self.result_bytes)}", _SMALLER_RESULT)
        free = free_bytes()
        if free is not None and free < MIN_FREE:
            raise self._out_of_memory(f"the system has only {size_text(free)} left", _SMALLER_RESULT)

    def reserve(self, size: int, purpose: str, advice: str) -> None:
        """Raise if `size` more bytes would exceed the limit; the error says that they are needed for `purpose`."""
        if size > self.limit - self.result_bytes:
            besides = f" besides {size_text(self.result_bytes)} of results" if self.result_bytes else ""
            raise self._exceeded(f"it needs {size_text(size)} for {purpose}{besides}", advice)

    def failed_allocation(self) -> MemoryLimitExceeded:
        """Return the error for an allocation that the system refused."""
        free = free_bytes()
        left = "" if free is None else f" with {size_text(free)} left"
        return self._out_of_memory(f"the system refused an allocation{left}", _SMALLER_RESULT)

    def _exceeded(self, why: str, advice: str) -> MemoryLimitExceeded:
        limit = size_text(self.limit)
        hint = f"{advice}; or raise memory_limit= above {limit}"
        return self._out_of_memory(f"{why}, and its limit is {limit}", hint)

    def _out_of_memory(self, why: str, hint: str) -> MemoryLimitExceeded:
        matches = "1 match" if self.matches == 1 else f"{self.matches:,} matches"
        so_far = f"; {matches} so far" if self.matches else ""
        return MemoryLimitExceeded(f"the query does not fit in memory: {why}{so_far}\nHint: {hint}.")


_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(budget: Budget) -> Iterator[None]:
    """Run the body under a budget; turn a MemoryError into a MemoryLimitExceeded."""
    token = _BUDGET.set(budget)
    try:
        yield
    except StreamsiftError:
        raise
    except MemoryError as error:
        raise budget.failed_allocation() from error
    finally:
        _BUDGET.reset(token)


def limited_batches(batches: Iterator[pa.RecordBatch], budget: Budget) -> Iterator[pa.RecordBatch]:
    """Yield the batches, each computed under the budget; the budget does not apply to the caller between batches."""
    while True:
        with limited(budget):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def count_results(batches: Iterable[pa.RecordBatch], budget: Budget) -> Iterator[pa.RecordBatch]:
    """Yield the batches to a caller that keeps them all; raise once they exceed the budget."""
    for batch in batches:
        budget.hold(batch)
        yield batch


def add_to_match_count(count: int) -> None:
    """Add matches to the count of the current budget."""
    if (budget := _BUDGET.get()) is not None:
        budget.matches += count


def reserve(size: int, purpose: str, advice: str = FEWER_EVENTS) -> None:
    """Raise if the current budget does not have `size` bytes left for `purpose`."""
    if (budget := _BUDGET.get()) is not None:
        budget.reserve(size, purpose, advice)


def room() -> int:
    """Return how many bytes the current budget has left."""
    budget = _BUDGET.get()
    return UNLIMITED if budget is None else max(0, budget.limit - budget.result_bytes)


def default_limit() -> int:
    """Return half of the memory that this process can still allocate."""
    free = free_bytes()
    return UNLIMITED if free is None else free // 2


def size_text(size: float) -> str:
    """Format a number of bytes with a unit.

    >>> size_text(2_140_000_000), size_text(512)
    ('2.1 GB', '512 bytes')
    """
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:.0f} bytes"
