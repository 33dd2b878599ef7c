"""Files that readers tend to disagree on have the same rows on Spark as in process, or the same error.

`make test` reads one file of each title, and the large profile all of them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from file_cases import CASES, FileCase
from streamsift.errors import BadInputError
from streamsift.runtime.input import read_table
from streamsift.spark.files.sources import read_events
from test_generated import LARGE

FIRST_OF_TITLE = list({case.title: case for case in reversed(CASES)}.values())


@pytest.mark.parametrize("case", CASES if LARGE else FIRST_OF_TITLE, ids=lambda case: case.title)
def test_spark_reads_what_the_local_engine_reads(utc: SparkSession, case: FileCase, tmp_path: Path) -> None:
    source = case.write(tmp_path)
    if case.rows is None:
        with pytest.raises(BadInputError, match=re.escape(case.error)):
            read_events(utc, source)
        return
    local, on_spark = read_table(source), read_events(utc, source).toArrow()
    assert sorted(on_spark.to_pylist(), key=str) == sorted(case.rows, key=str)
    assert on_spark.column_names == local.column_names
    if case.title != "Nested JSON numbers":  # Arrow and Spark name the items of lists differently
        assert on_spark.schema.types == local.schema.types
