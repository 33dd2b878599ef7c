"""The command line with the local engine: every command, format and error as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from run_command import command
from streamsift.view.tables import cell_text

Shell = Callable[..., tuple[str, str]]

EVENTS = pa.table(
    {"ts": [1, 2, 3, 4], "kind": ["A", "B", "A", "B"], "id": [1, 1, 2, 1], "note": ["ü", None, 'say "x"', ""]}
)
QUERY = "PATTERN SEQ(A a, B b) -- pairs\nWHERE [id] WITHIN 5\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.txt").write_text(QUERY, encoding="utf-8")
    pa.csv.write_csv(EVENTS, tmp_path / "e.csv")
    pa.parquet.write_table(EVENTS, tmp_path / "e.parquet")
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in EVENTS.to_pylist()), encoding="utf-8")
    (tmp_path / "headers.csv").write_text("ts,kind,id,note\n", encoding="utf-8")
    (tmp_path / "bad.csv").write_text("ts,kind,id\n1,A,1\n,A,1\n2,B,1\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def shell(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run a command in the folder; return what it prints on stdout and stderr."""
    monkeypatch.chdir(folder)

    def call(*arguments: str, code: int = 0) -> tuple[str, str]:
        ended, out, error = command([*arguments], capsys)
        assert ended == code, out + error
        return out, error

    return call


def run(shell: Shell, *arguments: str, code: int = 0) -> tuple[str, str]:
    return shell("run", "q.txt", "--time", "ts", "--type", "kind", "--engine", "local", *arguments, code=code)


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.parquet"])
def test_json_lines(shell: Shell, name: str) -> None:
    out, _ = run(shell, "--input", name, "--format", "json")
    matches = [json.loads(line) for line in out.splitlines()]
    assert [(m["a"]["ts"], m["b"]["ts"], m["match_end"]) for m in matches] == [(1, 2, 2), (1, 4, 4)]
    assert list(matches[0]) == ["a", "b", "match_start", "match_end"]
    assert matches[0]["a"]["note"] == "ü"


def test_table_csv_and_files(shell: Shell, folder: Path) -> None:
    out, _ = run(shell, "--input", "e.csv", "--limit", "1")
    assert "the first match; there are more" in out
    assert "2 matches" in run(shell, "--input", "e.csv", "--limit", "2")[0]
    out, _ = run(shell, "--input", "e.csv", "--format", "csv")
    assert (
        out.splitlines()[0]
        == '"a.ts","a.kind","a.id","a.note","b.ts","b.kind","b.id","b.note","match_start","match_end"'
    )
    run(shell, "--input", "e.csv", "--output", "out.parquet")
    assert pa.parquet.read_table(folder / "out.parquet").column("match_end").to_pylist() == [2, 4]
    run(shell, "--input", "e.csv", "--output", "out.csv")
    assert pa.csv.read_csv(folder / "out.csv").column("b.ts").to_pylist() == [2, 4]
    run(shell, "--input", "e.csv", "--output", "out.json")
    assert len((folder / "out.json").read_text("utf-8").splitlines()) == 2
    _, error = run(shell, "--input", "e.csv", "--output", "out.json", code=2)
    assert "output path already exists: out.json" in error


def test_a_limit_holds_for_every_output(shell: Shell, folder: Path) -> None:
    assert len(run(shell, "--input", "e.csv", "--limit", "1", "--json")[0].splitlines()) == 1
    for name in ("out.parquet", "out.csv", "out.jsonl"):
        run(shell, "--input", "e.csv", "--limit", "1", "--output", name)
    assert pa.parquet.read_table(folder / "out.parquet").num_rows == 1
    assert pa.csv.read_csv(folder / "out.csv").num_rows == 1
    assert len((folder / "out.jsonl").read_text("utf-8").splitlines()) == 1


