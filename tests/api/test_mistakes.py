"""Twenty-odd deliberate mistakes, in the query, the names, the data and the environment, and what is said to each.

The messages are goldens: read them as a new user would, who has no documents at hand.
"""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import streamsift as ss
from golden import check_golden
from run_command import command

RUN = ["--input", "events.csv", "--time", "ts", "--type", "kind", "--engine", "local"]

ON_THE_COMMAND_LINE: dict[str, list[str]] = {
    "a clause misspelt": ["check", "PATTERN SEQ(A a, B b) WHER a.id = b.id"],
    "a bracket forgotten": ["check", "PATTERN SEQ(A a, B b WHERE a.id = b.id"],
    "== for =": ["check", "PATTERN SEQ(A a, B b) WHERE a.id == b.id"],
    "SQL instead of a pattern": ["check", "SELECT * FROM events WHERE kind = 'A'"],
    "a variable that is none": ["check", "PATTERN SEQ(A a, B b) WHERE c.id = b.id"],
    "a unit that is none": ["check", "PATTERN SEQ(A a, B b) WITHIN 5 minuets"],
    "a negation with no end": ["check", "PATTERN SEQ(A a, !B b)"],
    "a count and a ranking": ["check", "PATTERN SEQ(A a, B b) AGG COUNT PREF MAX[a.x] RETURN 3"],
    "a column misspelt": ["run", "PATTERN SEQ(A a, B b) WHERE a.prise < b.price", *RUN],
    "the time column misspelt": ["run", "A; B", *RUN, "--time", "tss"],
    "a text compared with a number": ["run", "PATTERN SEQ(A a, B b) WHERE a.kind > 3", *RUN],
    "a unit of time on numbers": ["run", "PATTERN SEQ(A a, B b) WITHIN 5 min", *RUN],
    "no such data file": ["run", "A; B", *RUN, "--input", "event.csv"],
    "no such query file": ["run", "querry.txt", *RUN],
    "a file of unknown format": ["run", "A; B", *RUN, "--input", "events.log"],
    "a CSV file called Parquet": ["run", "A; B", *RUN, "--input", "events.parquet"],
    "rows without a time": ["run", "A; B", *RUN, "--input", "gaps.csv"],
    "an empty file": ["run", "A; B", *RUN, "--input", "empty.csv"],
    "ragged rows": ["run", "A; B", *RUN, "--input", "ragged.csv"],
    "a command misspelt": ["rum", "A; B", *RUN],
    "the time column not given": ["run", "A; B", "--input", "events.csv"],
    "an output that is there": ["run", "A; B", *RUN, "--output", "events.csv"],
    "a picture of a wrong kind": ["run", "A; B", *RUN, "--plot", "out.jpeg"],
    "a strategy for no count": ["run", "A; B", *RUN, "--strategy", "sem"],
    "what cannot be evaluated": ["run", "PATTERN A+ a; B+ b WHERE a.price < b.price", *RUN],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text("ts,kind,id,price\n1,A,1,2.5\n2,B,1,3.5\n", encoding="utf-8")
    Path("events.log").write_text("1 A\n", encoding="utf-8")
    Path("events.parquet").write_text("ts,kind\n1,A\n", encoding="utf-8")
    Path("gaps.csv").write_text("ts,kind,id,price\n1,A,1,2.5\n,B,1,3.5\n", encoding="utf-8")
    Path("empty.csv").write_text("", encoding="utf-8")
    Path("ragged.csv").write_text("ts,kind\n1,A\n2,B,3\n", encoding="utf-8")
    Path("query.txt").write_text("A; B", encoding="utf-8")
    return tmp_path


def in_python() -> dict[str, Callable[[], Any]]:
    events = pa.table({"ts": [1, 2], "kind": ["A", "B"]})
    query = ss.query("A; B")
    return {
        "a Spark DataFrame expected": lambda: query.run(events, time="ts", type="kind"),  # type: ignore[arg-type]
        "a table expected": lambda: query.run_local([1, 2, 3], time="ts"),
        "a column object for a name": lambda: query.run_local(events, time=events["ts"]),  # type: ignore[arg-type]
        "a policy that is none": lambda: query.run_local(events, time="ts", bad_rows="ignore"),  # type: ignore[arg-type]
        "a choice that is none": lambda: query.run_local(events, time="ts", plan="bush"),  # type: ignore[typeddict-item]
        "Altair is not installed": lambda: ss.show(query.run_local(events, time="ts", type="kind")),
    }


def test_messages(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for title, words in ON_THE_COMMAND_LINE.items():
        code, out, error = command(words, capsys)
        assert (code in (2, 3), out) == (True, ""), (title, out, error)
        told.append(f"# {title} (exit code {code})\n{error}")
    monkeypatch.setitem(sys.modules, "altair", None)
    for title, mistake in in_python().items():
        with pytest.raises((ss.StreamsiftError, TypeError)) as raised:
            mistake()
        told.append(f"# {title}\n{type(raised.value).__name__}: {raised.value}\n")
    check_golden("mistakes.txt", "\n".join(told).replace(str(folder), "FOLDER"))


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME does not contain Java: /nowhere"),
        ({"PATH": "/nowhere", "JAVA_HOME": ""}, "Java 17"),
    ],
)
def test_without_java(folder: Path, environment: dict[str, str], said: str) -> None:
    words = [
        sys.executable,
        "-m",
        "streamsift",
        "run",
        "query.txt",
        "-i",
        "events.csv",
        "--time",
        "ts",
        "--type",
        "kind",
        "--engine",
        "spark",
    ]
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "--engine local" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_pyspark(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def refusing(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, *rest)

    for name in [n for n in sys.modules if n.split(".")[0] in ("pyspark", "py4j") or n.startswith("streamsift.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refusing)
    code, _, error = command(["run", "A; B", "--input", "events.csv", "--time", "ts", "--engine", "spark"], capsys)
    assert code == 2
    assert "pyspark" in error
    assert "--engine local" in error
