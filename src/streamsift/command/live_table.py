"""Add up what the triggers of a stream did, and show it in one line of a live view: rates, matches, lag, state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from streamsift.spark import Trigger


@dataclass(frozen=True, slots=True)
class Reading:
    """The sums since the start, and the last micro-batch."""

    batches: int = 0
    rows: int = 0
    matches: int = 0
    late: int = 0
    bad_rows: int = 0
    rows_per_second: float = 0.0
    last: Trigger | None = None

    def after(self, triggers: Sequence[Trigger]) -> Reading:
        """Add the triggers that are new: each counts once, though Spark reports the last ones again and again."""
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


def live_table(reading: Reading, noun: str, now: datetime | None = None) -> Table:
    """Return one line of numbers under their names."""
    last, state, lag = reading.last, "-", "-"
    if last is not None and last.state_rows is not None and last.state_bytes is not None:
        state = f"{last.state_rows:,} rows, {_size(last.state_bytes)}"
    if last is not None and (watermark := _moment(last.watermark)) is not None:
        lag = _span((now or datetime.now(UTC)) - watermark)
    table = Table(header_style="bold", caption="Ctrl-C stops", caption_justify="left")
    cells = {
        "batches": f"{reading.batches:,}",
        "rows": f"{reading.rows:,}",
        "rows/s": f"{reading.rows_per_second:,.0f}",
        noun: f"{reading.matches:,}",
        "late": f"{reading.late:,}",
        "state": state,
        "trigger": f"{last.latency_ms if last else 0:,} ms",
        "watermark lag": lag,
    }
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    return table


def summary(reading: Reading, noun: str) -> str:
    """Return the last line of a run."""
    late = f", {reading.late:,} late" * bool(reading.late)
    bad = f", {reading.bad_rows:,} without a usable time" * bool(reading.bad_rows)
    return f"{reading.batches:,} micro-batches, {reading.rows:,} rows{late}{bad}, {reading.matches:,} {noun}"


def _moment(text: str | None) -> datetime | None:
    """Return the watermark as a time; None for 1970, where it begins, and for codes of numbers, in the far future."""
    if text is None or text.startswith(("+", "1970-01-01T00:00:00.000")):
        return None
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def _span(length: timedelta) -> str:
    seconds = max(0, int(length.total_seconds()))
    days, rest = divmod(seconds, 86_400)
    return f"{days:,} d {rest // 3600} h" if days else f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"


def _size(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count //= 1024
    return f"{count:,.0f} GiB"
