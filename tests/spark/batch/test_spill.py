"""Test that tables of bounded size with whole shards give the results of one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamsift as ss
from spark_check import shard_offsets
from streamsift.errors import BadInputError
from streamsift.physical import Plan
from streamsift.runtime import output_schema
from streamsift.spark.batch import memory
from streamsift.spark.batch import spill as task_tables
from streamsift.spark.batch.spill import tables
from streamsift.spark.batch.task import Task
from streamsift.spark.distribute.distribution import Distribution
from streamsift.spark.distribute.slices import Slices, slices

SHARDS = st.one_of(st.none(), st.integers(0, 5), st.integers(-(2**63), 2**63 - 1))


def rows_at(shards: list[int | None]) -> pa.Table:
    return pa.table(
        {"row": np.arange(len(shards)), "text": [f"{shard}" for shard in shards], "shard": pa.array(shards, pa.int64())}
    )


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(shards=st.lists(SHARDS, max_size=60), most_rows=st.integers(1, 20), at_a_time=st.integers(1, 9))
def test_every_row_once_and_every_shard_in_one_table(
    monkeypatch: pytest.MonkeyPatch, shards: list[int | None], most_rows: int, at_a_time: int
) -> None:
    monkeypatch.setattr(task_tables, "MAX_ROWS", most_rows)
    monkeypatch.setattr(task_tables, "_SPILLED_ROWS", at_a_time)
    table = rows_at(shards)
    found = list(tables(table.to_batches(max_chunksize=at_a_time), 2, [1]))
    assert all(each.num_rows for each in found)
    if found:
        together = pa.concat_tables(found).sort_by("row")
        assert together.equals(table.combine_chunks())
    seen = [{shard or 0 for shard in each.column("shard").to_pylist()} for each in found]
    assert sum(map(len, seen)) == len(set().union(*seen))
    # Only tables with one shard are larger. A table may have one more batch; a spilled batch has up to twice the rows.
    most = most_rows + 2 * at_a_time
    assert all(each.num_rows <= most or len(own) == 1 for each, own in zip(found, seen, strict=True))


def test_a_table_is_bounded_by_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_tables, "MAX_BYTES", 10_000)
    wide = rows_at(list(range(2_000))).set_column(1, "text", pa.array(["x" * 100] * 2_000))
    assert max(each.nbytes for each in tables(wide.to_batches(max_chunksize=10), 2, [])) < 20_000


def test_a_shard_that_does_not_fit_is_named_by_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_tables, "MAX_ROWS", 10)
    monkeypatch.setattr(task_tables, "_SPILLED_ROWS", 5)
    monkeypatch.setattr(memory, "free_bytes", lambda: 5_000)
    monkeypatch.setattr(memory, "_CHECKED_BYTES", 1)
    shards: list[int | None] = [*range(100), *[7] * 900]
    with pytest.raises(
        BadInputError, match=r"a task does not fit in memory: (\d+) events at once, \1 of them with key '7'"
    ):
        list(tables(rows_at(shards).to_batches(max_chunksize=5), 2, [1]))


def test_a_worker_without_memory_for_its_events_says_so() -> None:
    def arriving() -> Iterator[pa.RecordBatch]:
        yield from rows_at([1, 2, 3]).to_batches()
        raise MemoryError

    with pytest.raises(BadInputError, match="ran out of memory after 3 events"):
        list(tables(arriving(), 2, ()))


def test_files_are_where_spark_has_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(task_tables, "MAX_ROWS", 10)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "missing"))
    batches = rows_at(list(range(100))).to_batches(max_chunksize=5)
    with pytest.raises(FileNotFoundError, match="missing"):
        list(tables(batches, 2, [1]))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/other")
    assert sum(each.num_rows for each in tables(batches, 2, [1])) == 100
    assert not list(tmp_path.iterdir())


# --- results -------------------------------------------------------------------------------------------

CUT = [
    "PATTERN SEQ(A a, !C c, B b) WITHIN 6 RETURN a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, B+ b) WITHIN 4 RETURN a.t AS a, COUNT(b) AS b",
    "PATTERN SEQ(A a, B b) AGG COUNT, SUM(b.t) WITHIN 6",
    "PATTERN SEQ(A a, B b, !C c) AGG COUNT WITHIN 6",
    "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 6 UPDATE 5",
    "PATTERN SEQ(A a, B b) PREF MAX[b.t - a.t] WITHIN 6 UPDATE 2 RETURN TOP 2 a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, B b) PREF MAX[b.t - a.t] WITHIN 40 UPDATE 50 RETURN TOP 2 a.t AS a, b.t AS b",
]


def routed(events: pa.Table, how: Slices) -> Iterator[dict[str, object]]:
    """Assign shards in Python as the JVM does."""
    for row in events.to_pylist():
        own, low = int(row["t"] // how.length), int((row["t"] - how.after) // how.length)
        for shard in range(low, int((row["t"] + how.before) // how.length) + 1):
            yield {**row, "shard": shard, "offsets": shard_offsets(own, low, shard)}


def found_in_tables(plan: Plan, events: pa.Table) -> pa.Table:
    how = slices(plan)
    assert isinstance(how, Slices)
    events = events.select(plan.query.schema.names)
    schema = pa.schema([*events.schema, ("shard", pa.int64()), ("offsets", pa.int64())])
    copies = pa.Table.from_pylist(list(routed(events, how)), schema)
    task = Task(plan, Distribution((), how), "fail")
    parts = list(tables(copies.to_batches(max_chunksize=40), len(events.schema), ()))
    assert len(parts) > 1
    return pa.Table.from_batches((batch for part in parts for batch in task.results(part)), output_schema(plan.query))


@pytest.mark.parametrize("text", CUT)
def test_results_are_those_of_one_table(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(task_tables, "MAX_ROWS", 150)
    random = np.random.default_rng(4)
    kinds = pa.array(["A", "B", "C"]).take(pa.array(random.choice(3, 600, p=[0.5, 0.4, 0.1])))
    events = pa.table({"t": np.sort(random.integers(-2_000, 2_000, 600)), "kind": kinds})
    query = ss.query(text)
    found = found_in_tables(query.plan(events.schema, "t", "kind", None), events)
    expected = query.run_local(events, time="t", type="kind")
    assert expected.num_rows > 20
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
