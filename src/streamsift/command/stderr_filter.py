"""What the processes that are started inside say on standard error in, the same out, until they are to be quiet."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STDERR, CHUNK_BYTES = 2, 1 << 16


@contextmanager
def hushed_by(quiet: threading.Event) -> Iterator[None]:
    """Processes started inside, and those that they start, are passed on until the event is set.

    A JVM tells of a thread that ended by an error whatever its log level, and workers tell that they were interrupted;
    to whoever has just interrupted them that is noise. Whatever this process says inside is passed on, too.
    """
    kept = os.dup(STDERR)
    reader, writer = os.pipe()
    os.dup2(writer, STDERR)
    os.close(writer)
    threading.Thread(target=_pass_on, args=(reader, os.dup(kept), quiet), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)


def _pass_on(reader: int, target: int, quiet: threading.Event) -> None:
    """Ends when no process has the other end of the pipe any more."""
    with os.fdopen(reader, "rb", buffering=0) as said, os.fdopen(target, "wb", buffering=0) as heard:
        while chunk := said.read(CHUNK_BYTES):
            if not quiet.is_set():
                heard.write(chunk)
