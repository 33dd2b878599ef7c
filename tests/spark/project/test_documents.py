"""Run every code block in the README and in docs/, and compare the output with the page.

`STREAMSIFT_GOLDENS=rewrite` writes the current output into the pages.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from documents import ROOT, Page, pages
from run_command import command


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_page(
    path: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    def run(words: list[str]) -> str:
        code, out, error = command(words, capsys)
        assert code == 0, error
        return out

    text = path.read_text(encoding="utf-8")
    page = Page(path, run, {"__name__": "__main__"})  # `SparkSession.builder.getOrCreate()` returns the fixture
    now = page.run()
    if os.environ.get("STREAMSIFT_GOLDENS") == "rewrite":
        path.write_text(now, encoding="utf-8")
    else:
        assert now == text
