"""Run the code blocks of a document, each as its language requires.

| language | how a block is run |
| --- | --- |
| `python` | executed, in one namespace per page that starts empty, so that a reader can paste the blocks |
| `sh` | lines that begin with `streamsift` are executed |
| `query` | parsed; if the page has defined `events` and `bindings`, also run on them |
| `sql` | executed by the page's `spark` session |

A `text` block right after a block is its expected output; for `sh`, that of the last line. A comment
`<!-- not run: reason -->` on the line before a block excludes it; Python is then only compiled.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamsift as ss
from streamsift.view.tables import cell_text

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^(?P<skip><!-- not run: [^\n]+ -->\n)?(?P<indent> *)```(?P<mark>\w+)[^\n]*\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
# Other commands of a shell block. They set up the machine, and the tests do not run them.
OTHER_COMMANDS = ("make ", "pip ", "python -m ", "git ", "cd ", ". .venv", "#", "spark-submit ", "head ", "export ")
# Output, signatures, doctests (which tests/api runs in the docstrings), and languages of other systems.
FOREIGN = ("text", "console", "py", "pycon", "sql", "json", "toml", "yaml", "mermaid")


@dataclass(frozen=True, slots=True)
class Block:
    mark: str
    body: str
    line: int
    is_run: bool
    expected: str | None  # the text block right after it
    expected_at: tuple[int, int] | None  # its offsets in the document


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    matches = list(BLOCK.finditer(text))
    for number, match in enumerate(matches):
        following = matches[number + 1] if number + 1 < len(matches) else None
        is_output = (
            following is not None and following["mark"] == "text" and not text[match.end() : following.start()].strip()
        )
        yield Block(
            match["mark"],
            match["body"],
            text.count("\n", 0, match.start()) + 1,
            match["skip"] is None,
            following["body"] if is_output and following else None,
            following.span("body") if is_output and following else None,
        )


@dataclass(slots=True)
class Page:
    """Run the blocks of a page in order. `command` runs a command line, given as words, and returns its output."""

    path: Path
    command: Callable[[list[str]], str]
    namespace: dict[str, Any]

    def run(self) -> str:
        """Return the text of the page with the current output of its blocks."""
        text = self.path.read_text(encoding="utf-8")
        changes = []
        for block in blocks(text):
            printed = self._run(block)
            if block.expected is not None and block.expected_at is not None and printed is not None:
                changes.append((block.expected_at, printed.rstrip("\n") + "\n"))
        for (start, end), printed in reversed(changes):
            text = text[:start] + printed + text[end:]
        return text

    def _run(self, block: Block) -> str | None:
        if block.mark == "python":
            compiled = compile("\n" * block.line + block.body, str(self.path), "exec")
            return self._python(compiled) if block.is_run else None
        if block.mark == "query":
            return self._query(block.body)
        if block.mark == "sh" and block.is_run:
            return self._shell(block.body)
        if block.mark == "sql" and block.is_run:
            self.namespace["spark"].sql(block.body).collect()
            return None
        assert block.mark in FOREIGN or not block.is_run, f"line {block.line}: no rule runs a `{block.mark}` block"
        return None

    def _python(self, compiled: Any) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compiled, self.namespace)
        return printed.getvalue()

    def _query(self, text: str) -> str | None:
        query = ss.query(text)
        if "bindings" not in self.namespace:
            return None
        result = query.run_local(self.namespace["events"], **self.namespace["bindings"])
        return "\n".join([*_lines(result)])

    def _shell(self, body: str) -> str:
        printed = ""
        for line in body.replace("\\\n", " ").splitlines():
            if line.startswith("streamsift "):
                words = shlex.split(line, comments=True)[1:]
                chooses = words[0] in ("run", "explain") and "--engine" not in words
                # Not on Spark: that would stop the session of the tests.
                printed = self.command(words + ["--engine", "local"] * chooses)
            else:
                assert not line.strip() or line.startswith(OTHER_COMMANDS), f"{self.path.name}: no rule runs `{line}`"
        return printed


def _lines(result: Any) -> Iterator[str]:
    """Yield a result as text, one line per row, with events as `class@time`."""
    records = result.to_pylist()
    if "match_end" in result.column_names and "rank" not in result.column_names:  # a ranking has an order
        records.sort(key=lambda row: (row["match_end"], row["match_start"], str(row)))
    rows = [{name: _cell(value) for name, value in row.items()} for row in records]
    names = result.column_names
    widths = [max([len(name), *(len(row[name]) for row in rows)]) for name in names]
    for cells in [names, *([row[name] for name in names] for row in rows)]:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
    if not rows:
        yield "no match"


def _cell(value: Any) -> str:
    match value:
        case {"kind": kind, "t": time}:
            return f"{kind}@{time}"
        case list():
            return " ".join(_cell(inner) for inner in value) or "none"
        case _:
            return cell_text(value)
