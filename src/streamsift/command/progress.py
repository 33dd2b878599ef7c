"""Show progress on the terminal: a bar for a batch; for a stream, a line of figures and a summary at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from streamsift.runtime.resources import announce_compiling

if TYPE_CHECKING:
    from streamsift.spark import Trigger

COMPILING = "compiling kernels; this happens once per machine and takes some seconds"


@contextmanager
def progress(
    console: Console, title: str, done_of: Callable[[], tuple[int, int]] | None = None, unit: str = "tasks"
) -> Iterator[None]:
    """Show a progress bar while the body runs, if the console is a terminal; `done_of` returns (done, total)."""
    if not console.is_terminal:
        yield
        return
    texts = TextColumn("{task.description}"), TextColumn("{task.fields[counts]}")
    columns = SpinnerColumn(), texts[0], BarColumn(bar_width=20), texts[1], TimeElapsedColumn()
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


@contextmanager
def announced_compiling(console: Console) -> Iterator[None]:
    """Say that kernels are being compiled if that takes seconds inside the body, as on the first run."""
    with announce_compiling(lambda: console.print(COMPILING, highlight=False, style="dim")):
        yield


def pace(done: int, total: int, seconds: float, unit: str) -> str:
    """Return a text such as `12 of 64 tasks, 4.1/s, about 13 s left`."""
    counted = f"{done:,} of {total:,} {unit}"
    if done == 0 or seconds <= 0:
        return counted
    rate = done / seconds
    left = (total - done) / rate
    duration = f"{left / 60:,.0f} min" if left >= 120 else f"{left:,.0f} s"
    return f"{counted}, {rate:,.{0 if rate >= 100 else 1}f}/s, about {duration} left"


@dataclass(frozen=True, slots=True)
class Reading:
    """The totals since the start, and the last micro-batch."""

    batches: int = 0
    rows: int = 0
    matches: int = 0
    late: int = 0
    bad_rows: int = 0
    rows_per_second: float = 0.0
    last: Trigger | None = None

    def after(self, triggers: Sequence[Trigger]) -> Reading:
        """Add new triggers. Each counts once, although Spark reports recent ones repeatedly."""
        new = [t for t in triggers if self.last is None or t.batch > self.last.batch]
        if not new:
            return self
        rows, latency_ms = sum(t.rows for t in new), sum(t.latency_ms for t in new)
        return Reading(
            self.batches + len(new),
            self.rows + rows,
            self.matches + sum(t.matches for t in new),
            self.late + sum(t.late for t in new),
            self.bad_rows + sum(t.bad_rows for t in new),
            rows * 1000 / latency_ms if latency_ms else 0.0,
            new[-1],
        )


def live_table(reading: Reading, noun: str, unit: str = "rows", now: datetime | None = None) -> Table:
    """Return a table with one line of figures; `unit` is what Spark counts of the input."""
    last, state, lag = reading.last, "-", "-"
    if last is not None and last.state_rows is not None and last.state_bytes is not None:
        state = f"{last.state_rows:,} rows, {_size(last.state_bytes)}"
    if last is not None and (watermark := _moment(last.watermark)) is not None:
        lag = _span((now or datetime.now(UTC)) - watermark)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", caption="Ctrl-C to stop")
    table.caption_justify = "left"
    cells = {
        "batches": f"{reading.batches:,}",
        unit: f"{reading.rows:,}",
        f"{unit}/s": f"{reading.rows_per_second:,.0f}",
        noun: f"{reading.matches:,}",
        **({"late": f"{reading.late:,}"} if reading.late else {}),
        "state": state,
        "trigger": _latency(last.latency_ms if last else 0),
        "lag": lag,  # of the watermark
    }
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    return table


def summary(reading: Reading, noun: str, unit: str = "rows") -> str:
    """Return the last line that a run prints."""
    late = f", {reading.late:,} late" * bool(reading.late)
    bad = f", {reading.bad_rows:,} without a usable time" * bool(reading.bad_rows)
    return f"{reading.batches:,} micro-batches, {reading.rows:,} {unit}{late}{bad}, {reading.matches:,} {noun}"


def _moment(text: str | None) -> datetime | None:
    """Return the watermark as a time. Return None before the first one (1970), and for encoded numeric times."""
    if text is None or text.startswith(("+", "1970-01-01T00:00:00.000")):
        return None
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def _span(length: timedelta) -> str:
    seconds = max(0, int(length.total_seconds()))
    days, rest = divmod(seconds, 86_400)
    return f"{days:,} d {rest // 3600} h" if days else f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"


def _latency(milliseconds: int) -> str:
    return f"{milliseconds:,} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:,.1f} s"


def _size(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count //= 1024
    return f"{count:,.0f} GiB"
