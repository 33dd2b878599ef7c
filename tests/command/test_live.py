"""The live table of a stream, and the summary at its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from rich.console import Console

from streamsift.command.progress import Reading, live_table, summary
from streamsift.spark.stream.metrics import Trigger, metrics

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)


def shown(reading: Reading) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(live_table(reading, "matches", now=NOW))
    return capture.get()


def test_batches_add_up() -> None:
    watermark = (NOW - timedelta(hours=1, seconds=5)).isoformat()
    first, second = Trigger(0, 1000, 2, 0, 0, 40, 2048, 500, None), Trigger(1, 3000, 5, 1, 0, 40, 2048, 1500, None)
    third = Trigger(2, 2000, 1, 0, 3, 50, 4096, 500, watermark)
    reading = Reading().after([first, second]).after([]).after([first, second, third])
    assert summary(reading, "matches") == "3 micro-batches, 6,000 rows, 1 late, 3 without a usable time, 8 matches"
    frame = shown(reading)
    for text in ("6,000", "4,000", "50 rows, 4 KiB", "500 ms", "1:00:05", "Ctrl-C to stop"):
        assert text in frame


def test_before_the_first_batch() -> None:
    frame = shown(Reading())
    assert "lag" in frame
    assert "late" not in frame  # the column appears with the first late row
    assert summary(Reading(), "rows") == "0 micro-batches, 0 rows, 0 rows"


def test_state_between_counts_of_all_buckets() -> None:
    """Without data only the buckets with timers are called: what they change is added to what all had."""
    names = ("matches", "late", "bad_rows", "state_rows", "state_bytes", "state_rows_change", "state_bytes_change")

    latest = "2024-05-01T12:00:00.000Z"

    def progress(batch: int, rows: int, *values: int) -> dict[str, object]:
        observed = dict(zip((*names, "buckets", "all_buckets"), values, strict=True))
        return {
            "batchId": batch,
            "timestamp": "2024-05-01T12:00:00.500Z",
            "numInputRows": rows,
            "observedMetrics": {"streamsift": observed},
            "durationMs": {"triggerExecution": 7},
            "eventTime": {"watermark": "2024-05-01T12:00:00.000Z", "max": latest},
        }

    last = [
        progress(4, 0, 0, 0, 0, 5, 50, -2, -20, 1, 3),
        progress(5, 10, 1, 2, 0, 30, 300, 10, 100, 3, 3),
        progress(6, 0, 3, 0, 0, 4, 40, -6, -60, 2, 3),
        progress(6, 0, 3, 0, 0, 4, 40, -6, -60, 2, 3),
    ]
    found = metrics(SimpleNamespace(recentProgress=last))
    assert [t.state_rows for t in found.triggers] == [None, 30, 24]
    assert (found.matches, found.late, found.state_bytes, found.latency_ms) == (4, 2, 240, 7)
    assert [t.event_lag_ms for t in found.triggers] == [507] * 3
    assert (found.triggers[-1].arrival_ms, found.arrival_ms) == (None, None)
    arrived = progress(7, 1, *[1] * 9)
    arrived["observedMetrics"] |= {"streamsift_arrivals": {"first": NOW, "last": NOW}}  # type: ignore[operator]
    assert metrics(SimpleNamespace(recentProgress=[arrived])).arrival_ms == 507
    latest = "+144683-03-01T12:00:00.000Z"  # the code of a number
    assert metrics(SimpleNamespace(recentProgress=[progress(1, 1, *[1] * 9)])).triggers[0].event_lag_ms is None
    fields = [{"name": name} for name in (*names, "buckets", "all_buckets")]
    on_connect = {
        **progress(7, 0, *[1] * 9),
        "observedMetrics": {"streamsift": {"values": [1] * 9, "schema": {"fields": fields}}},
    }
    assert metrics(SimpleNamespace(recentProgress=[on_connect])).state_rows == 1
    nothing = metrics(SimpleNamespace(recentProgress=[]))
    assert (nothing.state_rows, nothing.latency_ms) == (None, None)