def test_totals_and_rankings_are_counted_whatever_the_limit(shell: Shell, folder: Path) -> None:
    where = ["--input", "e.csv", "--time", "ts", "--type", "kind", "--engine", "local", "--limit", "1"]
    assert "the first 1 of 2 rows" in shell("run", "SEQ(A a, B b) AGG COUNT", *where)[0]
    ranked, _ = shell("run", "SEQ(A a, B b) PREF MAX[b.ts] RETURN 5", *where)
    assert "the first 1 of 3 matches" in ranked
    for name, text in (("one", "SEQ(A a, B b)"), ("two", "SEQ(A a, B b) AGG COUNT"), ("none", "SEQ(A a, X x)")):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    shown, _ = shell("run", "one.txt", "two.txt", "none.txt", *where)
    assert "the first match; there are more" in shown
    assert "the first row; there are more" in shown
    assert "0 matches" in shown


def test_a_result_that_is_too_large_is_told_and_leaves_no_file(shell: Shell, folder: Path) -> None:
    where = ["--input", "e.csv", "--time", "ts", "--type", "kind", "--engine", "local"]
    ranked = ["run", "AND(A a, B b) PREF MAX[LEAST(a.ts, b.ts)] RETURN 5", *where, "--memory-limit", "50 B"]
    _, told = shell(*ranked, code=4)
    assert told.startswith("MemoryLimitExceeded: the query does not fit in memory: it needs ")
    assert "its limit is 50 bytes" in told
    assert told.rstrip().endswith("raise --memory-limit above 50 bytes.")
    before = sorted(path.name for path in folder.iterdir())
    shell(*ranked, "--output", "out.csv", code=4)
    assert sorted(path.name for path in folder.iterdir()) == before
    _, told = run(shell, "--input", "e.csv", "--memory-limit", "2 parsecs", code=2)
    assert "invalid value for --memory-limit: '2 parsecs'" in told
    on_spark = ["--input", "e.csv", "--time", "ts", "--memory-limit", "1 GB", "--engine", "spark"]
    assert "--memory-limit does not apply to Spark" in shell("run", "q.txt", *on_spark, code=2)[1]
    stream = ["--input", "e.csv", "--time", "ts", "--stream", "--limit", "3"]
    assert "--limit does not apply to streams" in shell("run", "q.txt", *stream, code=2)[1]


def test_several_queries(shell: Shell, folder: Path) -> None:
    for name, steps in (("two", "A, B"), ("three", "A, B, A x")):
        (folder / f"{name}.txt").write_text(f"PATTERN SEQ({steps.replace('A,', 'A a,')}) AGG COUNT", encoding="utf-8")
    options = ["--input", "e.csv", "--time", "ts", "--type", "kind", "--engine", "local"]
    shown, _ = shell("run", "two.txt", "three.txt", *options)
    assert shown.index("two") < shown.index("three")
    shell("run", "two.txt", "three.txt", *options, "--output", "out", "--format", "csv")
    assert (folder / "out" / "two.csv").read_text() == '"time","count"\n2,1\n4,3\n'
    assert (folder / "out" / "three.csv").read_text() == '"time","count"\n3,1\n'
    _, told = shell("run", "two.txt", "three.txt", *options, "--format", "json", code=2)
    assert "--output DIRECTORY" in told
    _, told = shell("run", "two.txt", "three.txt", *options, "--output", "o", "--format", "table", code=2)
    assert "a table cannot be written to a file" in told
    shell("run", "two.txt", "three.txt", *options, "--output", "shared", "--share", "always")
    assert (folder / "shared" / "three.json").read_text() == '{"time": 3, "count": 1}\n'
    assert "tree 1: 2 queries" in shell("explain", "two.txt", "three.txt", *options)[0]
    unshared, _ = shell("explain", "two.txt", "three.txt", *options, "--share", "never")
    assert unshared.count('runs alone: share="never"') == 2


def test_empty_input_and_bad_rows(shell: Shell) -> None:
    out, _ = run(shell, "--input", "headers.csv")
    assert "0 matches" in out
    _, error = run(shell, "--input", "bad.csv", code=3)
    assert "BadInputError: 1 row" in error
    out, error = run(shell, "--input", "bad.csv", "--bad-rows", "drop", "--format", "json")
    assert len(out.splitlines()) == 1
    assert "1 row" in error


