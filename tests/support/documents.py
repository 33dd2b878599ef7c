"""A document in, its blocks of code out, each run as its mark says; what a block prints is compared with the next one.

| mark | what is done |
| --- | --- |
| `python` | run, in one namespace for the page; a `text` block right after it is what it prints |
| `sh` | lines that begin with `streamsift` are run; a `text` block right after it is what the last one prints |
| `query` | parsed; on a page that has `events`, run, and a `text` block right after it is the result |
| `sql` | run by `spark.sql` |

`<!-- not run: reason -->` on the line before a block says why it cannot be: Python is then only compiled.
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
# What a shell block may begin with besides `streamsift`: these set the machine up, and the tests do not.
OTHER_COMMANDS = ("make ", "pip ", "python -m ", "git ", "cd ", ". .venv", "#", "spark-submit ", "head ", "export ")
FOREIGN = ("text", "sql", "json", "toml", "yaml", "mermaid")  # nothing to run, or another system's language


@dataclass(frozen=True, slots=True)
class Block:
    mark: str
    body: str
    line: int
    is_run: bool
    expected: str | None  # the text block right after it
    expected_at: tuple[int, int] | None  # its place in the document


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    found = list(BLOCK.finditer(text))
    for number, match in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
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
    """Runs the blocks of a page one after the other; `command` runs words of the command line and gives its output."""

    path: Path
    command: Callable[[list[str]], str]
    namespace: dict[str, Any]

    def run(self) -> str:
        """The page as it should be: with what its blocks print now."""
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
        assert block.mark in FOREIGN or not block.is_run, f"line {block.line}: nothing runs a `{block.mark}` block"
        return None

    def _python(self, compiled: Any) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compiled, self.namespace)
        return printed.getvalue()

    def _query(self, text: str) -> str | None:
        query = ss.query(text)
        if "events" not in self.namespace:
            return None
        result = query.run_local(
            self.namespace["events"], **self.namespace.get("bindings", {"time": "t", "type": "kind"})
        )
        return "\n".join([*_lines(result)])

    def _shell(self, body: str) -> str:
        printed = ""
        for line in body.replace("\\\n", " ").splitlines():
            if line.startswith("streamsift "):
                words = shlex.split(line, comments=True)[1:]
                # Spark stays out of it: the same engine in this process, and the tests' session is not stopped.
                printed = self.command(words + ["--engine", "local"] * (words[0] in ("run", "explain")))
            else:
                assert not line.strip() or line.startswith(OTHER_COMMANDS), f"{self.path.name}: who runs `{line}`?"
        return printed


def _lines(result: Any) -> Iterator[str]:
    """A result as small text: a line for each row, events as `class@time`."""
    found = result.to_pylist()
    if "match_end" in result.column_names and "rank" not in result.column_names:  # only that of rankings is promised
        found.sort(key=lambda row: (row["match_end"], row["match_start"], str(row)))
    rows = [{name: _cell(value) for name, value in row.items()} for row in found]
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
