"""What scripts and new users rely on: exit codes, JSON, a query to start from, help, completion, plain output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import streamsift as ss
from run_command import command
from streamsift.command import demo_data
from streamsift.command.data_profile import guess
from streamsift.command.main import bench_command
from streamsift.command.progress import pace
from streamsift.errors import SetupError

Capture = pytest.CaptureFixture[str]
LOCAL = ["--input", "e.csv", "--time", "ts", "--type", "kind", "--engine", "local"]


@pytest.fixture(autouse=True)
def _in_a_folder_with_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    events = pa.table({"ts": [1, 2, 3, 4], "kind": ["A", "B", "A", "B"], "id": [1, 1, 2, 1]})
    pa.csv.write_csv(events, "e.csv")
    Path("bad.csv").write_text("ts,kind,id\n1,A,1\n,A,1\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "A; B", *LOCAL], 0),
        (["run", "A; C", *LOCAL], 0),
        (["run", "A; B", *LOCAL, "--fail-on-empty"], 0),
        (["run", "A; C", *LOCAL, "--fail-on-empty"], 1),
        (["run", "A; C", *LOCAL, "--fail-on-empty", "--json"], 1),
        (["run", "A; C", *LOCAL, "--fail-on-empty", "--output", "out.csv"], 1),
        (["run", "A; C", "A; D", *LOCAL, "--fail-on-empty"], 1),
        (["run", "A; B", "A; D", *LOCAL, "--fail-on-empty"], 0),
        (["run", "A; !B", *LOCAL], 2),
        (["run", "A; B", *LOCAL, "--engine", "here"], 2),
        (["run", "A; B", *LOCAL, "--input", "f.csv"], 2),
        (["run", "A; B", *LOCAL, "--input", "bad.csv"], 3),
    ],
)
def test_exit_codes(words: list[str], code: int, capsys: Capture) -> None:
    assert command(words, capsys)[0] == code


def test_json_results_and_errors(capsys: Capture) -> None:
    assert len(command(["run", "A; B", *LOCAL, "--json"], capsys)[1].splitlines()) == 3
    sections = json.loads(command(["explain", "A; B", *LOCAL, "--json"], capsys)[1])
    assert sections["Physical"][0] == "detect, 2 steps"
    assert "ok" in json.loads(command(["check", "A; B", "--json"], capsys)[1])
    code, out, error = command(["check", "A;\n!!B; C", "--json"], capsys)
    told = json.loads(error)
    assert (code, out, told["error"], told["line"], told["column"]) == (2, "", "QueryError", 2, 1)
    assert json.loads(command(["run", "A; B", *LOCAL, "--input", "bad.csv", "--json"], capsys)[2])["message"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "A a; B b; A c WHERE a.id < c.id WITHIN 5",
            ["a  2 candidates, 50.00% of the events", "a, c  ", "join  expected"],
        ),
        ("A a; X x; A c", ["x  0 candidates, 0.00%", "no match", "result  0 rows"]),
        ("A a; B b AGG COUNT WITHIN 5", ["in a window", "result  2 rows"]),
        ("A a & B b AGG COUNT", ["join  expected", "result  3 rows"]),
        ("A a | B b PREF MAX[a.id] RETURN 1", ["alternative 2", "result  1 row in"]),
        ("A a; B+ b WHERE a.id = 2", ["groups"]),
    ],
)
def test_explain_analyzed(text: str, told: list[str], capsys: Capture) -> None:
    code, out, error = command(["explain", text, *LOCAL, "--analyze"], capsys)
    assert code == 0, error
    analysed = out[out.index("Analyzed") :]
    assert all(words in analysed for words in told), analysed


def test_explain_without_input(capsys: Capture) -> None:
    sections = json.loads(command(["explain", "A; B WHERE A.x < B.x", "--type", "kind", "--json"], capsys)[1])
    assert "type: kind (string)" in sections["Assumed"]
    assert sections["Physical"][0] == "detect, 2 steps"
    for words, message in (
        (["A; B", "--analyze"], "--analyze requires --input"),
        (["A; B", "A; C"], "the plan of several queries requires --input"),
        (["A; B", "--engine", "spark"], "the plan on Spark requires --input"),
        (["A; B", "--input", "e.csv"], "--input requires --time"),
        (["A; B", *LOCAL[:6], "--analyze", "--master", "local"], "--analyze does not apply to Spark"),
    ):
        code, _, error = command(["explain", *words], capsys)
        assert (code, message in error) == (2, True), error


def test_a_class_without_rows_gets_a_warning(capsys: Capture) -> None:
    code, out, error = command(["run", "AA; B", *LOCAL], capsys)
    assert (code, out.splitlines()[-1]) == (0, "0 matches")
    assert "warning: class `AA` matches no row; did you mean `A`?" in error


@pytest.mark.parametrize("name", ["hospital", "purchases", "ticks"])
def test_a_new_query_runs_and_finds_something(name: str, capsys: Capture) -> None:
    pa.csv.write_csv(getattr(demo_data, name)(5_000, 7), "events.csv")
    code, out, _ = command(["new", "events.csv"], capsys)
    assert code == 0
    words = out.splitlines()[-1].split()
    assert words[:3] == ["streamsift", "run", "query.txt"]
    code, out, error = command([*words[1:], "--json", "--fail-on-empty"], capsys)
    assert code == 0, error
    code, _, error = command(["new", "events.csv"], capsys)
    assert (code, "already exists" in error) == (2, True)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": pa.array([], pa.float64()), "name": pa.array([], pa.string())}),
        pa.table({"at": ["2024-05-01T10:00:00", "2024-05-01T11:00:00"], "v": [1.5, 2.5]}),
        pa.table({"the time": [1, 2, 3], "return": ["a b", "WHERE", "a b"], "user id": [7, 7, 8]}),
    ],
    ids=["empty", "text times", "odd names"],
)
def test_a_new_query_of_any_table_parses(table: pa.Table, capsys: Capture) -> None:
    pa.csv.write_csv(table, "events.csv")
    code, out, error = command(["new", "events.csv", "--output", "-"], capsys)
    assert code == 0, error
    ss.query(out)


@pytest.mark.parametrize(
    ("columns", "time", "type", "key", "number"),
    [
        ({"n": [5, 3, 9], "event_time": [1, 2, 3], "b": [1.0, 2.0, 3.0]}, "event_time", None, None, "b"),
        ({"case": [7, 7, 8, 8], "activity": list("ABAB"), "t": [1, 2, 3, 4]}, "t", "activity", "case", None),
        (
            {"case:concept:name": list("xxyy"), "concept:name": list("ABAB"), "time:timestamp": [1, 2, 3, 4]},
            "time:timestamp",
            "concept:name",
            "case:concept:name",
            None,
        ),
        ({"ts": [1, 2, 3, 4], "userId": [1, 1, 2, 2], "caseId": [5, 5, 6, 6]}, "ts", None, "caseId", None),
        ({"ts": [1, 2, 3, 4], "bid": [1, 1, 2, 2], "price": [1, 2, 3, 4]}, "ts", None, None, "price"),
    ],
)
def test_guesses(
    columns: dict[str, list[object]], time: str, type: str | None, key: str | None, number: str | None
) -> None:
    guessed = guess(pa.table(columns))
    assert (guessed.time, guessed.type, guessed.key, guessed.number) == (time, type, key, number)


def test_guessed_window_of_generated_events() -> None:
    guessed = guess(demo_data.hospital(2_000, 7))
    assert (guessed.time, guessed.type, guessed.key) == ("ts", "kind", "id")
    assert (guessed.window, guessed.longer_window) == ("30 min", "10 hours")


def test_new_profiles_columns_and_counts_matches(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("log.csv").write_text("at,case,step\n1,7,A\n2,7,B\n3,8,A\n4,8,B\n5,,A\n", encoding="utf-8")
    code, out, error = command(["new", "log.csv"], capsys)
    assert code == 0, error
    assert out.splitlines() == [
        "column  role   type     nulls  distinct  examples",
        "at      time   integer  0      5         1, 2, 3",
        "case    key    integer  1      2         7, 8",
        "step    class  string   0      2         A, B",
        "log.csv: 5 rows, 3 columns",
        "",
        "wrote query.txt, a first query (2 matches); to run it:",
        "  streamsift run query.txt --input log.csv --time at --type step",
    ]
    text = Path("query.txt").read_text(encoding="utf-8")
    assert "PATTERN SEQ(A a, B b)\nWHERE [case]" in text
    assert max(map(len, text.splitlines())) <= 80
    report = json.loads(command(["new", "log.csv", "--output", "other.txt", "--json"], capsys)[1])
    assert (report["key"], report["matches"], report["columns"][1]["nulls"]) == ("case", 2, 1)
    monkeypatch.setattr("streamsift.command.main.SAMPLE_ROWS", 4)
    shown = command(["new", "log.csv", "--output", "-"], capsys)[1]
    assert "-- log.csv: the first 4 rows, 3 columns" in shown
    assert "in the first 4 rows: A (2), B (2)" in " ".join(shown.replace("\n--", "").split())


def test_a_suggested_query_has_matches_if_any_has(capsys: Capture) -> None:
    """Events of one case have equal times, so that no two of them follow each other: the key is given up."""
    Path("log.csv").write_text("at,case,step\n1,7,A\n1,7,B\n2,8,A\n2,8,B\n", encoding="utf-8")
    out = command(["new", "log.csv", "--output", "-"], capsys)[1]
    query_lines = [line for line in out.splitlines() if line and not line.startswith("--")]
    assert "WHERE" not in "".join(query_lines)
    words = ["run", "\n".join(query_lines), "--input", "log.csv", "--time", "at", "--type", "step", "--fail-on-empty"]
    assert command(words, capsys)[0] == 0


@pytest.mark.parametrize("name", ["new", "run", "explain", "check", "demo", "bench"])
def test_every_help_has_an_example(name: str, capsys: Capture) -> None:
    code, out, _ = command([name, "--help"], capsys)
    assert code == 0
    assert f"Example: streamsift {name}" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["exlpain", "q"], "usage: no such command 'exlpain'\nHint: did you mean 'explain'?"),
        (["run", "A; B", *LOCAL, "--fail-on-emty"], "--fail-on-empty"),
        (["run", "A; B", *LOCAL, "--input", "ee.csv"], "did you mean `e.csv`?"),
        (["run", "e.cvs", *LOCAL], "did you mean `e.csv`?"),
        (["check", "A; B WHERE A.idd = 3", "--input", "e.csv", "--time", "ts"], "did you mean `id`?"),
        (["run", "A; B", *LOCAL, "--plot", "out.gif"], "ends in .svg, .png or .html"),
    ],
)
def test_did_you_mean(words: list[str], told: str, capsys: Capture) -> None:
    code, _, error = command(words, capsys)
    assert code == 2
    assert told in error


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("streamsift ex", ["explain"]),
        ("streamsift run q.txt --input e.csv --type k", ["kind"]),
        ("streamsift run q.txt --input nothing.csv --type k", []),
    ],
)
def test_completion_of_commands_and_columns(words: str, completed: list[str]) -> None:
    wanted = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    environment = {**os.environ, "_STREAMSIFT_COMPLETE": "complete_bash", **wanted}
    script = (
        "import sys; sys.argv = ['streamsift']; from streamsift.command.main import app; app(prog_name='streamsift')"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == completed, done.stderr


def test_plain_output_off_a_terminal(capsys: Capture) -> None:
    _, out, _ = command(["run", "A; B RETURN A.ts AS first, B.ts AS then", *LOCAL], capsys)
    assert out.splitlines() == ["first  then", "1      2", "1      4", "3      4", "3 matches"]


def test_data_to_play_with(capsys: Capture) -> None:
    code, _, error = command(["demo", "--save", "data", "--rows", "1000"], capsys)
    assert code == 0
    assert len(list(Path("data").glob("*.csv"))) == 3
    assert "wrote data/ticks.csv" in error


def test_benchmarks_are_found_in_the_source_tree_or_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    root, words = bench_command(["nested"])
    assert (root / "benchmarks" / "negation" / "nested.py").is_file()
    assert words[1:] == ["-m", "benchmarks", "run", "nested"]
    monkeypatch.setattr("streamsift.command.main.__file__", str(Path.cwd() / "benches.py"))
    with pytest.raises(SetupError, match="in a clone of the project"):
        bench_command([])


def test_a_misspelt_benchmark(capfd: Capture) -> None:
    """The runner tells, which is a process of its own."""
    code, _, error = command(["bench", "throughputs"], capfd)
    assert code == 2
    assert "did you mean `throughput`?" in error


def test_pace() -> None:
    assert pace(0, 8, 1.0, "tasks") == "0 of 8 tasks"
    assert pace(2, 8, 1.0, "tasks") == "2 of 8 tasks, 2.0/s, about 3 s left"
    assert pace(10, 1_210, 1.0, "rows") == "10 of 1,210 rows, 10.0/s, about 2 min left"
