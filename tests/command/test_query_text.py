"""Test which arguments of the command line are the text of a query, and which are files."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamsift.command.arguments import read_query
from streamsift.errors import QuerySyntaxError, SetupError


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "the query is empty"), (" ", "the query is empty"), ("A?", "`\\?` is not supported"), ("A[1..2]", "range")],
)
def test_text_that_is_no_file_is_parsed(text: str, message: str) -> None:
    with pytest.raises(QuerySyntaxError, match=message):
        read_query(text)


@pytest.mark.parametrize("name", ["query", "query.txt", "data[1].txt", "queries/one"])
def test_a_missing_file_is_reported(name: str) -> None:
    with pytest.raises(SetupError, match="no such query file"):
        read_query(name)


def test_a_file_is_read_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("A+").write_text("PATTERN B b", encoding="utf-8")
    assert read_query("A+").text == "PATTERN B b"
