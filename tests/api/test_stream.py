"""Streams in process: what pushes return, what is late, what is saved, what is refused."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.runtime.stream import ManyEngine

SCHEMA = pa.schema({"t": pa.int64(), "kind": pa.string(), "x": pa.float64()})
Q = ss.query("PATTERN SEQ(A a, B b) WITHIN 10 RETURN a.t AS start, b.t AS end")
ROWS: list[dict[str, Any]] = [{"t": 1, "kind": "A", "x": 1.0}, {"t": 2, "kind": "B", "x": 2.0}]
LATER: list[dict[str, Any]] = [{"t": 9, "kind": "C", "x": None}]
MATCH = [{"start": 1, "end": 2}]


def opened(query: ss.Query = Q, schema: pa.Schema = SCHEMA, **options: Any) -> ss.Stream[pa.Table]:
    return query.open(schema, time="t", type="kind", **options)


# --- input -----------------------------------------------------------------------------------------------------------

TABLE = pa.Table.from_pylist(ROWS, SCHEMA)


class Exported:
    """A table of another library, such as a Polars DataFrame: string views, and the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.set_column(1, "kind", TABLE["kind"].cast(pa.string_view())).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "events",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        TABLE.to_pandas(),
        Exported(),
        ROWS,
        TABLE.append_column("unused", pa.array([1, 2])).select(["unused", "x", "kind", "t"]),
        TABLE.set_column(0, "t", pa.array([1, 2], pa.int16())),
    ],
    ids=["table", "batch", "reader", "pandas", "polars", "rows", "other columns", "other types"],
)
def test_what_can_be_pushed(events: Any) -> None:
    stream = opened()
    found = stream.push(events).to_pylist()
    assert found + stream.push(LATER).to_pylist() == MATCH
    assert stream.finish().num_rows == 0


def test_rows_may_omit_columns_that_are_null() -> None:
    stream = opened()
    stream.push([{"t": 1, "kind": "A"}])
    stream.push([{"t": 2, "kind": "B"}])
    assert stream.metrics.rows == 2


@pytest.mark.parametrize("events", [[], SCHEMA.empty_table()])
def test_an_empty_push(events: Any) -> None:
    stream = opened()
    assert stream.push(events).schema.names == ["start", "end"]
    assert stream.watermark is None


def test_pushes_that_do_not_fit_change_nothing() -> None:
    stream = opened()
    found = stream.push(ROWS).to_pylist()
    with pytest.raises(ss.BadInputError, match=r"no column `kind`\nHint: did you mean `kinds`\?"):
        stream.push(pa.table({"t": [3], "kinds": ["A"], "x": [1.0]}))
    with pytest.raises(ss.BadInputError, match=r"do not fit the schema[\s\S]*Hint: the query reads t int64"):
        stream.push([{"t": "soon", "kind": "A"}])
    with pytest.raises(TypeError, match=r"push\(\) takes a pyarrow or pandas table, not builtins.str"):
        stream.push("A")
    assert stream.metrics.rows == 2
    assert found + stream.finish().to_pylist() == MATCH


def test_bad_rows() -> None:
    bad = [{"t": None, "kind": "A"}, {"t": 3, "kind": "B"}]
    stream = opened()
    found = stream.push(ROWS).to_pylist()
    with pytest.raises(ss.BadInputError, match=r'1 row has no usable time[\s\S]*bad_rows="drop"'):
        stream.push(bad)
    assert found + stream.finish().to_pylist() == MATCH
    dropping = opened(bad_rows="drop")
    first = dropping.push([*ROWS, *bad])
    assert dropping.metrics.bad_rows == 1
    assert first.num_rows + dropping.finish().num_rows == 2
    with pytest.raises(ss.QueryError, match="invalid value for bad_rows"):
        opened(bad_rows="ignore")


# --- time ------------------------------------------------------------------------------------------------------------


def test_late_is_before_the_watermark_of_earlier_pushes() -> None:
    stream = opened(lateness=3)
    stream.push([{"t": 10, "kind": "A"}, {"t": 2, "kind": "A"}])  # not late to one another
    assert stream.watermark == 7
    found = stream.push([{"t": 6, "kind": "A"}, {"t": 7, "kind": "A"}, {"t": 12, "kind": "B"}])
    assert stream.metrics.late == 1
    assert stream.watermark == 9
    assert sorted(row["start"] for row in found.to_pylist()) == [2, 7, 10]


