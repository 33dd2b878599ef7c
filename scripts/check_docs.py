"""Check the documents: relative links must resolve, and `query` blocks must parse."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from streamsift.errors import QuerySyntaxError
from streamsift.language.parser import parse

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(?P<mark>[^\n]*)\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ +(?P<title>.+?) *$", re.MULTILINE)


def main() -> int:
    documents = [
        ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "PERFORMANCE.md")
    ]
    documents += sorted((ROOT / "docs").rglob("*.md"))
    problems = [problem for document in documents for problem in check(document)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(documents)} documents, {len(problems)} problems")
    return 1 if problems else 0


def check(document: Path) -> Iterator[str]:
    text = document.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if match["mark"].strip() == "query":
            try:
                parse(match["body"])
            except QuerySyntaxError as error:
                yield f"{place(document, text, match.start())}: the query does not parse: {error}"
    for match in LINK.finditer(without_code(text)):
        target, _, anchor = match["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = document.parent / target if target else document
        if not file.exists():
            yield f"{place(document, text, match.start())}: the link `{match['target']}` does not resolve"
        elif anchor and anchor not in anchors(file):
            yield f"{place(document, text, match.start())}: `{file.name}` has no heading `#{anchor}`"


def without_code(text: str) -> str:
    """Return the text with code replaced by spaces, because `[id](x)` in code is not a link. Offsets stay the same."""
    return re.sub(r"`[^`\n]+`", blanked, FENCE.sub(blanked, text))


def blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def anchors(file: Path) -> set[str]:
    """Return the anchors of headings: lowercase, without punctuation, spaces as hyphens."""
    titles = HEADING.findall(FENCE.sub("", file.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def place(document: Path, text: str, offset: int) -> str:
    return f"{document.relative_to(ROOT)}:{text.count(chr(10), 0, offset) + 1}"


if __name__ == "__main__":
    sys.exit(main())
