"""Adapt the documents to mkdocs while it builds the site.

Documents link to each other as files of the repository, so that the links also work there. `ARCHITECTURE.md` and
`PERFORMANCE.md` are outside docs/: they become generated pages, and links to them lead there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {"ARCHITECTURE.md": "architecture.md", "PERFORMANCE.md": "benchmarks.md"}
OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\((?:\.\./)+(?P<target>[\w./-]+)(?P<anchor>#[\w-]+)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made from documents at the root."""
    for document, page in GENERATED.items():
        content = (ROOT / document).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=content))
    return files


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
