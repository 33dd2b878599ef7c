"""Adapt the documents to mkdocs while it builds the site.

Documents link to each other as files of the repository, so that the links also work there. `ARCHITECTURE.md`,
`PERFORMANCE.md` and the notebooks of examples/ are outside docs/: they become generated pages, and links to them lead
there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
DOCUMENTS = {"ARCHITECTURE.md": "architecture.md", "PERFORMANCE.md": "benchmarks.md"}
GENERATED = DOCUMENTS | {f"examples/{path.name}": f"examples/{path.stem}.md" for path in NOTEBOOKS}
OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\((?:\.\./)+(?P<target>[\w./-]+)(?P<anchor>#[\w-]+)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made from documents at the root and from notebooks."""
    for document, page in DOCUMENTS.items():
        content = (ROOT / document).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=content))
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        content = "\n\n".join(part for cell in cells for part in _cell(cell))
        files.append(File.generated(config, f"examples/{path.stem}.md", content=content))
    return files


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    """Yield a cell of a notebook as Markdown: its text or code, and its outputs."""
    source = "".join(cell["source"])
    yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if "image/png" in data:
            yield f"![Chart](data:image/png;base64,{''.join(data['image/png'].split())})"
        elif "text/html" in data:
            yield "".join(data["text/html"])
        else:
            yield f"```text\n{''.join(data.get('text/plain') or output.get('text', '')).rstrip()}\n```"


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Remove marks for the tests, and point links outside docs/ to generated pages."""
    markdown = re.sub(
        r"^<!-- (not run: [^\n]+|generated: [^\n]+|end of generated) -->\n", "", markdown, flags=re.MULTILINE
    )
    up = "../" * page.file.src_uri.count("/")

    def link(match: re.Match[str]) -> str:
        if (ROOT / "docs" / Path(page.file.src_uri).parent / _target(match)).resolve().is_relative_to(ROOT / "docs"):
            return match[0]
        if match["target"] in GENERATED:
            return f"[{match['text']}]({up}{GENERATED[match['target']]}{match['anchor'] or ''})"
        return match["text"]  # a file of the repository that the site does not have

    return OUTSIDE.sub(link, markdown)


def _target(match: re.Match[str]) -> str:
    return match[0].rpartition("(")[2].rstrip(")").partition("#")[0]
