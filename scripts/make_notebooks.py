"""The scripts in examples/ in, a notebook beside each out: `# %%` begins a cell, `# %% [markdown]` one of text.

The script is what is edited; the notebook is made from it and run (`make notebooks`), so that who only looks at it sees
what the cells give; a test says when that was forgotten.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CELL = re.compile(r"^# %%(?P<text> \[markdown\])?\n(?P<body>.*?)(?=^# %%|\Z)", re.MULTILINE | re.DOTALL)


# Charts are stored as pictures: a page that only shows notebooks runs no JavaScript.
PICTURES = "import altair, warnings; altair.renderers.enable('png', scale_factor=1); warnings.simplefilter('ignore')"


def main() -> None:
    for script in sorted(EXAMPLES.glob("*.py")):
        print(f"running {script.name}", flush=True)
        made = executed(notebook(script.read_text(encoding="utf-8")))
        script.with_suffix(".ipynb").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def executed(content: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, and nothing of the run that changes from one to the next."""
    import nbformat
    from nbclient import NotebookClient

    first = {"cell_type": "code", "id": "first", "metadata": {}, "execution_count": None, "outputs": []}
    cells = [{**first, "source": PICTURES}, *({**cell, "source": "".join(cell["source"])} for cell in content["cells"])]
    whole = nbformat.from_dict({**content, "cells": cells})
    NotebookClient(whole, timeout=600, kernel_name="python3").execute()
    return {**content, "cells": [kept(found) for found in whole.cells[1:]]}


def kept(found: dict[str, Any]) -> dict[str, Any]:
    """A cell with its source line by line, as Jupyter saves it; what is said to stderr is not part of it."""
    found = {**found, "metadata": {}, "source": source(found["source"].splitlines())}
    if found["cell_type"] == "code":
        outputs = [output for output in found["outputs"] if output.get("name") != "stderr"]
        found |= {"execution_count": None, "outputs": [{**o, **unnumbered(o)} for o in outputs]}
    return found


def unnumbered(output: dict[str, Any]) -> dict[str, Any]:
    return {"execution_count": None} if output["output_type"] == "execute_result" else {}


def notebook(script: str) -> dict[str, Any]:
    """Without outputs."""
    cells = [cell(number, match) for number, match in enumerate(CELL.finditer(script))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


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
