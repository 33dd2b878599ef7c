"""Run each example cell by cell, and compare its notebook with its script."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


def maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "scripts" / "make_notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_five_examples() -> None:
    assert len(SCRIPTS) == 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
    made = maker().notebook(script.read_text(encoding="utf-8"))["cells"]
    assert [cell["source"] for cell in cells] == [cell["source"] for cell in made], "run `make notebooks`"
    assert any(cell.get("outputs") for cell in cells), "run `make notebooks`"
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{script.stem} {cell['id']}", "exec"), namespace)
