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

import streamsift as ss
from streamsift.runtime.sources import read_table

QUERY = "PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 5"
COMMAND = [sys.executable, "-m", "streamsift.cli", "run", QUERY, "--input", "in", "--time", "t", "--type", "kind"]
PATIENCE_SECONDS = 240


def drop(folder: Path, name: str, rows: list[tuple[int, str, int]]) -> None:
    hidden = folder / f".{name}"
    hidden.write_text("t,kind,id\n" + "".join(f"{t},{kind},{key}\n" for t, kind, key in rows))
    hidden.rename(folder / "in" / f"{name}.csv")


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *options], cwd=folder, capture_output=True, text=True, check=False)


def written(path: Path) -> list[str]:
    return sorted(line for file in path.glob("*.txt") for line in file.read_text().splitlines())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    drop(tmp_path, "one", [(1, "A", 1), (2, "B", 1), (3, "A", 2), (4, "B", 2), (5, "C", 2)])
    return tmp_path


def test_two_runs_give_what_one_batch_gives(folder: Path) -> None:
    options = ("--stream", "--once", "--output", "out.json")
    first = run(folder, *options)
    assert first.returncode == 0, first.stderr
    assert "5 rows, 0 matches" in first.stderr
    drop(folder, "two", [(5, "A", 1), (6, "B", 1), (100, "X", 0)])
    second = run(folder, *options)
    assert second.returncode == 0, second.stderr
    batch = ss.query(QUERY).run_local(read_table(folder / "in"), time="t", type="kind")
    found = [json.loads(line) for line in written(folder / "out.json")]
    assert sorted((row["match_start"], row["match_end"]) for row in found) == sorted(
        zip(batch["match_start"].to_pylist(), batch["match_end"].to_pylist(), strict=True)
    )
    assert "Traceback" not in first.stderr + second.stderr


def test_ctrl_c_ends_it(folder: Path) -> None:
    drop(folder, "two", [(100, "X", 0)])
    with subprocess.Popen(
        [*COMMAND, "--stream"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as stream:
        assert stream.stdout is not None
        try:
            line = stream.stdout.readline()  # a match, as soon as the watermark has passed
            assert json.loads(line)["match_end"] == 2
            time.sleep(1)
            os.kill(stream.pid, signal.SIGINT)
            out, error = stream.communicate(timeout=PATIENCE_SECONDS)
        finally:
            stream.kill()
    assert (stream.returncode, out) == (0, "")
    assert "interrupted" in error
    assert re.search(r"[01] matches", error)  # a micro-batch counts once it is committed, after its rows are shown
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--once",), "add --stream"),
        (("--stream", "--engine", "local"), "runs on Spark"),
        (("--stream", "--format", "csv"), "goes to files"),
    ],
)
def test_options_that_do_not_go_together(folder: Path, options: tuple[str, ...], message: str) -> None:
    done = run(folder, *options)
    assert done.returncode == 2
    assert message in done.stderr
