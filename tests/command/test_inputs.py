"""The inputs of the command line: globs, standard input, compressed and tab-separated files, URIs, and times."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from run_command import command
from streamsift.runtime.input import locations

QUERY = "PATTERN SEQ(A a, B b) WITHIN 1 hour"
EPOCH = b"ts,kind\n1714557600,A\n1714559400,B\n"
SLASHES = b"ts;kind\n01/05/2024 10:00;A\n01/05/2024 10:30;B\n"
SECONDS = ["--time-unit", "s"]
Run = Callable[..., tuple[int, str, str]]
READ = ["--delimiter", ";", "--time-format", "%d/%m/%Y %H:%M"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("epoch.csv").write_bytes(EPOCH)
    Path("tabs.tsv").write_bytes(EPOCH.replace(b",", b"\t"))
    Path("packed.csv.gz").write_bytes(gzip.compress(EPOCH))
    Path("slashes.csv").write_bytes(SLASHES)
    Path("1.json").write_text('{"ts": 1714557600000, "kind": "A"}\n', encoding="utf-8")
    Path("2.json").write_text('[{"ts": 1714559400000, "kind": "B"}]\n', encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the query in process, and return its exit code, output and errors."""
    fixed = ["run", QUERY, "--time", "ts", "--type", "kind", "--engine", "local", "--json"]
    return lambda *words: command([*fixed, *words], capsys)


@pytest.mark.parametrize(
    ("words", "zone"),
    [
        (["--input", "epoch.csv", *SECONDS], "+00:00"),
        (["--input", "tabs.tsv", *SECONDS], "+00:00"),
        (["--input", "packed.csv.gz", *SECONDS], "+00:00"),
        (["--input", "?.json", "--time-unit", "ms"], "+00:00"),
        (["--input", "slashes.csv", *READ], ""),
    ],
)
def test_an_input_has_its_times(run: Run, words: list[str], zone: str) -> None:
    _, out, error = run(*words)
    assert error == ""
    assert json.loads(out)["match_end"] == f"2024-05-01T10:30:00{zone}"


def test_a_uri_of_a_local_file(run: Run, folder: Path) -> None:
    assert "10:30:00" in run("--input", (folder / "epoch.csv").as_uri(), *SECONDS)[1]


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EPOCH)))
    locations._stdin_file.cache_clear()
    assert "10:30:00" in run("--input", "-", "--input-format", "csv", *SECONDS)[1]
    locations._stdin_file.cache_clear()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input", "*.txt"], "no file matches *.txt"),
        (["--input", "-"], "standard input has no file name"),
        (["--input", "abfss://a/b.csv"], "the local engine cannot read abfss:// URIs"),
        (["--input", "epoch.csv", "--delimiter", ";;"], "invalid value for --delimiter"),
        (["--input", "epoch.csv", "--time-format", "yyyy"], "contains no directive"),
        (["--input", "epoch.csv", "--time-format", "%Q"], "invalid --time-format"),
        (["--input", "epoch.csv", "--time-format", "%Y", *SECONDS], "exclude each other"),
        (["--input", "epoch.csv", "--time-format", "%Y"], "does not match --time-format"),
        (["--input", "slashes.csv", "--delimiter", ";", *SECONDS], "--time-unit needs a column of numbers"),
    ],
)
def test_inputs_that_cannot_be_read(run: Run, words: list[str], message: str) -> None:
    code, _, error = run(*words)
    assert code in (2, 3)
    assert message in error


def test_times_that_do_not_fit_are_dropped(run: Run, folder: Path) -> None:
    with (folder / "slashes.csv").open("ab") as file:
        file.write(b"31/02/2024 10:00;A\n")
    assert "'31/02/2024 10:00' in column `ts` does not match" in run("--input", "slashes.csv", *READ)[2]
    code, out, error = run("--input", "slashes.csv", *READ, "--bad-rows", "drop")
    assert (code, out.count("match_end")) == (0, 1)
    assert "1 row has no" in error
