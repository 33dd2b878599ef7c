"""Track the progress of a run for the command line's progress bar.

The run updates the tracker of the current context; if there is none, no progress is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """How many events are done, of how many; both are 0 at first. One thread updates it, another reads it."""

    done: int = 0
    total: int = 0
    pass_number: int = 0
    passes: int = 1

    def counts(self) -> tuple[int, int]:
        return self.done, self.total

    def begin(self, number: int, passes: int) -> None:
        """Begin a pass over all events; each alternative takes one."""
        self.pass_number, self.passes = number, passes

    def update(self, done: int, total: int) -> None:
        """Set how many of the events of this pass are done."""
        self.total = total
        self.done = max(self.done, (self.pass_number * total + done) // self.passes)


_PROGRESS: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def track_progress() -> Iterator[Progress]:
    """Track the progress of the body."""
    tracker = Progress()
    token = _PROGRESS.set(tracker)
    try:
        yield tracker
    finally:
        _PROGRESS.reset(token)


def current_progress() -> Progress | None:
    """Return the tracker of the current context."""
    return _PROGRESS.get()
