"""Run queries on a standalone cluster of several processes: the package is sent as a zip, and a worker is killed.

Nothing of the checkout is on the workers' path: what they import is what spark-submit sent them.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pyspark
import pytest

import fast_spark
from documents import ROOT, blocks
from streamsift.command.demo import DEMO_QUERIES

HOME = Path(pyspark.__file__).parent
DRIVER = Path(__file__).with_name("cluster_driver.py")
SOURCE = Path(__file__).parents[3] / "src"
PLACES = ("sc://server:15002", "s3://bucket/events")  # in a documented program; replaced in this test
WAIT_S = 240
# Workers compile the kernels that they run, as on a new machine; the two quick queries need the same ones.
QUERIES = range(len(DEMO_QUERIES)) if os.environ.get("STREAMSIFT_HYPOTHESIS") == "large" else (0, 2)
NUMBERS = ",".join(map(str, QUERIES))
OPTIONS = {"SPARK_SUBMIT_OPTS": fast_spark.JVM_OPTIONS}  # without `warm_daemon`, which imports the checkout


@dataclass
class Cluster:
    url: str
    workers: list[subprocess.Popen[str]]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_REMOTE")}
    return {
        **kept,
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **OPTIONS,
        **more,
    }


def daemon(directory: Path, *arguments: str) -> tuple[subprocess.Popen[str], Path]:
    log = directory / f"{arguments[0].rsplit('.', 1)[-1]}-{len(list(directory.glob('*.log')))}.log"
    with log.open("w") as sink:
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *arguments],
            stdout=sink,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(SPARK_WORKER_DIR=str(directory)),
            start_new_session=True,
        )
    return process, log


def said(log: Path, pattern: str) -> str:
    """Wait until a log has a match of the pattern, and return it."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.2)
    raise AssertionError(f"no {pattern!r} in\n{log.read_text()}")


def kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    master, log = daemon(
        tmp_path, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
    )
    processes = [master]
    try:
        url = said(log, r"(spark://127\.0\.0\.1:\d+)")
        worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1")
        for _ in range(2):
            process, log = daemon(tmp_path, *worker, "--memory", "1g", url)
            processes.append(process)
            said(log, "(Successfully registered)")
        yield Cluster(url, processes[1:])
    finally:
        for process in processes:
            kill(process)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a zip of the package, as a user would send it."""
    path = tmp_path / "streamsift.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in (SOURCE / "streamsift").rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(SOURCE))
    return path


def run(arguments: list[str], go_on: Path, victim: subprocess.Popen[str] | None = None) -> list[str]:
    """Return the lines that the driver prints. Kill the victim when the second query has started."""
    errors = go_on.with_suffix(".err")
    with errors.open("w") as sink:
        program = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=sink, text=True, env=environment())
    assert program.stdout is not None
    lines: list[str] = []
    with program:
        for line in program.stdout:
            lines.append(line.strip())
            if len(lines) == 2:
                go_on.touch()
                if victim is not None:
                    time.sleep(1)  # until the next query has started
                    kill(victim)
    assert program.returncode == 0, errors.read_text()[-4_000:]
    return lines


def test_a_cluster_gives_the_rows_of_one_process(cluster: Cluster, package: Path, tmp_path: Path) -> None:
    submit = [str(HOME / "bin" / "spark-submit"), "--master", cluster.url, "--py-files", str(package)]
    settings = {"spark.executor.memory": "700m", "spark.log.level": "ERROR", "spark.sql.shuffle.partitions": "6"}
    settings["spark.executor.extraJavaOptions"] = fast_spark.JVM_OPTIONS
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    go_on = tmp_path / "go_on"
    first, *agreed = run([*submit, *options, str(DRIVER), str(go_on), NUMBERS], go_on, victim=cluster.workers[0])
    assert "streamsift.zip" in first
    assert len(agreed) == len(QUERIES)


def test_spark_connect_gives_the_rows_of_one_process(tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    (documented,) = (block.body for block in blocks((ROOT / "docs/how-to/connect.md").read_text(encoding="utf-8")))
    assert documented.count(PLACES[0]) == documented.count(PLACES[1]) == 1
    events = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "kind": ["A", "B"], "id": [7, 7]})
    pyarrow.parquet.write_table(events, tmp_path / "events.parquet")
    program = tmp_path / "documented.py"
    here = documented.replace(PLACES[0], "local[2]").replace(PLACES[1], str(tmp_path / "events.parquet"))
    program.write_text(here, encoding="utf-8")
    arguments = [sys.executable, str(DRIVER), str(go_on), NUMBERS, "local[2]", str(program)]
    first, *agreed = run(arguments, go_on)
    assert first.startswith("workers import")
    assert len([line for line in agreed if line.startswith("agreed")]) == len(QUERIES)
    assert sum(line.startswith("|") for line in agreed) == 2  # the documented program prints a header and one match
