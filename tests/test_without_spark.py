"""Run queries in a Python without pyspark, as after `pip install streamsift`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BLOCKED = """
import sys
class Finder:
    def __init__(self, finders):
        self.finders = finders
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names}:
            return None
        return next(filter(None, (finder.find_spec(name, path, target) for finder in self.finders)), None)
sys.meta_path[:] = [Finder(list(sys.meta_path))]
"""
SPARK = ("pyspark", "py4j", "google")

IN_PROCESS = """
import pyarrow as pa
import streamsift as ss
events = pa.table({"t": [1, 2, 5], "kind": ["A", "B", "B"]})
query = ss.query("PATTERN SEQ(A a, B b) WITHIN 3 RETURN b.t AS at")
assert query.run_local(events, time="t", type="kind").to_pylist() == [{"at": 2}]
assert "Physical" in query.explain(events, time="t", type="kind")
for call in (lambda: query.run(events, time="t"), lambda: ss.register(None), lambda: ss.check_cluster(None)):
    try:
        call()
    except ss.SetupError as error:
        assert "pip install 'streamsift[spark]'" in str(error), error
    else:
        raise AssertionError("ran without pyspark")
"""
COMMANDS = """
from streamsift.command.main import main
for engine in ("local", "spark"):
    options = f"run query.txt --input events.csv --time t --type kind --engine {engine}"
    sys.argv = ["streamsift", *options.split()]
    try:
        main()
    except SystemExit as end:
        print(engine, end.code)
"""


def run(program: str, *names: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    whole = BLOCKED.replace("{names}", repr(set(names))) + program
    return subprocess.run([sys.executable, "-c", whole], cwd=folder, capture_output=True, text=True, check=False)


def test_queries_run_without_pyspark_and_pandas() -> None:
    done = run(IN_PROCESS, *SPARK, "pandas")
    assert done.returncode == 0, done.stderr


def test_the_command_line_runs_without_pyspark(tmp_path: Path) -> None:
    (tmp_path / "query.txt").write_text("PATTERN SEQ(A a, B b) RETURN b.t AS at")
    (tmp_path / "events.csv").write_text("t,kind\n1,A\n2,B\n")
    done = run(COMMANDS, *SPARK, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    codes = dict(line.split() for line in done.stdout.splitlines() if line.startswith(("local", "spark")))
    assert codes["local"] in ("0", "None"), done.stderr
    assert codes["spark"] not in ("0", "None")
    assert "pip install 'streamsift[spark]'" in done.stderr
