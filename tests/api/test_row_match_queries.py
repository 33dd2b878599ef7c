"""Test MATCH_RECOGNIZE from Python and from the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import streamsift as ss
from streamsift.command.main import app

ROWS = pa.table({"t": [1, 2, 3, 4, 5], "x": [1, 2, 5, 4, 6]})
CLAUSE = "ORDER BY t MEASURES FIRST(t) AS first, COUNT(*) AS n PATTERN (UP+) DEFINE UP AS x > PREV(x)"
EXPECTED = [{"first": 2, "n": 2}, {"first": 5, "n": 1}]


def test_a_clause_is_a_query_like_any_other() -> None:
    text = f"MATCH_RECOGNIZE ({CLAUSE})"
    q = ss.query(text)
    assert isinstance(q, ss.Query)
    assert (str(q), repr(q)) == (text, text)
    assert "MATCH_RECOGNIZE" in q._repr_html_()
    assert q.run_local(ROWS).to_pylist() == EXPECTED
    assert q.batches(ROWS).read_all().to_pylist() == EXPECTED
    assert q.run_local(ROWS, limit=1).num_rows == 1
    q.check()
    q.check(ROWS.schema)


def test_the_alias_names_the_columns() -> None:
    q = ss.query(f"MATCH_RECOGNIZE ({CLAUSE}) AS m (a, b)")
    assert q.run_local(ROWS).column_names == ["a", "b"]


def test_match_recognize_takes_the_text_in_the_parentheses() -> None:
    assert ss.match_recognize(ROWS, CLAUSE).to_pylist() == EXPECTED
    assert ss.match_recognize(ROWS.to_pandas(), CLAUSE).to_pylist() == EXPECTED


@pytest.mark.parametrize("given", [{"time": "t"}, {"type": "x"}, {"plan": "left"}, {"lateness": "5 s"}])
def test_arguments_of_other_queries_do_not_apply(given: dict[str, str]) -> None:
    with pytest.raises(ss.QueryError, match="does not apply to MATCH_RECOGNIZE"):
        ss.query(f"MATCH_RECOGNIZE ({CLAUSE})").run_local(ROWS, **given)


def test_clauses_of_the_query_language_cannot_be_added() -> None:
    with pytest.raises(ss.QueryError, match="cannot be added to MATCH_RECOGNIZE"):
        ss.query(f"MATCH_RECOGNIZE ({CLAUSE})").where("x > 3")
    with pytest.raises(ss.UnsupportedQuery, match="together with other queries"):
        ss.run_many({"q": f"MATCH_RECOGNIZE ({CLAUSE})"}, ROWS, time="t")


def test_a_skip_to_a_missing_row_fails_or_goes_on() -> None:
    clause = "ORDER BY t MEASURES COUNT(*) AS n AFTER MATCH SKIP TO B PATTERN (A B?) DEFINE B AS x > 5"
    with pytest.raises(ss.BadInputError, match="absent"):
        ss.match_recognize(ROWS, clause)
    assert ss.match_recognize(ROWS, clause, on_skip_error="next").to_pylist()[-1] == {"n": 1}
    with pytest.raises(ss.QueryError, match="on_skip_error"):
        ss.match_recognize(ROWS, clause, on_skip_error="never")


def test_explain_shows_program_and_conditions() -> None:
    plan = ss.query(f"MATCH_RECOGNIZE ({CLAUSE})").explain(ROWS)
    assert "label UP" in plan
    assert "a bit of the row: x > PREV(x)" in plan
    assert "first: int64" in plan


def test_the_command_line_needs_no_time(tmp_path: Path) -> None:
    (tmp_path / "up.sql").write_text(f"-- streaks\nMATCH_RECOGNIZE ({CLAUSE})")
    (tmp_path / "rows.csv").write_text("t,x\n1,1\n2,2\n3,5\n4,4\n5,6\n")
    words = [str(tmp_path / "up.sql"), "--input", str(tmp_path / "rows.csv")]
    result = CliRunner().invoke(app, ["run", *words, "--format", "csv", "--engine", "local"])
    assert result.stdout.split() == ['"first","n"', "2,2", "5,1"]
    assert CliRunner().invoke(app, ["check", *words]).exit_code == 0
    assert "label UP" in CliRunner().invoke(app, ["explain", *words]).output
    other = CliRunner().invoke(app, ["run", "A; B", "--input", str(tmp_path / "rows.csv")])
    assert "requires --time" in str(other.exception)
