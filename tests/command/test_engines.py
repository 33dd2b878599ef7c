"""`--engine auto`: in process or on Spark, with the reason on stderr."""

from __future__ import annotations

import gzip
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamsift.command import engines
from streamsift.command.engines import choose_engine
from streamsift.command.options import EngineName, Options
from streamsift.errors import SetupError

EVENTS = "ts,kind\n" + "1,A\n" * 100


def choice(folder: Path, **given: Any) -> tuple[str, str]:
    events = folder / "events.csv"
    events.write_text(EVENTS, encoding="utf-8")
    options = Options(query_files=["A; B"], time="ts", **{"input": str(events), **given})
    console = Console(file=StringIO(), width=200)
    return choose_engine(options, console).value, console.file.getvalue().strip()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "engine: local (408 bytes of input fits in memory)"),
        ({"master": "local[2]"}, "engine: spark (--master is given)"),
        ({"stream": True}, "engine: spark (streams run on Spark)"),
        ({"analyze": True}, "engine: local (--analyze runs in process)"),
        ({"memory_limit": "1 GB"}, "engine: local (--memory-limit is given)"),
        ({"input": "s3://bucket/events.csv"}, "engine: spark (the input is a URI)"),
    ],
)
def test_auto_says_which_engine_and_why(tmp_path: Path, given: dict[str, Any], expected: str) -> None:
    chosen, line = choice(tmp_path, **given)
    assert line == expected
    assert line.startswith(f"engine: {chosen} ")


def test_input_that_does_not_fit_runs_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "default_limit", lambda: 2_000)
    reason = "engine: spark (the input needs about 3.3 KB of memory, and 2.0 KB is free)"
    assert choice(tmp_path) == ("spark", reason)
    compressed = tmp_path / "events.csv.gz"
    compressed.write_bytes(gzip.compress(EVENTS.encode()))
    assert compressed.stat().st_size * engines.MEMORY_PER_BYTE["csv"] < 2_000  # so it is the compression that counts
    assert choice(tmp_path, input=str(compressed))[0] == "spark"


def test_a_given_engine_is_used_without_a_word(tmp_path: Path) -> None:
    assert choice(tmp_path, engine=EngineName.SPARK) == ("spark", "")
    assert choice(tmp_path, engine=EngineName.LOCAL) == ("local", "")
    assert choice(tmp_path, as_json=True) == ("local", "")
    with pytest.raises(SetupError, match="--master does not apply to --engine local"):
        choice(tmp_path, engine=EngineName.LOCAL, master="local[2]")
