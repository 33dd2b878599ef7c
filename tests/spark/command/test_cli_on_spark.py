"""The command line on Spark: the same result as in this process, in every format."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from kept_session import as_command_line
from run_command import command
from streamsift.command import demo, jobs

EVENTS = pa.table({"ts": [1, 2, 3, 4, None], "kind": ["A", "B", "A", "B", "A"], "id": [1, 1, 2, 1, 1]})


QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"
WORDS = ["run", QUERY, "--engine", "spark", "--time", "ts", "--type", "kind", "--input"]

Run = Callable[..., tuple[str, str, int]]


@pytest.fixture
def run(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run the command on the tests' own Spark, whose working directory is another one."""
    monkeypatch.setattr(jobs, "start_spark", lambda *_: as_command_line(spark))

    def run(*options: str) -> tuple[str, str, int]:
        code, out, error = command([*WORDS, str(tmp_path / "e.csv"), *options], capsys)
        return out, error, code

    return run


def test_run_starts_spark_itself(tmp_path: Path) -> None:
    pa.csv.write_csv(EVENTS, tmp_path / "e.csv")
    command = [sys.executable, "-m", "streamsift", *WORDS, "e.csv", "--format", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 3
    assert "BadInputError: 1 row" in done.stderr
    assert done.stderr.endswith("drop them with --bad-rows drop.\n")  # and no stack of Python or of the JVM
    assert "Traceback" not in done.stderr


def test_run(tmp_path: Path, run: Run) -> None:
    pa.csv.write_csv(EVENTS, tmp_path / "e.csv")
    drop = ("--bad-rows", "drop")
    out, error, code = run("--format", "json", *drop)
    assert (code, len(out.splitlines())) == (0, 2), error
    assert {json.loads(line)["match_end"] for line in out.splitlines()} == {2, 4}
    assert "dropped 1 row" in error
    assert "2 matches" in run(*drop)[0]
    out, error, _ = run("--limit", "1", "--plot", str(tmp_path / "shown.svg"), *drop)
    assert "the first match; there are more" in out or "the first 1 of 2 matches" in out, error
    assert "dropped 1 row" in error
    assert run("--limit", "1")[2] == 3  # bad rows are found, whatever the limit
    assert len(run("--limit", "1", "--format", "json", *drop)[0].splitlines()) == 1
    out_file = str(tmp_path / "out.parquet")
    assert run("--output", out_file, "--plot", str(tmp_path / "out.svg"), "--fail-on-empty", *drop)[2] == 0
    assert "<svg" in (tmp_path / "out.svg").read_text(encoding="utf-8")
    assert sorted(pa.parquet.read_table(out_file).column("match_end").to_pylist()) == [2, 4]


@pytest.mark.parametrize("zone", ["", "Z"])
def test_times_in_csv_are_read_alike_by_both_engines(tmp_path: Path, run: Run, zone: str) -> None:
    rows = f"2024-05-01T10:00:00{zone},A,1\n2024-05-01T10:00:02{zone},B,1\n"
    (tmp_path / "e.csv").write_text(f"ts,kind,id\n{rows}", encoding="utf-8")
    on_spark, error, code = run("--format", "json")
    assert code == 0, error
    assert on_spark == run("--format", "json", "--engine", "local")[0]


def test_empty_and_odd_fields_in_csv_are_read_alike_by_both_engines(tmp_path: Path, run: Run) -> None:
    rows = '1,A,1,,"",1.5\n2,B,1,NULL,n/a,NaN\n3,A,2,x,y,\n4,B,2," ",-,2.5\n'
    (tmp_path / "e.csv").write_text(f"ts,kind,id,note,other,x\n{rows}", encoding="utf-8")
    on_spark, error, code = run("--format", "json")
    assert code == 0, error
    first = json.loads(on_spark.splitlines()[0])
    assert (first["a"]["note"], first["a"]["other"], first["b"]["note"]) == (None, None, "NULL")
    assert sorted(on_spark.splitlines()) == sorted(run("--format", "json", "--engine", "local")[0].splitlines())


def test_a_file_of_another_format(tmp_path: Path, run: Run) -> None:
    (tmp_path / "e.csv").write_text("no Parquet", encoding="utf-8")
    _, error, code = run("--input-format", "parquet")
    assert code == 3
    assert "BadInputError: cannot read " in error
    assert "Traceback" not in error


def test_demo(spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "start_spark", lambda *_: as_command_line(spark))
    code, out, error = command(["demo", "--rows", "5000"], capsys)
    assert code == 0, error
    assert out.count("matches") >= 4
    assert "events/s" in out
