"""What Spark's processes write to stderr: printed by the console, so that live displays stay whole, until muted."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from streamsift.command import session
from streamsift.command.options import Options
from streamsift.command.session import check_java, relay_stderr
from streamsift.command.stream_job import StreamJob
from streamsift.errors import SetupError

CHILD = """
import sys
print("Starting Streaming TransformWithState Python worker.\\n\\nfirst", file=sys.stderr, flush=True)
sys.stdin.read()
print("second", file=sys.stderr)
"""
PATIENCE_SECONDS = 20


def test_output_of_processes_is_printed_by_the_console_until_it_is_muted(capfd: pytest.CaptureFixture[str]) -> None:
    console, muted = Console(file=StringIO(), width=80), threading.Event()
    with relay_stderr(console, muted):
        child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE)
        print("our own", file=sys.stderr)
    end = time.monotonic() + PATIENCE_SECONDS
    while "first" not in console.file.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    muted.set()
    child.communicate()
    assert console.file.getvalue() == "first\n"
    assert capfd.readouterr().err == "our own\n"


def test_an_interrupted_stream_says_what_is_lost_and_how_to_keep_it() -> None:
    console = Console(file=StringIO(), width=200)
    job = StreamJob(None, Options(query_files=[], input="in", time="t"), "json", console)  # type: ignore[arg-type]
    job._report_interrupt(Path("out.checkpoint"))
    job._report_interrupt(None)
    assert console.file.getvalue().splitlines() == [
        "interrupted: the current micro-batch is discarded",
        "run the same command to resume from out.checkpoint",
        "interrupted: the current micro-batch is discarded",
        "this run has no checkpoint, so its progress and state are lost; the next run starts from the beginning",
        "Hint: add --checkpoint DIRECTORY, or --output DIRECTORY, to let the next run resume.",
    ]


def test_missing_java_is_reported_with_a_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"JAVA_HOME does not contain Java(.|\n)*--engine local"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"no `java` on PATH(.|\n)*--engine local"):
        check_java()


@pytest.mark.parametrize(("master", "is_checked"), [(None, False), ("local[2]", False), ("spark://host:7077", True)])
def test_executors_of_a_cluster_are_checked_before_the_job(
    monkeypatch: pytest.MonkeyPatch, master: str | None, is_checked: bool
) -> None:
    def raise_problems() -> None:
        raise SetupError("node-1 cannot import streamsift")

    check = SimpleNamespace(differences=("node-1 has numba 0.1",), raise_problems=raise_problems)
    stopped: list[bool] = []
    spark = SimpleNamespace(stop=lambda: stopped.append(True))
    monkeypatch.setattr("streamsift.spark.files.local_session", lambda *_: spark)
    monkeypatch.setattr(session, "check_cluster", lambda _: check)
    monkeypatch.setattr(session, "check_java", lambda: None)
    console = Console(file=StringIO(), width=80)
    if not is_checked:
        assert session.start_spark(console, master) is spark
        return
    with pytest.raises(SetupError, match="cannot import streamsift"):
        session.start_spark(console, master)
    assert stopped == [True]
    assert console.file.getvalue() == "warning: node-1 has numba 0.1\n"
