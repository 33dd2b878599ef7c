"""What the code and the documents say of each other holds: tests that are named exist, numbers are the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents import pages
from streamsift.spark.batch.memory import WORKING_BYTES

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TEST_PATH = re.compile(r"\btests/[\w/]+(?:\.\w+)?")
RANK_TABLE = re.compile(r"^```text\n(?P<header>[^\n]*\brank\b[^\n]*)\n(?P<rows>.*?)^```$", re.MULTILINE | re.DOTALL)


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_contracts_name_tests_that_exist(path: Path) -> None:
    named = set(TEST_PATH.findall(path.read_text(encoding="utf-8")))
    assert not {name for name in named if not (ROOT / name).exists()}
    for docstring in docstrings(path):
        for paragraph in docstring.split("\n\n"):
            if paragraph.startswith("Contract"):
                files = TEST_PATH.findall(paragraph)
                assert files, f"names no test: {paragraph}"
                code = "".join((ROOT / file).read_text(encoding="utf-8") for file in files if (ROOT / file).is_file())
                for test in re.findall(r"`(test_\w+)`", paragraph):
                    assert f"def {test}(" in code, f"{test} is in none of {files}"


def test_documents_give_one_number_of_bytes_for_an_event() -> None:
    text = " ".join(page.read_text(encoding="utf-8") for page in pages())
    numbers = re.findall(r"(\d+) bytes (?:more )?(?:for )?each", " ".join(text.split()))
    assert len(numbers) >= 2
    assert set(numbers) == {str(WORKING_BYTES)}


def test_rankings_in_documents_begin_with_the_best() -> None:
    tables = [match for page in pages() for match in RANK_TABLE.finditer(page.read_text(encoding="utf-8"))]
    assert tables
    for table in tables:
        header = table["header"].split()
        ranks = [int(row.split()[header.index("rank")]) for row in table["rows"].splitlines()]
        # Each group and tick begins with its best.
        assert all(rank == 1 or rank == before + 1 for before, rank in zip([0, *ranks], ranks, strict=False)), table[0]
