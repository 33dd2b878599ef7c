"""Whoever watches work is told how far it has come; the result is the same."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import streamsift as ss
from streamsift.runtime.input.files import read_table
from streamsift.runtime.resources.progress import Watch, watching

EVENTS = pa.table({"t": np.arange(3_000)[::-1], "kind": np.array(list("ABC"))[np.arange(3_000) % 3]})


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b, C c)", "OR(SEQ(A a, B b, C c), SEQ(B f, C d, A e))"])
def test_a_search_tells_how_far_it_has_come(pattern: str) -> None:
    query = ss.query(f"PATTERN {pattern} WITHIN 9")
    with watching() as watch:
        found = query.run_local(EVENTS, time="t", type="kind")
    assert watch.counts() == (3_000, 3_000)
    assert found == query.run_local(EVENTS, time="t", type="kind")


def test_passes_over_the_events_are_parts_of_the_whole() -> None:
    watch = Watch()
    told = []
    for number in range(2):
        watch.begin(number, 2)
        for done in (0, 50, 100):
            watch.reached(done, 100)
            told.append(watch.done)
    assert told == [0, 25, 50, 50, 75, 100]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_reading_tells_how_many_rows_there_are(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"events.{suffix}"
    write = pyarrow.csv.write_csv if suffix == "csv" else pyarrow.parquet.write_table
    write(EVENTS, path)
    with watching() as watch:
        table = read_table(path)
    assert table == read_table(path) == EVENTS
    assert watch.done == 3_000
    assert 3_000 <= watch.total <= 3_001  # the header of a CSV file is a line, too