def test_the_watermark_never_moves_back() -> None:
    stream = opened(lateness=2)
    stream.push([{"t": 20, "kind": "A"}])
    stream.push([{"t": 19, "kind": "A"}])
    stream.advance(5)
    assert stream.watermark == 18


def test_events_at_the_time_of_advance_are_not_late() -> None:
    stream = opened()
    stream.advance(5)
    stream.push([{"t": 5, "kind": "A"}, {"t": 4, "kind": "A"}])
    assert stream.metrics.late == 1
    assert stream.watermark == 5


def test_advance_releases_what_waits_for_the_end_of_a_window() -> None:
    stream = opened(ss.query("PATTERN SEQ(A a, !B b) WITHIN 10"))
    stream.push([{"t": 1, "kind": "A"}])
    assert stream.advance(11).num_rows == 0  # an event at 11 could still come, and forbid
    assert stream.advance(12).num_rows == 1
    assert stream.finish().num_rows == 0


UTC_TIME = pa.timestamp("us", "UTC")
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "watermark"),
    [
        (pa.int32(), 7, 7),
        (pa.int32(), 6.5, 7),
        (pa.int64(), np.int64(7), 7),
        (pa.uint64(), 7, 7),
        (pa.float64(), 0.1, 0.1),
        (pa.float32(), 2, 2.0),
        (pa.decimal128(10, 2), Decimal("0.015"), Decimal("0.02")),
        (UTC_TIME, NOON, NOON),
        (UTC_TIME, "2024-05-01T14:00:00+02:00", NOON),
        (UTC_TIME, "2024-05-01 12:00", NOON),
        (pa.timestamp("s", "UTC"), NOON.replace(microsecond=1), NOON.replace(second=1)),
        (UTC_TIME, pd.Timestamp(NOON), NOON),
        (pa.timestamp("ms"), np.datetime64("2024-05-01T12:00"), NOON.replace(tzinfo=None)),
        (pa.timestamp("us"), date(2024, 5, 1), datetime(2024, 5, 1)),
        (pa.date32(), NOON.replace(tzinfo=None), date(2024, 5, 2)),
        (pa.date32(), date(2024, 5, 1), date(2024, 5, 1)),
        (pa.string(), "2024-05-01 12:00", NOON),
    ],
    ids=str,
)
def test_times_of_advance(kind: pa.DataType, value: Any, watermark: Any) -> None:
    stream = opened(ss.query("PATTERN SEQ(A a, B b) WITHIN 10"), pa.schema({"t": kind, "kind": pa.string()}))
    stream.advance(value)
    assert stream.watermark == watermark


@pytest.mark.parametrize(
    ("kind", "value", "hint"),
    [
        (pa.int64(), NOON, "pass a number"),
        (pa.int64(), "7", "pass a number"),
        (pa.int64(), None, "pass a number"),
        (pa.float64(), float("nan"), "pass a number"),
        (pa.int64(), True, "pass a number"),
        (UTC_TIME, 7, "pass a datetime"),
        (UTC_TIME, "noon", "ISO-8601"),
        (UTC_TIME, NOON.replace(tzinfo=None), "pass a time with a zone"),
        (pa.timestamp("us"), NOON, "pass a time without a zone"),
        (UTC_TIME, pd.NaT, "pass a datetime"),
    ],
    ids=str,
)
def test_unusable_times_of_advance(kind: pa.DataType, value: Any, hint: str) -> None:
    stream = opened(ss.query("PATTERN SEQ(A a, B b) WITHIN 10"), pa.schema({"t": kind, "kind": pa.string()}))
    with pytest.raises(ss.QueryError, match=hint):
        stream.advance(value)
    stream.push([])  # the stream can be used


@pytest.mark.parametrize(
    ("kind", "lateness", "times", "watermark"),
    [
        (UTC_TIME, "10 s", [NOON], NOON.replace(hour=11, minute=59, second=50)),
        (pa.date32(), "12 hours", [date(2024, 5, 2)], date(2024, 5, 2)),  # an event of 1 May is late
        (pa.float64(), 0.1, [0.3], 0.2),  # exactly; the double 0.3 - 0.1 is less
        (pa.decimal128(10, 2), 0.5, [Decimal("2.25")], Decimal("1.75")),
        (pa.float64(), 1, [float("inf")], float("inf")),
        (pa.float64(), 1, [float("-inf")], None),
        (pa.int64(), 1, [-(2**63)], None),
        (pa.int64(), 0, [2**63 - 1], 2**63 - 1),
    ],
    ids=str,
)
def test_lateness(kind: pa.DataType, lateness: Any, times: list[Any], watermark: Any) -> None:
    schema = pa.schema({"t": kind, "kind": pa.string()})
    stream = opened(ss.query("PATTERN SEQ(A a, B b) WITHIN 10"), schema, lateness=lateness)
    stream.push([{"t": time, "kind": "A"} for time in times])
    assert stream.watermark == watermark


