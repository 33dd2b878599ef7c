"""Test the error of a task that does not fit in memory: it names the key and the number of events."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from streamsift.errors import BadInputError
from streamsift.spark.batch import memory


def batches() -> list[pa.RecordBatch]:
    keys = ["busy"] * 70 + ["b", "c", "d"] * 10
    return pa.table({"t": range(100), "key": keys, "id": [1] * 100}).to_batches(max_chunksize=10)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 5_000)
    monkeypatch.setattr(memory, "_CHECKED_BYTES", 1)


def test_tasks_that_fit_are_one_table() -> None:
    found = memory.gathered(batches(), [1])
    assert found.num_rows == 100


def test_a_task_that_does_not_fit_fails_before_all_rows_arrive(little_memory: None) -> None:
    with pytest.raises(
        BadInputError, match=r"memory: \d0 events at once, \d0 of them with key 'busy', 1; 0.0 GB available"
    ):
        memory.gathered(batches(), [1, 2])
    with pytest.raises(BadInputError, match=r"memory: \d0 events at once; 0.0 GB available") as caught:
        memory.gathered(batches(), [])
    assert "Hint: add WITHIN, or a predicate" in str(caught.value)


def test_the_engine_running_out_of_memory_is_reported() -> None:
    def fails() -> Iterator[pa.RecordBatch]:
        yield batches()[0]
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    results = memory.reported_if_too_large(fails(), pa.Table.from_batches(batches()), [1])
    assert next(results).num_rows == 10
    with pytest.raises(BadInputError, match="100 events at once, 70 of them with key 'busy'; no memory available"):
        next(results)


def test_the_system_is_asked() -> None:
    free = memory.free_bytes()
    assert free is None or free > 0


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
import numpy as np
import pyarrow as pa
import streamsift as ss
from streamsift.spark.batch.memory import reported_if_too_large
from streamsift.spark.distribute import Distribution
from streamsift.spark.batch.spill import tables
from streamsift.spark.batch.task import Task

def batches(count):
    for n in range(count):
        time = np.arange(n << 16, (n + 1) << 16)
        key = np.where(time % 4, 7, time)  # three in four have key 7
        kind = pa.array(["A", "B"]).take(pa.array(time % 2))
        yield pa.record_batch([pa.array(time), kind, pa.array(key), pa.array(key)], ["t", "kind", "key", "shard"])

plan = ss.query("PATTERN SEQ(A a, B b) WHERE [key] AND a.t = b.t - 1 RETURN a.t").plan(
    pa.schema({"t": pa.int64(), "kind": pa.string(), "key": pa.int64()}), "t", "kind", None)
task = Task(plan, Distribution(("key",)), "fail")
found = 0
for table in tables(batches(int(sys.argv[1])), 3, [2]):
    for batch in reported_if_too_large(task.results(table), table, [2]):
        found += batch.num_rows
print(found)
"""


def limited(count: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"import sys\n{LIMITED}", str(count)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_a_key_that_does_not_fit_in_two_gigabytes_is_reported() -> None:
    enough = limited(64)  # 4 million events, 3 million of them with one key
    assert enough.stdout.strip() == str((64 << 16) // 4), enough.stderr
    large = limited(600)
    assert large.returncode == 1, large
    assert "BadInputError: a task does not fit in memory: " in large.stderr, large.stderr
    assert "of them with key 7; " in large.stderr, large.stderr
