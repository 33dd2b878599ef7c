"""Print a result as a text table, and format its values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from streamsift.view.match_columns import TextColumn

GAP = 2  # blanks between columns
MAX_WORD = 32  # a longer word does not widen a column that has to be narrow


def print_table(columns: Sequence[TextColumn], caption: str, console: Console | None = None) -> None:
    """Print the columns that fit a terminal and name the others; without a terminal, all of them, a row per line."""
    console = console or Console()
    if not console.is_terminal:
        console.print(Text("\n".join([*table_lines(columns), caption])), soft_wrap=True)
        return
    shown, widths = fit(columns, console.width)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_edge=False)
    for column, width in zip(shown, widths, strict=True):
        table.add_column(Text(column.name), width=width, overflow="fold")
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*map(Text, cells))
    console.print(table)
    hidden = [column.name for column in columns if column not in shown]
    console.print(Text(caption, style="italic"))
    if hidden:
        console.print(Text(f"not shown: {', '.join(hidden)} (--format json shows all columns)", style="italic dim"))


def table_lines(columns: Sequence[TextColumn]) -> list[str]:
    """Return the lines of a table that is as wide as its cells."""
    lines = [[column.name for column in columns], *zip(*(column.cells for column in columns), strict=True)]
    widths = [_width(column) for column in columns]
    padded = (
        [cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)] for line in lines
    )
    return [(" " * GAP).join(line).rstrip() for line in padded]


def fit(columns: Sequence[TextColumn], width: int) -> tuple[list[TextColumn], list[int]]:
    """Return the columns that fit a width, and the width of each.

    Drop minor attributes first, then wrap cells between words, then drop more columns, from the right.
    """
    shown = list(columns)
    while True:
        minor = [column for column in shown if column.weight > 1]
        widths = [_width(column) for column in shown]
        room = width - GAP * (len(shown) - 1)
        if sum(widths) <= room:
            return shown, widths
        if minor:
            last = _last(minor)
            shown = [each for each in shown if (each.weight, each.attribute) != (last.weight, last.attribute)]
            continue
        narrow = [_narrow(column) for column in shown]
        if sum(narrow) <= room:
            return shown, _shared_out(widths, narrow, room)
        if len(shown) == 1:
            return shown, [room]
        shown.remove(_last(shown))


def _last(columns: list[TextColumn]) -> TextColumn:
    weight = max(column.weight for column in columns)
    return [column for column in columns if column.weight == weight][-1]


def _width(column: TextColumn) -> int:
    return max(map(cell_len, (column.name, *column.cells)))


def _narrow(column: TextColumn) -> int:
    """Return the least width that breaks neither the header nor a word, unless the word is very long."""
    words = (word for cell in column.cells for word in cell.split(" "))
    return max(cell_len(column.name), min(MAX_WORD, max(map(cell_len, words), default=0)))


def _shared_out(widths: list[int], narrow: list[int], room: int) -> list[int]:
    """Return widths that fill the room: the widest columns give up space first."""
    widths = list(widths)
    while sum(widths) > room:
        widest = max((n for n in range(len(widths)) if widths[n] > narrow[n]), key=lambda n: widths[n])
        widths[widest] -= 1
    return widths


def wrapped(text: str, width: int) -> str:
    """Wrap the long lines of a plan; what follows a break is indented further than the line.

    >>> print(wrapped("  filter: only rows that pass", 20))
      filter: only rows
          that pass
    """
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += wrap(line, width, subsequent_indent=indent, drop_whitespace=True, break_long_words=False) or [""]
    return "\n".join(lines)


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
            return datetime_text(value, precision)
        case timedelta():
            # A pandas timedelta prints differently: convert it to whole microseconds.
            text = str(timedelta(microseconds=value // timedelta(microseconds=1)))
            return text.rstrip("0") if "." in text else text
        case _:
            return str(value)


def datetime_text(value: datetime, precision: str) -> str:
    """Return a time without the offset of UTC; `precision` is a `timespec` of isoformat."""
    return value.isoformat(sep=" ", timespec=precision).removesuffix("+00:00")


def how_many(shown: int, total: int | None, what: str = "match", plural: str = "matches") -> str:
    """Return the caption of a table. A total of None means that there are more rows, which were not counted.

    >>> how_many(20, None), how_many(20, 103), how_many(3, 3)
    ('the first 20 matches; there are more', 'the first 20 of 103 matches', '3 matches')
    """
    if total is None:
        return f"the first {what if shown == 1 else f'{shown:,} {plural}'}; there are more"
    noun = what if total == 1 else plural
    return f"{total:,} {noun}" if shown >= total else f"the first {shown:,} of {total:,} {noun}"
