"""Extend IPython and Jupyter: `%load_ext streamsift`.

The extension displays results as HTML tables and adds the cell magic `%%streamsift`, with completion of keywords,
columns and event classes. IPython is imported only when the extension is loaded.
"""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from streamsift.api.arguments import Roles, is_spark, schema_of
from streamsift.api.query import query
from streamsift.api.show import plot
from streamsift.errors import QueryError, StreamsiftError, nearest
from streamsift.language.keywords import FUNCTIONS, GROUP_FUNCTIONS, RESERVED_WORDS
from streamsift.view.notebook import frame_html, table_html

MAGIC = "streamsift"
TIME_NAMES = ("ts", "time", "timestamp", "t")
TYPE_NAMES = ("kind", "type", "event_type", "event", "activity")
SPARK_FRAME = "pyspark.sql.dataframe.DataFrame"
MAX_CLASS_ROWS = 100_000  # read to complete the names of event classes
KEYWORDS = sorted({*RESERVED_WORDS, *FUNCTIONS, *GROUP_FUNCTIONS})


def load_ipython_extension(ipython: Any) -> None:
    """Load the extension: `%load_ext streamsift`.

    Results of `run_local` and `run` are then displayed as HTML tables, and the cell magic `%%streamsift` runs a query:

        %%streamsift events --time ts --type kind
        PATTERN SEQ(Washing w, !Disinfection d, Operating o)
        WHERE [id]
        WITHIN 1 hour

    `%%streamsift?` lists its options.

    Args:
        ipython: The IPython shell. `%load_ext` passes it.
    """
    from IPython.core.completer import context_matcher

    formatter = ipython.display_formatter.formatters["text/html"]
    formatter.for_type(pa.Table, table_html)
    formatter.for_type_by_name(*SPARK_FRAME.rsplit(".", 1), frame_html)
    magic = _Magic(ipython)
    ipython.register_magic_function(magic, "cell", MAGIC)

    def complete(context: Any) -> Any:  # a function, since IPython sets attributes on it
        return magic.complete(context)

    ipython.Completer.custom_matchers.append(context_matcher(identifier=MAGIC)(complete))


def unload_ipython_extension(ipython: Any) -> None:
    """Unload the extension: `%unload_ext streamsift`.

    Args:
        ipython: The IPython shell. `%unload_ext` passes it.
    """
    formatter = ipython.display_formatter.formatters["text/html"]
    formatter.pop(pa.Table, None)
    formatter.pop(SPARK_FRAME, None)
    ipython.magics_manager.magics["cell"].pop(MAGIC, None)
    matchers = ipython.Completer.custom_matchers
    matchers[:] = [m for m in matchers if getattr(m, "matcher_identifier", "") != MAGIC]


@dataclass(slots=True)
class _CellOptions:
    """The options of a cell, as typed after its table."""

    data: str = ""
    time: str | None = None
    type: str | None = None
    order: str | None = None
    limit: int | None = None
    bad_rows: str = "fail"
    name: str | None = None
    plot: bool = False
    explain: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise QueryError(message, hint=f"run `%%{MAGIC}?` to list the arguments.")


def _parser() -> _Parser:
    parser = _Parser(prog=f"%%{MAGIC}", add_help=False)
    parser.add_argument("data", help="variable or expression: an Arrow, pandas or Polars table, or a Spark DataFrame")
    parser.add_argument("--time", help="time column; default: the only timestamp column, or ts, time, timestamp, t")
    parser.add_argument("--type", help="event class column; default: kind, type, event_type, event or activity")
    parser.add_argument("--order", help="column that orders events with equal times")
    parser.add_argument("--limit", type=int, help="maximum number of rows; not on Spark")
    parser.add_argument("--bad-rows", default="fail", choices=["fail", "drop"], help="rows without a usable time")
    parser.add_argument("--as", dest="name", help="variable to store the result in")
    parser.add_argument("--plot", action="store_true", help="draw the result")
    parser.add_argument("--explain", action="store_true", help="show the plan instead of running the query")
    return parser


