"""What mkdocs calls while it builds the site: query blocks become SQL to colour, some pages come from the root."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FROM_ROOT = {"architecture.md": "ARCHITECTURE.md", "measured.md": "PERFORMANCE.md"}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    if page.file.src_uri in FROM_ROOT:
        # Links in the root's documents start from the root.
        markdown = (ROOT / FROM_ROOT[page.file.src_uri]).read_text(encoding="utf-8").replace("](docs/", "](")
    markdown = re.sub(r"^<!-- not run: (?P<why>[^\n]+) -->\n", "", markdown, flags=re.MULTILINE)
    return re.sub(r"^```query$", "```sql", markdown, flags=re.MULTILINE)
