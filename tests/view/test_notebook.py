"""Notebooks: what queries, plans, results and errors look like, and the cell magic."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import streamsift as ss
from streamsift.view import notebook
from streamsift.view.plots import sign_frame

EVENTS = pa.table({"ts": [1, 2, 3, 7], "kind": ["Ask", "Bid", "Ask", "Bid"], "price": [1.0, 2.0, 3.0, 4.0]})
PAIRS = "PATTERN SEQ(Ask a, Bid b) WITHIN 10"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell()
    shell.user_ns.update(ss=ss, events=EVENTS)
    ss.load_ipython_extension(shell)
    yield shell
    ss.unload_ipython_extension(shell)
    shell.history_manager.end_session()


def test_explanations_and_queries_have_a_tree() -> None:
    explained = ss.query(PAIRS).explain(EVENTS, time="ts", type="kind")
    tree = ElementTree.fromstring(explained.svg)
    words = ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert any(word.startswith("Bid b") for word in words)
    assert "<details open><summary><b>Why" in explained._repr_html_()
    shown = ss.query("PATTERN SEQ(A a, B b) -- <pairs>\nWHERE a.s = '<x>'")._repr_html_()
    assert "&lt;pairs&gt;" in shown
    assert "<x>" not in shown
    assert ss.event("A")._repr_html_()


def test_the_repr_of_a_query_is_the_query() -> None:
    assert repr(ss.query(PAIRS)) == PAIRS
    assert repr(ss.event("A", "a") >> ss.event("B", "b")) == "PATTERN SEQ(A a, B b)"


def test_tables_are_displayed_as_html(shell: InteractiveShell) -> None:
    matches = ss.query(PAIRS).run_local(EVENTS, time="ts", type="kind")
    html = shell.display_formatter.format(matches)[0]["text/html"]
    assert html.count("<tr>") == 1 + matches.num_rows
    assert "<p>3 rows</p>" in html
    ss.unload_ipython_extension(shell)
    assert "text/html" not in shell.display_formatter.format(matches)[0]


def test_results_on_spark_are_displayed_alike_and_other_frames_run_no_job() -> None:
    rows = pa.table({"x": list(range(50))})

    class Frame:
        isStreaming = False  # noqa: N815

        def limit(self, count: int) -> Any:
            return SimpleNamespace(toArrow=lambda: rows.slice(0, count))

        def _repr_html_(self) -> None:
            return None

    assert notebook.frame_html(Frame()) is None
    result = sign_frame(Frame(), PAIRS, "ts")
    html = notebook.frame_html(result)
    assert html is not None
    assert "the first 20 rows; there are more" in html
    assert html.count("<tr>") == 21


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("events --time ts --type kind", ""),
        ("events", "time: ts, type: kind\n"),
        ("events.slice(0,2) --time ts --type kind --as pairs", ""),
    ],
)
def test_the_magic_runs_a_query(
    shell: InteractiveShell, line: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = shell.run_cell_magic("streamsift", line, PAIRS)
    assert result.num_rows == (1 if "slice" in line else 3)
    assert capsys.readouterr().out == expected
    assert ("pairs" in shell.user_ns) == ("--as" in line)


def test_the_magic_draws_and_explains(shell: InteractiveShell) -> None:
    assert shell.run_cell_magic("streamsift", "events --plot", PAIRS).to_dict()["layer"]
    assert shell.run_cell_magic("streamsift", "events --explain", PAIRS).startswith("Query")
    assert shell.run_cell_magic("streamsift", "events --limit 2", PAIRS).num_rows == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("event", "no variable is called `event`"),
        ("", "the following arguments are required: data"),
        ("events --times ts", "unrecognized arguments"),
        ("events.drop_columns('ts')", "the time column is unclear"),
    ],
)
def test_the_magic_refuses(shell: InteractiveShell, line: str, message: str) -> None:
    with pytest.raises(ss.QueryError, match=message):
        shell.run_cell_magic("streamsift", line, PAIRS)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("WHERE a.pr", {"price"}),
        ("WITH", {"WITH", "WITHIN"}),
        ("PATTERN SEQ(As", {"AS", "Ask"}),
        ("k", {"kind"}),
    ],
)
def test_the_cell_is_completed(shell: InteractiveShell, typed: str, expected: set[str]) -> None:
    def completions(cell: str) -> set[str]:
        with provisionalcompleter():
            return {completion.text for completion in shell.Completer.completions(cell, len(cell))}

    assert expected <= completions(f"%%streamsift events --time ts\n{typed}")
    assert not completions(f"x = 1\n{typed}") & (expected - {typed})


def test_an_error_shows_the_caret_first_and_no_frame_of_ours(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("q = ss.query('PATTERN SEQ(A a B b)')")
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("QuerySyntaxError: unexpected `B`")
    assert out[2].strip().endswith("^")
    assert not any("/streamsift/" in line for line in out)
    assert any("q = ss.query(" in line for line in out)