def test_unusable_lateness() -> None:
    with pytest.raises(ss.QueryError, match="lateness='10 s' has a unit"):
        opened(lateness="10 s")


# --- several queries, counts -----------------------------------------------------------------------------------------


def test_many_queries_return_a_dict() -> None:
    queries = {"pairs": Q, "totals": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 10"}
    stream = ss.open_many(queries, SCHEMA, time="t", type="kind")
    assert {name: rows.num_rows for name, rows in stream.push(SCHEMA.empty_table()).items()} == {
        "pairs": 0,
        "totals": 0,
    }
    first, last = stream.push(ROWS), stream.finish()
    assert first["pairs"].to_pylist() + last["pairs"].to_pylist() == MATCH
    assert first["totals"].to_pylist() + last["totals"].to_pylist() == [{"time": 2, "count": 1}]
    with pytest.raises(ss.QueryError, match="there are no queries"):
        ss.open_many({}, SCHEMA, time="t")


def test_results_have_the_schema_of_a_batch() -> None:
    expected = Q.run_local(TABLE, time="t", type="kind")
    stream = opened()
    for result in (stream.push(ROWS), stream.push(LATER), stream.finish()):
        assert result.schema.equals(expected.schema, check_metadata=True)


def test_metrics() -> None:
    stream = opened()
    assert stream.metrics == ss.StreamMetrics(0, 0, 0, 0, 0, 0, stream.metrics.state_bytes, None, None)
    stream.push(ROWS)
    stream.push([*LATER, {"t": 1, "kind": "A"}])
    metrics = ss.metrics(stream)
    assert isinstance(metrics, ss.StreamMetrics)
    assert (metrics.pushes, metrics.rows, metrics.matches, metrics.late) == (2, 4, 1, 1)
    assert metrics.state_rows == 2  # no query has the class C
    assert metrics.state_bytes > 0
    assert metrics.latency_ms is not None
    assert metrics.latency_ms > 0


def test_a_query_that_cannot_run_on_a_stream_is_refused() -> None:
    with pytest.raises(ss.QueryError, match="detection on a stream requires WITHIN"):
        opened(ss.query("PATTERN SEQ(A a, B b)"))


def test_the_memory_limit_is_checked_before_anything_changes() -> None:
    stream = opened(memory_limit="100 KB")
    found = stream.push(ROWS).to_pylist()
    with pytest.raises(ss.MemoryLimitExceeded, match="for the state and the new events"):
        stream.push(pa.table({"t": range(10_000), "kind": ["A"] * 10_000, "x": [0.0] * 10_000}))
    assert found + stream.finish().to_pylist() == MATCH


# --- the end, failures, threads --------------------------------------------------------------------------------------


def test_a_finished_stream_cannot_be_used(tmp_path: Path) -> None:
    stream = opened()
    stream.finish()
    for call in (
        lambda: stream.push(ROWS),
        lambda: stream.advance(3),
        stream.finish,
        lambda: stream.save(tmp_path / "s"),
    ):
        with pytest.raises(
            ss.StreamsiftError, match=r"is not possible: the stream is finished\nHint: open a new stream"
        ):
            call()


def test_a_stream_that_failed_in_the_engine_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = opened()
    stream.push(ROWS)

    def failing(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ManyEngine, "advance", failing)
    with pytest.raises(ZeroDivisionError):
        stream.push(LATER)
    monkeypatch.undo()
    with pytest.raises(ss.StreamsiftError, match=r"failed with ZeroDivisionError in the middle of push\(\)"):
        stream.push(LATER)


def test_a_call_during_another_call_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, inside, go_on = opened(), threading.Event(), threading.Event()
    found: list[pa.Table] = []
    push = ManyEngine.push

    def waiting(*arguments: Any) -> None:
        inside.set()
        go_on.wait(10)
        push(*arguments)

    monkeypatch.setattr(ManyEngine, "push", waiting)
    thread = threading.Thread(target=lambda: found.append(stream.push(ROWS)))
    thread.start()
    assert inside.wait(10)
    with pytest.raises(ss.StreamsiftError, match=r"advance\(\) was called during push\(\) of the same stream\nHint"):
        stream.advance(5)
    go_on.set()
    thread.join()
    assert found[0].to_pylist() == MATCH


def test_asyncio() -> None:
    async def consume() -> list[dict[str, Any]]:
        stream, found = opened(), []
        for batch in (ROWS, LATER):
            found += (await asyncio.to_thread(stream.push, batch)).to_pylist()
        return found + (await asyncio.to_thread(stream.finish)).to_pylist()

    assert asyncio.run(consume()) == MATCH


# --- saving ----------------------------------------------------------------------------------------------------------


def test_a_resumed_stream_continues(tmp_path: Path) -> None:
    stream, path = opened(lateness=1), tmp_path / "stream.state"
    stream.push([*ROWS, {"t": 0, "kind": "A"}])
    stream.save(path, offsets={"events-0": 3})
    resumed = ss.resume(path)
    assert resumed.offsets == stream.offsets == {"events-0": 3}
    assert resumed.watermark == stream.watermark == 1
    assert resumed.metrics.rows == 3
    for each in (stream, resumed):
        each.push([{"t": 0, "kind": "A"}, {"t": 5, "kind": "B"}])
        assert each.metrics.late == 1
    one, other = (sorted(map(str, each.finish().to_pylist())) for each in (stream, resumed))
    assert one == other
    assert list(tmp_path.iterdir()) == [path]


def test_options_and_several_queries_are_saved(tmp_path: Path) -> None:
    stream = ss.open_many({"one": Q, "two": Q}, SCHEMA, time="t", type="kind", bad_rows="drop", plan="left")
    stream.push(ROWS)
    stream.save(tmp_path / "state")
    resumed = ss.resume(tmp_path / "state", memory_limit="1 GB")
    resumed.push([{"t": None, "kind": "A"}])
    assert resumed.metrics.bad_rows == 1
    assert resumed.offsets is None
    assert sorted(resumed.finish()) == ["one", "two"]


def test_saves_after_each_event_stay_small(tmp_path: Path) -> None:
    stream, path = opened(ss.query("PATTERN SEQ(A a, B b) WITHIN 100000 AGG COUNT")), tmp_path / "state"
    for number in range(200):
        stream.push([{"t": number, "kind": "A"}])
        stream.save(path, number)
    assert path.stat().st_size < 20_000
    for _ in range(3):
        stream = ss.resume(path)
        stream.push([{"t": 200, "kind": "A"}])
        stream.save(path)
    stream.push([{"t": 300, "kind": "B"}])
    assert stream.finish()["count"].to_pylist()[-1] == 203


def test_state_that_expired_is_not_saved(tmp_path: Path) -> None:
    stream, sizes = opened(), []
    for number in range(300):
        stream.push([{"t": 3 * number, "kind": "A"}])
        stream.save(tmp_path / "state")
        sizes.append((tmp_path / "state").stat().st_size)
    assert max(sizes[150:]) < 2 * max(sizes[:20])


def test_a_save_that_fails_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, path = opened(), tmp_path / "state"
    stream.push(ROWS)
    stream.save(path, 1)

    def failing(*_: Any) -> None:
        raise OSError("disk full")

    stream.push(LATER)
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", failing)
        with pytest.raises(OSError, match="disk full"):
            stream.save(path, 2)
    assert list(tmp_path.iterdir()) == [path]
    resumed = ss.resume(path)
    assert resumed.offsets == stream.offsets == 1
    assert resumed.push([{"t": 3, "kind": "B"}]).to_pylist() == [{"start": 1, "end": 3}]
    stream.save(path, 2)
    assert ss.resume(path).metrics.matches == 1


@pytest.mark.parametrize("offsets", [{0: 5}, (1, 2), {1, 2}, float("nan"), b"x", object()], ids=str)
def test_offsets_must_come_back_as_they_are(offsets: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="offsets must be a JSON value"):
        opened().save(tmp_path / "state", offsets)


def test_files_that_are_no_saved_streams(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with pytest.raises(FileNotFoundError):
        ss.resume(path)
    path.write_bytes(b"t,kind\n1,A\n")
    with pytest.raises(ss.BadInputError, match="is not a stream saved by"):
        ss.resume(path)
    stream = opened()
    stream.push(ROWS)
    stream.save(path)
    content = path.read_bytes()
    for damaged in (content[:-10], content[:30], content.replace(b"SEQ", b"AND")):
        path.write_bytes(damaged)
        with pytest.raises(ss.BadInputError, match="is damaged"):
            ss.resume(path)
