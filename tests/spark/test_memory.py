"""A task that does not fit says so, with the key and the number of events; workers are not killed without a word."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from streamsift.errors import BadInputError
from streamsift.spark import memory


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


def test_what_does_not_fit_is_told_before_it_has_all_come(little_memory: None) -> None:
    with pytest.raises(
        BadInputError, match=r"One task has \d0 events at once, \d0 of them of the key 'busy', 1, and 0.0 GB"
    ):
        memory.gathered(batches(), [1, 2])
    with pytest.raises(BadInputError, match=r"One task has \d0 events at once, and 0.0 GB of memory are left") as told:
        memory.gathered(batches(), [])
    assert "WITHIN, or a column that all events of a match share" in str(told.value)


def test_want_of_memory_in_the_engine_is_told() -> None:
    def fails() -> Iterator[pa.RecordBatch]:
        yield batches()[0]
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    results = memory.told_if_too_large(fails(), pa.Table.from_batches(batches()), [1])
    assert next(results).num_rows == 10
    with pytest.raises(
        BadInputError, match="100 events at once, 70 of them of the key 'busy', and there is no more memory"
    ):
        next(results)


def test_the_system_is_asked() -> None:
    free = memory.free_bytes()
    assert free is None or free > 0
