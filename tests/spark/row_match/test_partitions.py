"""Test that sorted batches become tables of whole partitions, and that a large partition is named."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from streamsift.errors import BadInputError
from streamsift.spark.row_match import partitions
from streamsift.spark.row_match.partitions import Partitions


def batches(keys: list[object], size: int) -> Iterator[pa.RecordBatch]:
    table = pa.table({"k": keys, "n": range(len(keys))})
    yield from table.to_batches(max_chunksize=size)


@pytest.mark.parametrize("seed", range(30))
def test_a_partition_is_in_one_table(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    values = [None, -0.0, 1.0, float("nan"), 2.5, 7.0] if seed % 2 else [None, *"abcdefgh"]
    keys = [key for key in values for _ in range(int(random.integers(0, 9)))]
    monkeypatch.setattr(partitions, "TABLE_ROWS", int(random.integers(1, 9)))
    tables = list(Partitions(("k",), None).tables(batches(keys, int(random.integers(1, 7)))))
    assert [n for table in tables for n in table.column("n").to_pylist()] == list(range(len(keys)))
    homes: dict[str, set[int]] = {}
    for number, table in enumerate(tables):
        for key in table.column("k").to_pylist():
            homes.setdefault(str(key), set()).add(number)
    assert all(len(home) == 1 for home in homes.values())
    assert all(table.num_rows for table in tables)
    if len(homes) > 3 and partitions.TABLE_ROWS == 1:
        assert len(tables) > 1


def test_without_keys_all_rows_are_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "TABLE_ROWS", 2)
    (table,) = Partitions((), None).tables(batches([1, 2, 3, 4, 5], 2))
    assert table.num_rows == 5


def test_names_a_partition_that_is_too_large() -> None:
    rows = batches(["a"] * 3 + ["b"] * 1000 + ["c"], 100)
    with pytest.raises(BadInputError, match=r"the partition k = 'b' is too large: more than .* max_partition_bytes"):
        list(Partitions(("k",), 5000).tables(rows))
    assert len(list(Partitions(("k",), 50_000).tables(batches(["a"] * 3 + ["b"] * 1000 + ["c"], 100)))) == 1
    with pytest.raises(BadInputError, match="the only partition is too large"):
        list(Partitions((), 5000).tables(batches(["a"] * 1000, 100)))
