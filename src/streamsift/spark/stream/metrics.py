"""Report what the last triggers of a streaming query did: matches, late rows, state, latency."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from streamsift.spark.files import ARRIVALS

METRICS = "streamsift"  # the name of the observed metrics in a query's progress


@dataclass(frozen=True, slots=True)
class Trigger:
    """One micro-batch."""

    batch: int
    rows: int  # read from the source
    matches: int  # result rows that were appended
    late: int  # events before the watermark, dropped
    bad_rows: int  # rows without a usable time or order, dropped
    state_rows: int | None  # after the micro-batch; None if Spark no longer has the progress from which to count
    state_bytes: int | None
    latency_ms: int
    watermark: str | None  # a timestamp, as Spark shows it; for numeric times, a code
    event_lag_ms: int | None = None  # from the greatest event time to the end of the trigger; None for numeric times
    arrival_ms: int | None = None  # from the first append of a record to the end of the trigger; None but for topics


@dataclass(frozen=True, slots=True)
class Metrics:
    """The triggers that Spark keeps (spark.sql.streaming.numRecentProgressUpdates), oldest first."""

    triggers: tuple[Trigger, ...]

    @property
    def rows(self) -> int:
        return sum(trigger.rows for trigger in self.triggers)

    @property
    def matches(self) -> int:
        return sum(trigger.matches for trigger in self.triggers)

    @property
    def late(self) -> int:
        return sum(trigger.late for trigger in self.triggers)

    @property
    def bad_rows(self) -> int:
        return sum(trigger.bad_rows for trigger in self.triggers)

    @property
    def state_rows(self) -> int | None:
        return self.triggers[-1].state_rows if self.triggers else None

    @property
    def state_bytes(self) -> int | None:
        return self.triggers[-1].state_bytes if self.triggers else None

    @property
    def latency_ms(self) -> float | None:
        """Return the mean latency of the triggers."""
        return sum(t.latency_ms for t in self.triggers) / len(self.triggers) if self.triggers else None

    @property
    def arrival_ms(self) -> int | None:
        """Return the greatest time from the append of a record to the end of its trigger."""
        return max((t.arrival_ms for t in self.triggers if t.arrival_ms is not None), default=None)

    def __str__(self) -> str:
        heads = tuple(field.name.replace("_", " ") for field in fields(Trigger) if field.name != "watermark")
        shown = [tuple(getattr(trigger, head.replace(" ", "_")) for head in heads) for trigger in self.triggers]
        lines = [["-" if value is None else str(value) for value in values] for values in shown]
        widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in [list(heads), *lines])


def metrics(query: Any) -> Metrics:
    """Report what the last triggers of a pyspark StreamingQuery did."""
    return Metrics(tuple(_triggers(query.recentProgress)))


def _by_name(observed: Any) -> dict[str, int]:
    """Return observed metrics by name. Spark Connect gives a row with values and schema instead of a row by name."""
    if observed is None:
        return {}
    by_name = dict(observed) if isinstance(observed, dict) else observed.asDict()
    if by_name.keys() == {"values", "schema"}:
        return dict(zip((field["name"] for field in by_name["schema"]["fields"]), by_name["values"], strict=True))
    return by_name


def _since(earlier: Any, started: str, took_ms: int) -> int | None:
    """Return the milliseconds from a time to the end of a trigger."""
    if isinstance(earlier, datetime):  # in the zone of this process
        before = earlier.astimezone()
    elif isinstance(earlier, str) and re.match(r"\d{4}-", earlier):  # codes of numbers are in years of six digits
        before = datetime.fromisoformat(earlier)
    else:
        return None
    return round((datetime.fromisoformat(started) - before).total_seconds() * 1000) + took_ms


def _triggers(progress: Any) -> Iterator[Trigger]:
    state: tuple[int, int] | tuple[None, None] = None, None
    last = -1
    for each in progress:
        observed = _by_name(each["observedMetrics"].get(METRICS))
        if not observed or each["batchId"] == last:  # Spark repeats the last batch when it is idle
            continue
        last = each["batchId"]
        if observed["buckets"] == observed["all_buckets"]:
            state = observed["state_rows"], observed["state_bytes"]
        elif state[0] is not None:
            state = state[0] + observed["state_rows_change"], state[1] + observed["state_bytes_change"]
        started, took = each["timestamp"], each["durationMs"].get("triggerExecution", 0)
        times, arrivals = each["eventTime"] or {}, _by_name(each["observedMetrics"].get(ARRIVALS))
        yield Trigger(
            batch=last,
            rows=each["numInputRows"],
            matches=observed["matches"],
            late=observed["late"],
            bad_rows=observed["bad_rows"],
            state_rows=state[0],
            state_bytes=state[1],
            latency_ms=took,
            watermark=times.get("watermark"),
            event_lag_ms=_since(times.get("max"), started, took),
            arrival_ms=_since(arrivals.get("first"), started, took),
        )
