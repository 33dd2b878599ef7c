"""What users of the package rely on: its names, its examples in docstrings, its types, its logger, its warnings."""

from __future__ import annotations

import doctest
import importlib
import inspect
import logging
import warnings
from importlib import resources

import pyarrow as pa
import pytest

import streamsift as ss

NAMES = """
    BadInputError BadRowsWarning MemoryLimitExceeded Query QueryError QuerySyntaxError SetupError Stream StreamMetrics
    StreamsiftError StreamsiftWarning UnmatchedClassWarning UnsupportedQuery all_of any_of check_cluster event
    explain_many match_recognize metrics open_many plot query register resume run_many seq show sql
""".split()


DOCUMENTED = (
    "api.query",
    "api.building",
    "api.arguments",
    "api.many",
    "api.show",
    "api.streams",
    "errors",
    "runtime.resources.budget",
    "view.axes",
    "view.tables",
)


def test_the_public_names_are_these() -> None:
    assert sorted(ss.__all__) == sorted(NAMES)
    assert all(getattr(ss, name).__doc__ for name in ss.__all__)


def test_every_public_method_is_documented_and_typed() -> None:
    for name, method in inspect.getmembers(ss.Query, inspect.isfunction):
        if not name.startswith("_"):
            assert method.__doc__, name
            assert "return" in method.__annotations__, name


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(f"streamsift.{name}")
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert tried


def test_the_package_is_marked_as_typed() -> None:
    assert (resources.files("streamsift") / "py.typed").is_file()


def test_the_logger_is_quiet_unless_asked(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("streamsift").handlers)
    events = pa.table({"t": [1, 2], "kind": ["A", "B"]})
    ss.query("A; B").run_local(events, time="t", type="kind")
    assert capsys.readouterr() == ("", "")
    with caplog.at_level(logging.DEBUG, logger="streamsift"):
        ss.query("A; B").run_local(events, time="t", type="kind")
    assert any("detect" in record.message for record in caplog.records)


def test_warnings_have_a_category_of_their_own() -> None:
    events = pa.table({"t": [1, None, 2], "kind": ["A", "A", "B"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ss.StreamsiftWarning)
        with pytest.raises(ss.BadRowsWarning, match="1 row"):
            ss.query("A; B").run_local(events, time="t", type="kind", bad_rows="drop")
    with pytest.warns(ss.BadRowsWarning) as told:
        ss.query("A; B").run_local(events, time="t", type="kind", bad_rows="drop")
    assert told[0].filename == __file__  # it points at the caller's line
