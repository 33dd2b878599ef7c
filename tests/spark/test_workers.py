"""Errors in Python workers: the message comes first, and a worker without Streamsift says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import streamsift as ss
from streamsift.spark import ClusterCheck
from streamsift.spark.cluster import PythonEnvironment
from streamsift.spark.stream.deferred import deferred
from streamsift.spark.workers import HIDE_TRACEBACK, check_version, for_workers, loaded, plain_errors

QUERY = ss.query("PATTERN SEQ(A a, B b) WITHIN 5 s")
# As in a worker whose Python lacks Streamsift.
WORKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "streamsift":
            raise ModuleNotFoundError("No module named 'streamsift'", name="streamsift")
sys.meta_path.insert(0, Blocker())
import os, pickle
run = pickle.load(sys.stdin.buffer)
try:
    list(run(iter([])))
except ImportError as error:
    print(error, bool(os.environ.get("SPARK_HIDE_TRACEBACK")))
"""


@pytest.mark.parametrize(("time", "row"), [("t", "NULL, 'x'"), ("s", "TIMESTAMP '2024-05-01', 'soon'")])
def test_bad_rows_are_reported_without_a_traceback(spark: SparkSession, time: str, row: str) -> None:
    df = spark.sql(f"SELECT * FROM VALUES (TIMESTAMP '2024-05-01', '2024-05-01', 'A'), ({row}, 'A') AS e (t, s, kind)")
    with pytest.raises(PythonException) as caught:
        QUERY.run(df, time=time, type="kind").collect()
    message = str(caught.value)
    assert "Traceback" not in message
    lines = message.strip().splitlines()
    # Spark itself has the first line, in some versions the first two.
    first = next(n for n, line in enumerate(lines) if "streamsift.errors.BadInputError: 1 row" in line)
    assert first <= 2, message


def test_other_errors_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HIDE_TRACEBACK, raising=False)
    with pytest.raises(ZeroDivisionError), plain_errors():
        _ = 1 / 0
    assert HIDE_TRACEBACK not in os.environ
    monkeypatch.setenv(HIDE_TRACEBACK, "")
    with pytest.raises(ss.BadInputError), plain_errors():
        raise ss.BadInputError("no time")
    assert os.environ[HIDE_TRACEBACK] == "1"


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def test_a_worker_without_streamsift_says_what_to_install() -> None:
    # Pickled as Spark does it. `same` is importable here only, so it must not be needed to report the error.
    done = subprocess.run(
        [sys.executable, "-c", WORKER], input=cloudpickle.dumps(for_workers(same)), capture_output=True, check=False
    )
    out = done.stdout.decode()
    assert "cannot import Streamsift: No module named 'streamsift'" in out, done.stderr.decode()
    assert f"install 'streamsift[spark]=={ss.__version__}'" in out
    assert out.strip().endswith("True")


def test_a_stream_starts_without_importing_the_engine() -> None:
    """Spark unpickles the processor in a process of its own, only to call `init`."""
    pickled = cloudpickle.dumps(deferred(SimpleNamespace()))
    program = "import pickle, sys; pickle.load(sys.stdin.buffer).init(Mock()); print(*sorted(sys.modules))"
    command = [sys.executable, "-c", f"from unittest.mock import Mock; {program}"]
    done = subprocess.run(command, input=pickled, capture_output=True, check=True)
    assert {"streamsift", "numba", "pandas", "pyarrow"}.isdisjoint(done.stdout.decode().split())


def test_a_worker_with_another_version_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIDE_TRACEBACK, "")
    with pytest.raises(ss.SetupError, match=f"has Streamsift {ss.__version__}, but the driver has 9.9"):
        loaded(cloudpickle.dumps(same), "9.9")


@pytest.mark.parametrize("version", ["3.5.9", "2.4.8"])
def test_an_old_pyspark_is_rejected_by_its_version(version: str) -> None:
    with pytest.raises(ss.SetupError, match=f"PySpark {version} is not supported"):
        check_version(version)
    check_version("4.0.0.dev1")


def test_check_cluster(spark: SparkSession) -> None:
    check = ss.check_cluster(spark, tasks=2)
    assert check.problems == check.differences == ()
    assert check.executors == (check.driver,)
    assert check.driver.versions["streamsift"] == ss.__version__
    assert str(check).endswith("no differences")
    check.raise_problems()


def test_check_cluster_reports_differences() -> None:
    driver = PythonEnvironment("laptop", "/venv/python", {"Python": "3.11.7", "streamsift": "0.2.0"}, {})
    old = PythonEnvironment("node-1", "/usr/bin/python3", {"Python": "3.11.9", "streamsift": "0.1.0"}, {})
    bare = PythonEnvironment("node-2", "/usr/bin/python3", {"Python": "3.11.7"}, {"streamsift": "ModuleNotFoundError"})
    check = ClusterCheck(driver, (old, bare))
    assert check.problems == (
        "node-2 (/usr/bin/python3) cannot import streamsift: ModuleNotFoundError",
        "node-1 (/usr/bin/python3) has streamsift 0.1.0, the driver has 0.2.0",
    )
    assert check.differences == ("node-1 (/usr/bin/python3) has Python 3.11.9, the driver has 3.11.7",)
    assert "problem: node-2" in str(check)
    assert "streamsift MISSING" in str(check)
    with pytest.raises(ss.SetupError, match=r"(?s)node-2.*Hint: install 'streamsift\[spark\]==0.2.0'"):
        check.raise_problems()
