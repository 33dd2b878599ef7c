"""Show progress on the terminal: how much is done, how fast, how long it will take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def progress(
    console: Console, title: str, done_of: Callable[[], tuple[int, int]] | None = None, unit: str = "tasks"
) -> Iterator[None]:
    """Show a bar while the body runs; `done_of` returns (done, all) whenever it is called. Nothing off a terminal."""
    if not console.is_terminal:
        yield
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        line = bar.add_task(title, total=None, counts="")
        finished = threading.Event()
        started = time.monotonic()

        def follow() -> None:
            while done_of is not None and not finished.wait(0.2):
                done, total = done_of()
                if total:
                    counts = pace(done, total, time.monotonic() - started, unit)
                    bar.update(line, completed=done, total=total, counts=counts)

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            finished.set()
            follower.join()


def pace(done: int, total: int, seconds: float, unit: str) -> str:
    """Return a text such as `12 of 64 tasks, 4.1/s, about 13 s left`."""
    counted = f"{done:,} of {total:,} {unit}"
    if done == 0 or seconds <= 0:
        return counted
    rate = done / seconds
    left = (total - done) / rate
    told = f"{left / 60:,.0f} min" if left >= 120 else f"{left:,.0f} s"
    return f"{counted}, {rate:,.{0 if rate >= 100 else 1}f}/s, about {told} left"
