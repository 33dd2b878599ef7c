"""Format queries, explanations and results as HTML for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import pyarrow as pa

from streamsift.language.highlight import highlight_html
from streamsift.logical.bound import BoundQuery
from streamsift.view.plan_tree import plan_svg
from streamsift.view.plots import frame_origin
from streamsift.view.tables import cell_text, how_many

SHOWN_ROWS = 20
OPEN_SECTIONS = ("Why", "Analyzed")  # the others repeat the tree or are long: a click opens them


class Explanation(str):
    """The text of `explain`, which a notebook displays with the pattern as a tree.

    It is a string; `svg` is the tree.
    """

    svg: str

    def __new__(cls, text: str, svg: str = "") -> Explanation:
        made = super().__new__(cls, text)
        made.svg = svg
        return made

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}</div>" + "".join(_section(title, lines) for title, lines in sections(self).items())


def sections(explained: str) -> dict[str, list[str]]:
    """Split an explanation by its headings, the lines that are not indented."""
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
    """Return the highlighted text and, if there is a sketch, the pattern as a tree."""
    tree = f"<div>{plan_svg(sketch)}</div>" if sketch is not None else ""
    return highlight_html(text) + tree


def table_html(rows: pa.Table, limit: int = SHOWN_ROWS, *, has_more: bool = False) -> str:
    """Return the first rows of a result as an HTML table: a column for each variable, its event in one cell.

    `has_more` says that the rows are the first of a result whose size is unknown.
    """
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in rows.column_names)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:left;vertical-align:top">{_cell(v)}</td>' for v in row.values())
        + "</tr>"
        for row in rows.slice(0, limit).to_pylist()
    )
    total = None if has_more else rows.num_rows
    caption = how_many(min(limit, rows.num_rows), total, "row", "rows")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{caption}</p>"


def frame_html(frame: Any) -> str | None:
    """Run a batch result of `Query.run` and return its first rows; any other DataFrame is displayed as Spark does."""
    if frame_origin(frame) == (None, None) or frame.isStreaming:
        return frame._repr_html_()
    rows = frame.limit(SHOWN_ROWS + 1).toArrow()
    return table_html(rows.slice(0, SHOWN_ROWS), has_more=rows.num_rows > SHOWN_ROWS)


def _cell(value: Any) -> str:
    match value:
        case dict():
            return "<br>".join(f"<small>{escape(k)}</small>&nbsp;{escape(cell_text(v))}" for k, v in value.items())
        case list():
            return "<hr>".join(map(_cell, value))
        case _:
            return escape(cell_text(value))
