"""Make a notebook from each script in examples/ and run it.

In a script, `# %%` starts a code cell and `# %% [markdown]` a text cell. Edit the script, then run `make notebooks`; a
test fails if the notebook is out of date. The notebooks contain their outputs for readers who do not run them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CELL = re.compile(r"^# %%(?P<text> \[markdown\])?\n(?P<body>.*?)(?=^# %%|\Z)", re.MULTILINE | re.DOTALL)


# Store charts as images: sites that only display notebooks run no JavaScript.
IMAGES = "import altair, warnings; altair.renderers.enable('png', scale_factor=1); warnings.simplefilter('ignore')"


def main() -> None:
    for script in sorted(EXAMPLES.glob("*.py")):
        print(f"running {script.name}", flush=True)
        made = executed(notebook(script.read_text(encoding="utf-8")))
        script.with_suffix(".ipynb").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def executed(content: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of its cells, without anything that differs from run to run."""
    import nbformat
    from nbclient import NotebookClient

    first = {"cell_type": "code", "id": "first", "metadata": {}, "execution_count": None, "outputs": []}
    cells = [{**first, "source": IMAGES}, *({**cell, "source": "".join(cell["source"])} for cell in content["cells"])]
    whole = nbformat.from_dict({**content, "cells": cells})
    NotebookClient(whole, timeout=600, kernel_name="python3").execute()
    return {**content, "cells": [saved(cell) for cell in whole.cells[1:]]}


def saved(executed_cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell as Jupyter saves it, with its source as a list of lines; omit its output to stderr."""
    content = {**executed_cell, "metadata": {}, "source": source(executed_cell["source"].splitlines())}
    if content["cell_type"] == "code":
        outputs = [output for output in content["outputs"] if output.get("name") != "stderr"]
        content |= {"execution_count": None, "outputs": [{**o, **unnumbered(o)} for o in outputs]}
    return content


def unnumbered(output: dict[str, Any]) -> dict[str, Any]:
    return {"execution_count": None} if output["output_type"] == "execute_result" else {}


def notebook(script: str) -> dict[str, Any]:
    """Return the notebook of a script, without outputs."""
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
    code = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "execution_count": None, "outputs": []}
    return {**code, "source": source(body.splitlines())}


def source(lines: list[str]) -> list[str]:
    """Return lines as notebooks store them: all but the last end with a newline."""
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:]


if __name__ == "__main__":
    main()
