"""Announce that Numba is compiling kernels, once that has taken seconds.

Numba compiles a kernel on its first call and caches the result on disk, so only the first runs on a machine wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer

from numba.core.event import Event, Listener, install_listener

ANNOUNCE_SECONDS = 2.0


class _CompileListener(Listener):
    """Call `announce` once, as soon as compiling has taken `seconds` in total.

    Numba holds one lock while it compiles, so its events arrive one at a time; those of a kernel enclose those of the
    kernels that it calls. A timer announces a compile that is still running.
    """

    def __init__(self, announce: Callable[[], None], seconds: float) -> None:
        self._announce: Callable[[], None] | None = announce  # None once it has been called
        self._lock = Lock()
        self._remaining_seconds = seconds
        self._depth = 0
        self._started = 0.0
        self._timer: Timer | None = None

    def on_start(self, event: Event) -> None:
        self._depth += 1
        if self._depth > 1 or self._announce is None:
            return
        self._started = time.monotonic()
        self._timer = Timer(max(0.0, self._remaining_seconds), self._announce_once)
        self._timer.daemon = True
        self._timer.start()

    def on_end(self, event: Event) -> None:
        self._depth = max(0, self._depth - 1)  # another thread may have started this compile before the body
        if self._depth > 0 or self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        self._remaining_seconds -= time.monotonic() - self._started
        if self._remaining_seconds <= 0:
            self._announce_once()

    def close(self) -> None:
        """Prevent an announcement after this call; wait for one that is under way."""
        with self._lock:
            self._announce = None

    def _announce_once(self) -> None:
        with self._lock:
            if self._announce is not None:
                self._announce()
                self._announce = None


@contextmanager
def announce_compiling(announce: Callable[[], None], seconds: float = ANNOUNCE_SECONDS) -> Iterator[None]:
    """Call `announce` at most once, when Numba has spent `seconds` in the body on compiling kernels.

    The call comes from another thread if a kernel is still being compiled.
    """
    listener = _CompileListener(announce, seconds)
    try:
        with install_listener("numba:compile", listener):
            yield
    finally:
        listener.close()
