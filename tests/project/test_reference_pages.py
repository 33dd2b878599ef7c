"""Compare the generated parts of the reference with the code, and exit codes with their page."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import Any

import pytest

import streamsift
from streamsift.command.exit_codes import ExitCode

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
assert SPEC is not None
assert SPEC.loader is not None
make_reference: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_reference)


@pytest.mark.parametrize("name", make_reference.PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    page = ROOT / "docs" / name
    if os.environ.get("STREAMSIFT_GOLDENS") == "rewrite":
        make_reference.main()
    assert page.read_text(encoding="utf-8") == make_reference.render(page), "run `make docs`"


def test_the_api_page_has_every_exported_name() -> None:
    text = "\n".join(make_reference.python_api())
    assert [name for name in streamsift.__all__ if f"streamsift.{name}\n" not in text and f"`{name}`" not in text] == []


def test_the_exit_codes_are_listed() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {0, *ExitCode}
