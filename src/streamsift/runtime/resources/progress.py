"""Work on a stream in, how far it has come out, for whoever watches it: the command line's progress bar.

Work tells what it has reached to the watch of its context, if there is one; nothing is computed for nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Watch:
    """How many events are done, of how many; both 0 as long as nobody knows. Read by another thread than it is set."""

    done: int = 0
    total: int = 0
    pass_number: int = 0
    passes: int = 1

    def counts(self) -> tuple[int, int]:
        return self.done, self.total

    def begin(self, number: int, passes: int) -> None:
        """Work goes over all events several times, one time for each alternative."""
        self.pass_number, self.passes = number, passes

    def reached(self, done: int, total: int) -> None:
        """So many of the events of this pass are done."""
        self.total = total
        self.done = max(self.done, (self.pass_number * total + done) // self.passes)


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching() -> Iterator[Watch]:
    """A watch on the work inside."""
    watch = Watch()
    token = _WATCH.set(watch)
    try:
        yield watch
    finally:
        _WATCH.reset(token)


def watch() -> Watch | None:
    """The watch on the work that is done here."""
    return _WATCH.get()
