"""`streamsift run --stream`: a directory that files are dropped into, twice with --once, then until Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import streamsift as ss
from kept_session import Kept
from run_command import command
from streamsift.command import stream_job
from streamsift.runtime.input.files import read_table

QUERY = "PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 5"
WORDS = ["run", QUERY, "--time", "t", "--type", "kind"]
PATIENCE_SECONDS = 240


def drop(folder: Path, name: str, rows: list[tuple[int, str, int]]) -> None:
    hidden = folder / f".{name}"
    hidden.write_text("t,kind,id\n" + "".join(f"{t},{kind},{key}\n" for t, kind, key in rows))
    hidden.rename(folder / "in" / f"{name}.csv")


def run(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    return command([*WORDS, "--input", str(folder / "in"), *options], capsys)


def written(path: Path) -> list[str]:
    return sorted(line for file in path.glob("*.txt") for line in file.read_text().splitlines())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    drop(tmp_path, "one", [(1, "A", 1), (2, "B", 1), (3, "A", 2), (4, "B", 2), (5, "C", 2)])
    return tmp_path


def test_two_runs_give_what_one_batch_gives(
    folder: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_job, "start_spark", lambda *_: Kept(spark))
    options = ("--stream", "--once", "--output", str(folder / "out.json"))
    code, _, error = run(folder, capsys, *options)
    assert code == 0, error
    assert "6 lines, 0 matches" in error
    drop(folder, "two", [(5, "A", 1), (6, "B", 1), (100, "X", 0)])
    code, _, error = run(folder, capsys, *options)
    assert code == 0, error
    batch = ss.query(QUERY).run_local(read_table(folder / "in"), time="t", type="kind")
    found = [json.loads(line) for line in written(folder / "out.json")]
    assert sorted((row["match_start"], row["match_end"]) for row in found) == sorted(
        zip(batch["match_start"].to_pylist(), batch["match_end"].to_pylist(), strict=True)
    )


def test_ctrl_c_ends_it_in_the_middle_of_a_micro_batch(folder: Path) -> None:
    """As a terminal does: all processes of the group are told. Whatever runs then is given up without a word of it."""
    drop(folder, "two", [(100, "X", 0)])
    words = [
        sys.executable,
        "-m",
        "streamsift",
        *WORDS,
        "--input",
        "in",
        "--stream",
        "--checkpoint",
        "checkpoint",
    ]
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as stream:
        assert stream.stdout is not None
        try:
            line = stream.stdout.readline()  # a match, as soon as the watermark has passed
            assert json.loads(line)["match_end"] == 2
            begun = len(list((folder / "checkpoint" / "offsets").glob("[0-9]*")))
            drop(folder, "three", [(101, "A", 0)])
            end = time.monotonic() + PATIENCE_SECONDS
            while len(list((folder / "checkpoint" / "offsets").glob("[0-9]*"))) == begun and time.monotonic() < end:
                time.sleep(0.01)
            os.killpg(stream.pid, signal.SIGINT)
            out, error = stream.communicate(timeout=PATIENCE_SECONDS)
        finally:
            stream.kill()
    assert (stream.returncode, out) == (0, "")
    reported = error[error.index(stream_job.STOPPING) :].splitlines()  # pyspark's workers report before
    assert reported[1] == "run the same command to resume from checkpoint"
    assert re.fullmatch(r"\d micro-batch(es)?, \d lines, [01] matches", reported[2])  # a committed micro-batch counts
    assert reported[3:] == []
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--once",), "require --stream"),
        (("--stream", "--engine", "local"), "requires Spark"),
        (("--stream", "--format", "csv"), "cannot write CSV"),
    ],
)
def test_options_that_do_not_go_together(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    code, _, error = run(folder, capsys, *options)
    assert code == 2
    assert message in error
