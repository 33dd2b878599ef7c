"""The command line on Spark: the same result as in this process, in every format."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

EVENTS = pa.table({"ts": [1, 2, 3, 4, None], "kind": ["A", "B", "A", "B", "A"], "id": [1, 1, 2, 1, 1]})


def run(folder: Path, *arguments: str) -> tuple[str, str, int]:
    query = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"
    command = [
        sys.executable,
        "-m",
        "streamsift",
        "run",
        query,
        "--input",
        "e.csv",
        "--time",
        "ts",
        "--type",
        "kind",
        *arguments,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)
    return done.stdout, done.stderr, done.returncode


def test_run(tmp_path: Path) -> None:
    pa.csv.write_csv(EVENTS, tmp_path / "e.csv")
    out, error, code = run(tmp_path, "--format", "json")
    assert code == 3
    assert "BadInputError: 1 row" in error
    assert error.endswith("leave them out with --bad-rows drop.\n")  # and no stack of Python or of the JVM
    assert "Traceback" not in error
    drop = ("--bad-rows", "drop")
    out, error, code = run(tmp_path, "--format", "json", *drop)
    assert (code, len(out.splitlines())) == (0, 2), error
    assert {json.loads(line)["match_end"] for line in out.splitlines()} == {2, 4}
    assert "dropped 1 row" in error
    assert "2 matches" in run(tmp_path, *drop)[0]
    out, error, _ = run(tmp_path, "--limit", "1", "--plot", "shown.svg", *drop)
    assert "the first match; there are more" in out or "the first 1 of 2 matches" in out, error
    assert "dropped 1 row" in error
    assert run(tmp_path, "--limit", "1")[2] == 3  # bad rows are found, whatever the limit
    assert len(run(tmp_path, "--limit", "1", "--format", "json", *drop)[0].splitlines()) == 1
    assert run(tmp_path, "--output", "out.parquet", "--plot", "out.svg", "--fail-on-empty", *drop)[2] == 0
    assert "<svg" in (tmp_path / "out.svg").read_text(encoding="utf-8")
    assert sorted(pa.parquet.read_table(tmp_path / "out.parquet").column("match_end").to_pylist()) == [2, 4]


@pytest.mark.parametrize("zone", ["", "Z"])
def test_times_in_csv_are_read_alike_by_both_engines(tmp_path: Path, zone: str) -> None:
    rows = f"2024-05-01T10:00:00{zone},A,1\n2024-05-01T10:00:02{zone},B,1\n"
    (tmp_path / "e.csv").write_text(f"ts,kind,id\n{rows}", encoding="utf-8")
    on_spark, error, code = run(tmp_path, "--format", "json")
    assert code == 0, error
    assert on_spark == run(tmp_path, "--format", "json", "--engine", "local")[0]


def test_empty_and_odd_fields_in_csv_are_read_alike_by_both_engines(tmp_path: Path) -> None:
    rows = '1,A,1,,"",1.5\n2,B,1,NULL,n/a,NaN\n3,A,2,x,y,\n4,B,2," ",-,2.5\n'
    (tmp_path / "e.csv").write_text(f"ts,kind,id,note,other,x\n{rows}", encoding="utf-8")
    on_spark, error, code = run(tmp_path, "--format", "json")
    assert code == 0, error
    first = json.loads(on_spark.splitlines()[0])
    assert (first["a"]["note"], first["a"]["other"], first["b"]["note"]) == (None, None, "NULL")
    assert sorted(on_spark.splitlines()) == sorted(
        run(tmp_path, "--format", "json", "--engine", "local")[0].splitlines()
    )


def test_a_file_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("no Parquet", encoding="utf-8")
    _, error, code = run(tmp_path, "--input-format", "parquet")
    assert code == 3
    assert "BadInputError: e.csv cannot be read as parquet" in error
    assert "Traceback" not in error


def test_demo(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamsift", "demo", "--rows", "5000"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("matches") >= 4
    assert "events/s" in done.stdout
