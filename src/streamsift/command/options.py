"""Declare the options of commands: a type, a default and a sentence of help for each, once.

`Options` has all that `run` and `explain` take; the planner options are those of `physical`. `takes` makes a Typer
command of a function of them, which takes the options that are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from streamsift.command.arguments import OutputFormat, column_names
from streamsift.physical.plan import option_table
from streamsift.physical.share import ShareMode

MASTER_HELP = "A Spark master URL; all cores of this machine if not given."


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


def _option(default: Any, help: str, *names: str, **more: Any) -> Any:
    """Declare an option; without names it has that of its field. The default `...` means that it must be given."""
    return field(default=default, metadata={"names": names, "help": help, **more})


@dataclass(frozen=True, slots=True)
class Options:
    """What was given to a command; the options that it does not take have their defaults."""

    query_files: list[str] = _option(
        ..., "A file with a query, `-` for standard input, the query itself, or several files.", metavar="QUERY_FILE…"
    )
    input: Path = _option(..., "Events: a CSV, JSON lines or Parquet file, or a directory of them.", "--input", "-i")
    time: str = _option(..., "The column with the event's time.", autocompletion=column_names)
    type: str | None = _option(None, "The column with the event's class name.", autocompletion=column_names)
    order: str | None = _option(None, "The column that orders events of equal time.", autocompletion=column_names)
    output: Path | None = _option(None, "Where to write; standard output if not given.", "--output", "-o")
    format: OutputFormat | None = _option(None, "Of the output; by its name if not given.", "--format", "-f")
    as_json: bool = _option(False, "For machines: JSON on standard output, errors as JSON too.", "--json")
    plot: Path | None = _option(None, "Also draw the result: a file that ends in .svg, .png or .html.")
    fail_on_empty: bool = _option(False, "End with exit code 1 if nothing is found.")
    limit: int | None = _option(None, "How many rows; 20 in a table, otherwise all, if not given.", min=1)
    memory_limit: str | None = _option(
        None, 'With --engine local: what the query may hold, e.g. "2 GB"; half of the free memory if not given.'
    )
    bad_rows: BadRowsOption = _option(BadRowsOption.FAIL, "Rows without a usable time: fail, or drop and count them.")
    share: ShareMode = _option(
        ShareMode.AUTO, "Count several queries together: where it pays, wherever possible, or never."
    )
    input_format: InputFormat | None = _option(None, "The input's format, where its name does not tell.")
    engine: EngineName = _option(
        EngineName.SPARK, "Spark (local mode or --master), or the same engine in this process."
    )
    master: str | None = _option(None, MASTER_HELP)
    stream: bool = _option(False, "Follow a directory that files are dropped into, until Ctrl-C.")
    once: bool = _option(False, "With --stream: end when the files that are there are read.")
    lateness: str | None = _option(None, 'With --stream: how late events may come, e.g. "10 s".')
    checkpoint: Path | None = _option(None, "With --stream: where it remembers; OUTPUT.checkpoint.")
    analyze: bool = _option(False, "Run it in this process too, and tell expected and actual rows.")
    planner: Mapping[str, str] = field(default_factory=dict)  # the planner options of `option_table`

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


def takes(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a Typer command of a function of `Options`: it takes its other parameters and the named options."""
    planner = {option.name: option.type for option in option_table()}
    types = {**get_type_hints(Options), **planner}
    declared: dict[str, tuple[Any, Mapping[str, Any]]] = {f.name: (f.default, f.metadata) for f in fields(Options)}
    declared |= {option.name: (option.default, {"help": option.help}) for option in option_table()}

    def parameter(name: str) -> Parameter:
        default, settings = declared[name]
        spelled = settings.get("names") or (f"--{name.replace('_', '-')}",)
        settings = {key: value for key, value in settings.items() if key != "names"}
        info = typer.Argument(**settings) if "metavar" in settings else typer.Option(*spelled, **settings)
        default = Parameter.empty if default is ... else default
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[types[name], info])

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        others = [each for each in signature(command, eval_str=True).parameters.values() if each.name != "options"]

        @wraps(command)
        def call(**given: Any) -> None:
            arguments = {each.name: given.pop(each.name) for each in others}
            chosen = {name: given.pop(name).value for name in planner if name in given}
            command(Options(**given, planner=chosen), **arguments)

        call.__signature__ = Signature([*others, *map(parameter, names)])  # type: ignore[attr-defined]
        return call

    return decorated
