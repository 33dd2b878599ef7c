"""Files that readers tend to disagree on, read in this process; the documentation lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from file_cases import CASES, TITLES, FileCase
from streamsift.errors import BadInputError
from streamsift.runtime.input import read_table

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "files.md"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_file_has_these_rows_or_an_error(case: FileCase, tmp_path: Path) -> None:
    source = case.write(tmp_path)
    if case.rows is None:
        with pytest.raises(BadInputError, match=re.escape(case.error)):
            read_table(source)
    else:
        assert read_table(source).to_pylist() == case.rows


def test_the_documentation_lists_the_cases() -> None:
    table = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [title for title in table if title in TITLES] == TITLES
