"""Declare the options and arguments of commands: a name, a type, a default and a sentence of help for each, once.

`Options` has all that `run` and `explain` take; the planner options are those of `physical`. `takes` makes a Typer
command of a function of them, which takes the options that are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from streamsift.command.outputs import OutputFormat
from streamsift.command.query_files import column_names
from streamsift.physical.plan import option_table
from streamsift.physical.share import ShareMode


class EngineName(StrEnum):
    SPARK = "spark"
    LOCAL = "local"


class InputFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class BadRowsOption(StrEnum):
    FAIL = "fail"
    DROP = "drop"


# --- of several commands ---------------------------------------------------------------------------------------------

QueryFile = Annotated[
    str, typer.Argument(metavar="QUERY_FILE", help="A file with a query, `-` for standard input, or the query itself.")
]
Type = Annotated[
    str | None, typer.Option("--type", help="The column with the event's class name.", autocompletion=column_names)
]
Order = Annotated[
    str | None,
    typer.Option("--order", help="The column that orders events of equal time.", autocompletion=column_names),
]
GivenFormat = Annotated[
    InputFormat | None, typer.Option("--input-format", help="The input's format, where its name does not tell.")
]
Master = Annotated[
    str | None, typer.Option("--master", help="A Spark master URL; all cores of this machine if not given.")
]
AsJson = Annotated[bool, typer.Option("--json", help="For machines: JSON on standard output, errors as JSON too.")]


# --- of `run` and `explain` ------------------------------------------------------------------------------------------


def _option(name: str, help: str, **more: Any) -> Any:
    return typer.Option(f"--{name}", help=help, **more)


@dataclass(frozen=True, slots=True)
class Options:
    """What was given to `run` or `explain`; the options that a command does not take have their defaults."""

    query_files: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY_FILE…",
            help="A file with a query, `-` for standard input, the query itself, or several files.",
        ),
    ]
    input: Annotated[
        Path, typer.Option("--input", "-i", help="Events: a CSV, JSON lines or Parquet file, or a directory of them.")
    ]
    time: Annotated[str, _option("time", "The column with the event's time.", autocompletion=column_names)]
    type: Type = None
    order: Order = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; standard output if not given.")
    ] = None
    format: Annotated[
        OutputFormat | None, typer.Option("--format", "-f", help="Of the output; by its name if not given.")
    ] = None
    as_json: AsJson = False
    plot: Annotated[Path | None, _option("plot", "Also draw the result: a file that ends in .svg, .png or .html.")] = (
        None
    )
    fail_on_empty: Annotated[bool, _option("fail-on-empty", "End with exit code 1 if nothing is found.")] = False
    limit: Annotated[
        int | None, _option("limit", "How many rows; 20 in a table, otherwise all, if not given.", min=1)
    ] = None
    memory_limit: Annotated[
        str | None,
        _option(
            "memory-limit",
            'With --engine local: what the query may hold, e.g. "2 GB"; half of the free memory if not given.',
        ),
    ] = None
    bad_rows: Annotated[
        BadRowsOption, _option("bad-rows", "Rows without a usable time: fail, or drop and count them.")
    ] = BadRowsOption.FAIL
    share: Annotated[
        ShareMode, _option("share", "Count several queries together: where it pays, wherever possible, or never.")
    ] = ShareMode.AUTO
    input_format: GivenFormat = None
    engine: Annotated[
        EngineName, _option("engine", "Spark (local mode or --master), or the same engine in this process.")
    ] = EngineName.SPARK
    master: Master = None
    stream: Annotated[bool, _option("stream", "Follow a directory that files are dropped into, until Ctrl-C.")] = False
    once: Annotated[bool, _option("once", "With --stream: end when the files that are there are read.")] = False
    lateness: Annotated[str | None, _option("lateness", 'With --stream: how late events may come, e.g. "10 s".')] = None
    checkpoint: Annotated[
        Path | None, _option("checkpoint", "With --stream: where it remembers; OUTPUT.checkpoint.")
    ] = None
    analyze: Annotated[bool, _option("analyze", "Run it in this process too, and tell expected and actual rows.")] = (
        False
    )

    planner: Mapping[str, str] = field(default_factory=dict)  # the planner options of `option_table`

    @property
    def given_format(self) -> str | None:
        return None if self.input_format is None else self.input_format.value

    @property
    def binding(self) -> dict[str, Any]:
        """Return the arguments of `Query.explain`: which columns play which part, and the planner options."""
        return {"time": self.time, "type": self.type, "order": self.order, **self.planner}

    @property
    def run_arguments(self) -> dict[str, Any]:
        """Return the arguments of `Query.run`."""
        return {**self.binding, "bad_rows": self.bad_rows.value}


EVENTS = ("query_files", "input", "time", "type", "order")
PLANNER = ("plan", "condense", "cache", "strategy", "rank", "share", "schedule", "spread")
RESULT = ("output", "format", "as_json", "plot", "fail_on_empty", "limit", "memory_limit", "bad_rows")
ENGINE = ("input_format", "engine", "master")
STREAM = ("stream", "once", "lateness", "checkpoint")


def takes(*names: str) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Make a Typer command of a function of `Options`: it takes the named options, in this order."""
    hints = get_type_hints(Options, include_extras=True)
    declared = {field.name: (hints[field.name], field.default) for field in fields(Options)}
    planner = {option.name: option for option in option_table()}
    for name, option in planner.items():
        declared[name] = Annotated[option.type, _option(name, option.help)], option.default

    def parameter(name: str) -> Parameter:
        annotation, default = declared[name]
        default = Parameter.empty if default is MISSING else default
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def decorated(command: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:
            chosen = {name: given.pop(name).value for name in planner if name in given}
            command(Options(**given, planner=chosen))

        call.__signature__ = Signature([parameter(name) for name in names])  # type: ignore[attr-defined]
        return call

    return decorated
