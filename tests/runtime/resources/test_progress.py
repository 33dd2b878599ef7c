"""A run reports its progress, and tracking it does not change the result."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import streamsift as ss
from streamsift.runtime.input.files import read_table
from streamsift.runtime.resources.progress import Progress, track_progress

EVENTS = pa.table({"t": np.arange(3_000)[::-1], "kind": np.array(list("ABC"))[np.arange(3_000) % 3]})


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b, C c)", "OR(SEQ(A a, B b, C c), SEQ(B f, C d, A e))"])
def test_a_search_reports_its_progress(pattern: str) -> None:
    query = ss.query(f"PATTERN {pattern} WITHIN 9")
    with track_progress() as tracker:
        rows = query.run_local(EVENTS, time="t", type="kind")
    assert tracker.counts() == (3_000, 3_000)
    assert rows == query.run_local(EVENTS, time="t", type="kind")


def test_each_pass_over_the_events_counts_in_part() -> None:
    tracker = Progress()
    reported = []
    for number in range(2):
        tracker.begin(number, 2)
        for done in (0, 50, 100):
            tracker.update(done, 100)
            reported.append(tracker.done)
    assert reported == [0, 25, 50, 50, 75, 100]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_reading_reports_the_number_of_rows(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"events.{suffix}"
    write = pyarrow.csv.write_csv if suffix == "csv" else pyarrow.parquet.write_table
    write(EVENTS, path)
    with track_progress() as tracker:
        table = read_table(path)
    assert table == read_table(path) == EVENTS
    assert tracker.done == 3_000
    assert 3_000 <= tracker.total <= 3_001  # the header of a CSV file may count as a line
