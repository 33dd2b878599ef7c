"""Hold the work of a query to a limit of memory.

Work reserves a large array from the budget of its context before it makes it, and counts matches there. Without a
budget nothing is limited, so tests and streams pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import pyarrow as pa

from streamsift.errors import MemoryLimitExceeded, StreamsiftError
from streamsift.runtime.resources.memory import free_bytes

MIN_FREE = 1 << 27  # bytes that a query leaves the system, whatever its limit
UNLIMITED = 1 << 62
_MORE = "memory_limit= sets another limit"
_ROWS = (
    "limit=n stops after n matches; batches() takes bounded memory; AGG COUNT counts matches without building"
    f" them; a shorter WITHIN, more conditions or RETURN of fewer columns make the result smaller; {_MORE}."
)
FEWER_EVENTS = "a shorter WITHIN or more conditions leave fewer events to combine"
FEWER_TIES = "an objective that tells more matches apart, a shorter WITHIN or more conditions leave fewer of them"
FEWER_TICKS = "a longer UPDATE makes fewer of them"


@dataclass(slots=True)
class Budget:
    """The memory that a query may hold, the size of its results, and how many matches it has found."""

    limit: int
    matches: int = 0
    result_bytes: int = 0
    _buffers: dict[int, int] = field(default_factory=dict)  # address: size, of the results

    def hold(self, batch: pa.RecordBatch) -> None:
        """Count a batch that the caller keeps. Raise if the result has become too large."""
        for column in batch.columns:
            for buffer in column.buffers():
                if buffer is not None and buffer.size > (counted := self._buffers.get(buffer.address, 0)):
                    self._buffers[buffer.address] = buffer.size
                    self.result_bytes += buffer.size - counted
        if self.result_bytes > self.limit:
            raise self._exceeded(f"its result holds {size_text(self.result_bytes)}", _ROWS)
        free = free_bytes()
        if free is not None and free < MIN_FREE:
            raise self._exceeded(f"the system has only {size_text(free)} left", _ROWS)

    def reserve(self, size: int, purpose: str, advice: str) -> None:
        """Raise if an array of so many bytes would be too large; `purpose` ends "it needs 3 GB for …"."""
        if size > self.limit - self.result_bytes:
            beside = f" beside {size_text(self.result_bytes)} of results" if self.result_bytes else ""
            raise self._exceeded(f"it needs {size_text(size)} for {purpose}{beside}", f"{advice}; {_MORE}.")

    def refused(self) -> MemoryLimitExceeded:
        """Return the error for an allocation that the system has refused."""
        free = free_bytes()
        left = "" if free is None else f", which has {size_text(free)} left"
        return self._exceeded(f"it needs more than it gets from the system{left}", _ROWS)

    def _exceeded(self, why: str, hint: str) -> MemoryLimitExceeded:
        matches = "; 1 match so far" if self.matches == 1 else f"; {self.matches:,} matches so far"
        return MemoryLimitExceeded(
            f"The query needs too much memory: {why}, and its limit is {size_text(self.limit)}"
            f"{matches if self.matches else ''}.\nHint: {hint}"
        )


_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(budget: Budget) -> Iterator[None]:
    """Put the work inside under a budget; a failed allocation becomes an error of the budget."""
    token = _BUDGET.set(budget)
    try:
        yield
    except StreamsiftError:
        raise
    except MemoryError as error:
        raise budget.refused() from error
    finally:
        _BUDGET.reset(token)


def limited_batches(batches: Iterator[pa.RecordBatch], budget: Budget) -> Iterator[pa.RecordBatch]:
    """Yield the same, each made under the budget; between two of them the caller's context is as it was."""
    while True:
        with limited(budget):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def count_results(batches: Iterable[pa.RecordBatch], budget: Budget) -> Iterator[pa.RecordBatch]:
    """Yield the batches to a caller who keeps them all; raise before they are too large."""
    for batch in batches:
        budget.hold(batch)
        yield batch


def add_to_match_count(count: int) -> None:
    """Add so many matches to the count of this context's budget."""
    if (budget := _BUDGET.get()) is not None:
        budget.matches += count


def reserve(size: int, purpose: str, advice: str = FEWER_EVENTS) -> None:
    """Raise if an array of so many bytes is more than the budget of this context leaves."""
    if (budget := _BUDGET.get()) is not None:
        budget.reserve(size, purpose, advice)


def room() -> int:
    """Return how many bytes the budget of this context leaves for one array."""
    budget = _BUDGET.get()
    return UNLIMITED if budget is None else max(0, budget.limit - budget.result_bytes)


def default_limit() -> int:
    """Return half of the memory that this process may still take."""
    free = free_bytes()
    return UNLIMITED if free is None else free // 2


def size_text(size: float) -> str:
    """Return a number of bytes for people.

    >>> size_text(2_140_000_000), size_text(512)
    ('2.1 GB', '512 bytes')
    """
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:.0f} bytes"
