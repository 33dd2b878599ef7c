"""Every block of code in the README and in docs/ runs, and prints what the page says it prints.

`STREAMSIFT_GOLDENS=rewrite` writes what is printed now into the pages.
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

    def run(words: list[str]) -> str:
        code, out, error = command(words, capsys)
        assert code == 0, error
        return out

    text = path.read_text(encoding="utf-8")
    page = Page(path, run, {"spark": spark, "__name__": "__main__"})
    now = page.run()
    if os.environ.get("STREAMSIFT_GOLDENS") == "rewrite":
        path.write_text(now, encoding="utf-8")
    else:
        assert now == text
