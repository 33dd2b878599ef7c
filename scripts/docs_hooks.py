"""What mkdocs calls while it builds the site: query blocks become SQL to colour, one page comes from the root."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    if page.file.src_uri == "architecture.md":
        # Links in the root's document start from the root.
        markdown = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").replace("](docs/", "](")
    markdown = re.sub(r"^<!-- not run: (?P<why>[^\n]+) -->\n", "", markdown, flags=re.MULTILINE)
    return re.sub(r"^```query$", "```sql", markdown, flags=re.MULTILINE)