def test_check_and_explain(shell: Shell) -> None:
    assert "ok" in shell("check", "q.txt")[0]
    assert "ok" in shell("check", "q.txt", "--input", "e.csv", "--time", "ts", "--type", "kind")[0]
    out, _ = shell("explain", "q.txt", "--input", "e.csv", "--time", "ts", "--type", "kind", "--engine", "local")
    assert "lookup  a.id = b.id" in out


@pytest.mark.parametrize(("cache", "said"), [("on", "cache key: interval start"), ("off", "cache: off, as requested")])
def test_explain_tells_what_is_cached(shell: Shell, cache: str, said: str) -> None:
    where = ["--input", "e.csv", "--time", "ts", "--type", "kind", "--engine", "local"]
    out, _ = shell("explain", "SEQ(A a, !C c, B b)", *where, "--cache", cache)
    assert said in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "SEQ(A a, B b) WHERE a.x ="], "QuerySyntaxError"),
        (["check", "SEQ(A a, !!B b)"], "^^^"),
        (["check", "q.txt", "--input", "e.csv", "--time", "tss"], "did you mean `ts`?"),
        (["check", "q.txt", "--input", "e.csv"], "requires --time"),
        (["run", "nothing.txt", "--input", "e.csv", "--time", "ts"], "no such query file"),
        (["run", "q.txt", "--input", "nothing.csv", "--time", "ts"], "no such file"),
        (["run", "q.txt", "--input", "q.txt", "--time", "ts", "--engine", "local"], "--input-format"),
        (["run", "q.txt", "--input", "e.csv", "--time", "ts", "--format", "parquet"], "--output"),
        (["run", "q.txt", "--time", "ts"], "--input"),
        (["run", "q.txt", "--input", "e.csv", "--time", "ts", "--output", "no/out.json"], "no such directory: no"),
        (["--fast"], "`streamsift --help`"),
        (["run", "--fast"], "`streamsift run --help`"),
        (
            ["run", "A+; B+ WHERE A.id < B.id", "--input", "e.csv", "--time", "ts", "--engine", "local"],
            "UnsupportedQuery",
        ),
    ],
)
def test_errors(shell: Shell, arguments: list[str], message: str) -> None:
    out, error = shell(*arguments, code=2)
    assert message in error
    assert "Traceback" not in error
    assert out == ""


@pytest.mark.parametrize("buffering", ["", "1"])
def test_a_full_device_is_an_error_and_a_closed_pipe_is_silent(
    folder: Path, monkeypatch: pytest.MonkeyPatch, buffering: str
) -> None:
    command = [
        sys.executable,
        "-m",
        "streamsift",
        "run",
        "q.txt",
        "-i",
        "e.csv",
        "--time",
        "ts",
        "--type",
        "kind",
    ]
    command += ["--engine", "local", "--format", "json"]
    monkeypatch.setenv("PYTHONUNBUFFERED", buffering)
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "SetupError: [Errno 28] No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, cwd=folder, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_an_interrupt_is_no_success(shell: Shell, folder: Path) -> None:
    # A process that a shell started in the background ignores interrupts, and so would this one.
    script = (
        "import signal, streamsift.command.main as cli, streamsift.command.arguments as files;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "files.query = lambda _: signal.raise_signal(signal.SIGINT); cli.main()"
    )
    command = [sys.executable, "-c", script, "check", "q.txt"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_cells() -> None:
    assert cell_text(timedelta(minutes=10, milliseconds=55623)) == "0:10:55.623"
    assert cell_text(timedelta(days=10)) == "10 days, 0:00:00"
    assert cell_text(timedelta(microseconds=1)) == "0:00:00.000001"
    assert cell_text(pd.Timedelta(timedelta(minutes=3, milliseconds=55470))) == "0:03:55.47"


def test_version_is_that_of_the_project(shell: Shell) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert shell("--version")[0] == f"streamsift {project['version']}\n"
