"""What a stream's triggers did in, one frame of the live view out: rates, matches, lag, state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Reading:
    """The sums since the start, and the last micro-batch."""

    batches: int = 0
    rows: int = 0
    matches: int = 0
    late: int = 0
    bad_rows: int = 0
    state_rows: int | None = None
    state_bytes: int | None = None
    rows_per_second: float = 0.0
    latency_ms: int = 0
    watermark: datetime | None = None  # None: none yet, or times are numbers

    def after(
        self, batches: Sequence[tuple[int, int, int, int, int]], last: tuple[int | None, int | None]
    ) -> Reading:  # rows, matches, late, bad rows, latency of each batch
        if not batches:
            return self
        rows, matches, late, bad_rows, latency = (sum(column) for column in zip(*batches, strict=True))
        return Reading(
            self.batches + len(batches),
            self.rows + rows,
            self.matches + matches,
            self.late + late,
            self.bad_rows + bad_rows,
            *last,
            rows_per_second=rows * 1000 / latency if latency else 0.0,
            latency_ms=batches[-1][4],
            watermark=self.watermark,
        )


def live_table(reading: Reading, noun: str, now: datetime | None = None) -> Table:
    """One line of numbers under their names."""
    lag = "-" if reading.watermark is None else _span((now or datetime.now(UTC)) - reading.watermark)
    state = "-"
    if reading.state_rows is not None and reading.state_bytes is not None:
        state = f"{reading.state_rows:,} rows, {_size(reading.state_bytes)}"
    table = Table(header_style="bold", caption="Ctrl-C stops", caption_justify="left")
    cells = {
        "batches": f"{reading.batches:,}",
        "rows": f"{reading.rows:,}",
        "rows/s": f"{reading.rows_per_second:,.0f}",
        noun: f"{reading.matches:,}",
        "late": f"{reading.late:,}",
        "state": state,
        "trigger": f"{reading.latency_ms:,} ms",
        "watermark lag": lag,
    }
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    return table


def summary(reading: Reading, noun: str) -> str:
    """The last line of a run."""
    late = f", {reading.late:,} late" * bool(reading.late)
    bad = f", {reading.bad_rows:,} without a usable time" * bool(reading.bad_rows)
    return f"{reading.batches:,} micro-batches, {reading.rows:,} rows{late}{bad}, {reading.matches:,} {noun}"


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
