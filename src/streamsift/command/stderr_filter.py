"""Pass on the standard error of the processes that a block starts, until an event mutes them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STDERR, CHUNK_BYTES = 2, 1 << 16


@contextmanager
def mute_stderr_after(event: threading.Event) -> Iterator[None]:
    """Pass on what processes started inside, and those that they start, write until the event is set.

    A JVM reports a thread that ended by an error whatever its log level, and workers report that they were interrupted;
    to whoever has just interrupted them that is noise. What this process writes inside is passed on, too.
    """
    kept = os.dup(STDERR)
    reader, writer = os.pipe()
    os.dup2(writer, STDERR)
    os.close(writer)
    threading.Thread(target=_pass_on, args=(reader, os.dup(kept), event), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)


def _pass_on(reader: int, target: int, muted: threading.Event) -> None:
    """Copy until no process has the other end of the pipe any more."""
    with os.fdopen(reader, "rb", buffering=0) as source, os.fdopen(target, "wb", buffering=0) as copy:
        while chunk := source.read(CHUNK_BYTES):
            if not muted.is_set():
                copy.write(chunk)