def _words(line: str) -> list[str]:
    """Split a line as a shell does, but keep the quotes of the first word, which is a Python expression."""
    first = "".join(shlex.split(line, posix=False)[:1])
    return [first, *shlex.split(line.strip().removeprefix(first))] if first else []


class _Magic:
    """The cell magic of one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.__doc__ = f"Run a query on a table or a Spark DataFrame.\n\n{_parser().format_help()}"

    def __call__(self, line: str, cell: str) -> Any:
        options = _parser().parse_args(_words(line), _CellOptions())
        data = self._data(options.data)
        roles = _roles(schema_of(data)[0], options)
        parsed = query(cell.strip())
        columns = roles._asdict()
        if options.explain:
            return parsed.explain(data, **columns)
        if is_spark(data):
            result = parsed.run(data, **columns, bad_rows=options.bad_rows)  # type: ignore[arg-type]
            result = result if options.limit is None else result.limit(options.limit)
        else:
            result = parsed.run_local(data, **columns, bad_rows=options.bad_rows, limit=options.limit)  # type: ignore[arg-type]
        if options.name is not None:
            self.shell.push({options.name: result})
        return plot(result, parsed) if options.plot else result

    def _data(self, expression: str) -> Any:
        """Evaluate the first word of the line in the user's namespace."""
        if expression.isidentifier() and expression not in self.shell.user_ns:
            names = [name for name in self.shell.user_ns if not name.startswith("_")]
            raise QueryError(f"no variable is called `{expression}`", hint=nearest(expression, names))
        return self.shell.ev(expression)

    def complete(self, context: Any) -> Any:
        """Complete keywords, columns and class names in a cell that starts with the magic."""
        from IPython.core.completer import SimpleCompletion

        head, _, body = context.full_text.partition("\n")
        if not head.startswith(f"%%{MAGIC}") or not body or context.cursor_line < 1:
            return {"completions": []}
        line = context.full_text.split("\n")[context.cursor_line][: context.cursor_position]
        start = re.search(r"(?P<dot>\.?)(?P<word>\w*)$", line)
        assert start is not None, "the pattern matches the empty string"
        columns, classes = self._names(head)
        candidates = columns if start["dot"] else [*KEYWORDS, *columns, *classes]
        word = start["word"].lower()
        return {
            "completions": [SimpleCompletion(text=name) for name in candidates if name.lower().startswith(word)],
            "matched_fragment": start["word"],
            "suppress": True,
        }

    def _names(self, head: str) -> tuple[list[str], list[str]]:
        """Return the columns and the class names of the table in the first line; nothing while that line is wrong."""
        try:
            options = _parser().parse_args(_words(head.partition(" ")[2]), _CellOptions())
            data = self.shell.user_ns.get(options.data)
            schema = schema_of(data)[0]
            type_column = _roles(schema, options, is_quiet=True).type
        except (StreamsiftError, TypeError, ValueError):
            return [], []
        if type_column is None or not isinstance(data, pa.Table):
            return schema.names, []
        values = data.slice(0, MAX_CLASS_ROWS).column(type_column).unique().to_pylist()
        return schema.names, [f"{value}" if f"{value}".isidentifier() else f"`{value}`" for value in values if value]


def _roles(schema: pa.Schema, options: _CellOptions, *, is_quiet: bool = False) -> Roles:
    """Return the columns to use; print those that were chosen by their names or types."""
    time, type_column = options.time, options.type
    times = [field.name for field in schema if t.is_timestamp(field.type)]
    if time is None:
        usual = times if len(times) == 1 else [name for name in schema.names if name.lower() in TIME_NAMES]
        if len(usual) != 1:
            raise QueryError("the time column is unclear", hint="name it, for example: --time ts.")
        time = usual[0]
    if type_column is None:
        usual = [name for name in schema.names if name.lower() in TYPE_NAMES]
        type_column = usual[0] if len(usual) == 1 else None
    if not is_quiet and (time, type_column) != (options.time, options.type):
        print(f"time: {time}" + (f", type: {type_column}" if type_column else ", no type column"))
    return Roles(time, type_column, options.order)
