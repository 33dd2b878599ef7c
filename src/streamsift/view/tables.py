"""Print a result as a table on the terminal: one column per variable, its event in one cell."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def result_table(rows: pa.Table, title: str | None = None, caption: str | None = None) -> Table:
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", header_style="bold")
    for name in rows.column_names:
        table.add_column(escape(name), overflow="fold")
    for row in rows.to_pylist():
        table.add_row(*(escape(cell_text(value)) for value in row.values()))
    return table


def print_table(rows: pa.Table, caption: str, console: Console | None = None) -> None:
    """Print as wide as a terminal is; elsewhere plain lines, a row on each, for `grep` and `less`."""
    console = console or Console()
    if console.is_terminal:
        console.print(result_table(rows, caption=caption))
        return
    lines = ([cell_text(v).replace("\n", " | ") for v in row.values()] for row in rows.to_pylist())
    cells = [rows.column_names, *lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    print(caption)


def cell_text(value: Any) -> str:
    match value:
        case None:
            return "-"
        case dict():
            return " ".join(f"{key}={cell_text(inner)}" for key, inner in value.items())
        case list():
            return "\n".join(cell_text(inner) for inner in value)
        case float():
            return f"{value:.10g}"
        case datetime():
            precision = "auto" if value.microsecond % 1000 else "milliseconds" if value.microsecond else "seconds"
            return value.isoformat(sep=" ", timespec=precision).removesuffix("+00:00")
        case timedelta():
            # A pandas timedelta prints differently: convert it to whole microseconds.
            text = str(timedelta(microseconds=value // timedelta(microseconds=1)))
            return text.rstrip("0") if "." in text else text
        case _:
            return str(value)


def how_many(shown: int, total: int | None, what: str = "match", plural: str = "matches") -> str:
    """Return the line under a table; a total of None: there are more rows, and nobody counted them.

    >>> how_many(20, None), how_many(20, 103), how_many(3, 3)
    ('the first 20 matches; there are more', 'the first 20 of 103 matches', '3 matches')
    """
    if total is None:
        return f"the first {what if shown == 1 else f'{shown:,} {plural}'}; there are more"
    noun = what if total == 1 else plural
    return f"{total:,} {noun}" if shown >= total else f"the first {shown:,} of {total:,} {noun}"
