"""Work that takes a while in, a moving line on the terminal out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def progress(console: Console, title: str, tasks: Callable[[], tuple[int, int]] | None = None) -> Iterator[None]:
    """Shows a bar while the body runs; `tasks` tells (done, all) whenever it is asked."""
    if not console.is_terminal:
        yield
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        line = bar.add_task(title, total=None, counts="")
        finished = threading.Event()

        def follow() -> None:
            while tasks is not None and not finished.wait(0.2):
                done, total = tasks()
                if total:
                    bar.update(line, completed=done, total=total, counts=f"{done}/{total} tasks")

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            finished.set()
            follower.join()
