"""Format queries, explanations and results as HTML for notebooks."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import pyarrow as pa

from streamsift.language.tokens import RESERVED_WORDS
from streamsift.logical.bound import BoundQuery
from streamsift.view.plan_tree import plan_svg
from streamsift.view.tables import cell_text, how_many

SHOWN_ROWS = 20
OPEN_SECTIONS = ("Why", "Analyzed")  # the others repeat the chart or are long: a click opens them
WORDS = RESERVED_WORDS | frozenset("COUNT SUM AVG MIN MAX FINAL EACH CHANGES EVENTS EVENT".split())
TOKEN = re.compile(r"(?P<comment>--[^\n]*)|(?P<string>'[^']*'|\"[^\"]*\")|(?P<word>\w+)|(?P<other>[^\w'\"-]+|-)")


class Explanation(str):
    """The text of `explain`; a notebook shows it with the plan as a chart."""

    svg: str

    def __new__(cls, text: str, svg: str = "") -> Explanation:
        made = super().__new__(cls, text)
        made.svg = svg
        return made

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}</div>" + "".join(_section(title, lines) for title, lines in sections(self).items())


def sections(explained: str) -> dict[str, list[str]]:
    """Split an explanation by its headings, which are the lines that are not indented."""
    by_heading: dict[str, list[str]] = {}
    for line in explained.splitlines():
        if line.startswith(" "):
            by_heading[list(by_heading)[-1]].append(line[2:])
        else:
            by_heading[line] = []
    return by_heading


def _section(title: str, lines: list[str]) -> str:
    is_open = " open" if title in OPEN_SECTIONS else ""
    body = escape("\n".join(lines))
    summary = f"<summary><b>{escape(title)}</b></summary>"
    return f'<details{is_open}>{summary}<pre style="margin-left:1em">{body}</pre></details>'


def query_html(text: str, sketch: BoundQuery | None) -> str:
    """Return the text with its keywords marked and, if there is a sketch, its pattern as a tree."""
    tree = f"<div>{plan_svg(sketch)}</div>" if sketch is not None else ""
    return f"<pre>{''.join(map(_marked, TOKEN.finditer(text)))}</pre>{tree}"


def _marked(token: re.Match[str]) -> str:
    colors = {"comment": "#777777", "string": "#0a7a3f"}
    shown = escape(token[0])
    if token.lastgroup in colors:
        return f'<span style="color:{colors[token.lastgroup]}">{shown}</span>'
    return f'<b style="color:#1a4f8b">{shown}</b>' if token[0].upper() in WORDS else shown


def table_html(rows: pa.Table, limit: int = SHOWN_ROWS) -> str:
    """Return the first rows of a result: a column for each variable, its event as a small table in one cell."""
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in rows.column_names)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:left;vertical-align:top">{_cell(v)}</td>' for v in row.values())
        + "</tr>"
        for row in rows.slice(0, limit).to_pylist()
    )
    caption = how_many(min(limit, rows.num_rows), rows.num_rows, "row", "rows")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{caption}</p>"


def _cell(value: Any) -> str:
    match value:
        case dict():
            return "<br>".join(f"<small>{escape(k)}</small>&nbsp;{escape(cell_text(v))}" for k, v in value.items())
        case list():
            return "<hr>".join(map(_cell, value))
        case _:
            return escape(cell_text(value))


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext streamsift`: notebooks show Arrow tables, the results of `run_local`, as HTML."""
    ipython.display_formatter.formatters["text/html"].for_type(pa.Table, table_html)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext streamsift`."""
    ipython.display_formatter.formatters["text/html"].pop(pa.Table, None)
