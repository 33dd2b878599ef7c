"""The scripts in examples/ in, a notebook beside each out: `# %%` begins a cell, `# %% [markdown]` one of text.

The script is what is edited; the notebook is made from it (`make notebooks`), and a test says when that was forgotten.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CELL = re.compile(r"^# %%(?P<text> \[markdown\])?\n(?P<body>.*?)(?=^# %%|\Z)", re.MULTILINE | re.DOTALL)


def main() -> None:
    for script in sorted(EXAMPLES.glob("*.py")):
        script.with_suffix(".ipynb").write_text(notebook(script.read_text(encoding="utf-8")), encoding="utf-8")


def notebook(script: str) -> str:
    cells = [cell(number, match) for number, match in enumerate(CELL.finditer(script))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def cell(number: int, match: re.Match[str]) -> dict[str, Any]:
    body = match["body"].strip("\n")
    if match["text"]:
        lines = [line.removeprefix("#").removeprefix(" ") for line in body.splitlines()]
        return {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}, "source": source(lines)}
    kept = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "execution_count": None, "outputs": []}
    return {**kept, "source": source(body.splitlines())}


def source(lines: list[str]) -> list[str]:
    """Lines as notebooks keep them: each but the last with its end."""
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:]


if __name__ == "__main__":
    main()
