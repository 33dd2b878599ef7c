"""Declare every command-line option once: its type, default, help text and help panel.

`Options` has a field for each option of `run` and `explain`; the planner options come from `physical`. `takes` turns a
function of `Options` into a Typer command with the named options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from streamsift.command.arguments import OutputFormat, column_names
from streamsift.errors import SetupError
from streamsift.physical.plan import option_table
from streamsift.physical.share import ShareMode
from streamsift.runtime.input import STDIN, FileInput, TimeNotation, is_topic

MASTER_HELP = "Spark master URL. Default: all cores of this machine."
INPUT_HELP = (
    "Events: a CSV, JSON or Parquet file, a directory, a glob pattern, a URI, `-` for standard input, or a Kafka topic "
    "as kafka://HOST:PORT/TOPIC."
)


class EngineName(StrEnum):
    AUTO = "auto"  # in process for batch input that fits in memory, else Spark
    SPARK = "spark"
    LOCAL = "local"


class InputFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class TimeUnit(StrEnum):
    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"
    NANOSECONDS = "ns"


class BadRowsOption(StrEnum):
    FAIL = "fail"
    DROP = "drop"


def _option(default: Any, help: str, *names: str, **more: Any) -> Any:
    """Declare an option, named after its field unless `names` are given. The default `...` makes it required."""
    return field(default=default, metadata={"names": names, "help": help, **more})


def _column(default: Any, help: str) -> Any:
    return _option(default, help, autocompletion=column_names, metavar="COLUMN")


@dataclass(frozen=True, slots=True)
class Options:
    """The options given to a command; options that the command does not take have their defaults."""

    query_files: list[str] = _option(
        ..., "Query files, `-` for standard input, or the text of a query.", metavar="QUERY_FILE"
    )
    input: str = _option(..., INPUT_HELP, "--input", "-i", metavar="PATH")
    time: str = _column(..., "Column with the time of the event.")
    type: str | None = _column(None, "Column with the event class.")
    order: str | None = _column(None, "Column that orders events with equal times.")
    output: Path | None = _option(
        None, "File to write, or a Kafka topic for a stream. Default: standard output.", "--output", "-o"
    )
    format: OutputFormat | None = _option(
        None, "Output format. Default: by the suffix of --output; on standard output, a table.", "--format", "-f"
    )
    as_json: bool = _option(False, "Print results and errors as JSON, for scripts.", "--json")
    plot: Path | None = _option(None, "Also draw the result to a .svg, .png or .html file.")
    fail_on_empty: bool = _option(False, "Exit with code 1 if there are no matches.")
    limit: int | None = _option(None, "Maximum number of rows. Default: 20 in a table, else all.", min=1, metavar="N")
    memory_limit: str | None = _option(
        None,
        'Memory for a query in process, such as "2 GB". Default: half of the free memory.',
        metavar="SIZE",
    )
    bad_rows: BadRowsOption = _option(
        BadRowsOption.FAIL, "Rows without a valid time, and bad payloads: stop with an error, or drop and count them."
    )
    share: ShareMode = _option(
        ShareMode.AUTO, "Share work between several AGG queries: if it is cheaper, wherever possible, or never."
    )
    input_format: InputFormat | None = _option(None, "Input format. Default: by the suffix of the file.")
    delimiter: str | None = _option(
        None, "Delimiter of CSV fields. Default: a comma, or a tab in .tsv files.", metavar="CHARACTER"
    )
    time_format: str | None = _option(
        None, "Format of a time column of text, such as '%d/%m/%Y %H:%M'. Default: ISO 8601.", metavar="FORMAT"
    )
    time_unit: TimeUnit | None = _option(None, "Unit of a time column of numbers since 1970.")
    schema: str | None = _option(
        None,
        "Columns of a topic's payloads, such as 't bigint, kind string'. Default: from its first records.",
        metavar="COLUMNS",
    )
    engine: EngineName = _option(
        EngineName.AUTO, "In process (local) or on Spark; auto runs in process unless the input is too large."
    )
    master: str | None = _option(None, MASTER_HELP, metavar="URL")
    packages: str | None = _option(
        None, "Maven coordinates of packages for Spark, such as those of its Kafka connector.", metavar="NAMES"
    )
    stream: bool = _option(False, "Follow a directory of files on Spark until Ctrl-C, as a Kafka topic always is.")
    once: bool = _option(False, "Stop after the files or records that are there now.")
    lateness: str | None = _option(None, 'How late events may arrive, such as "10 s".', metavar="DURATION")
    buckets: int | None = _option(
        None, "Hash buckets of a new stream, one task each. Default: twice the cores.", metavar="NUMBER", min=1
    )
    checkpoint: Path | None = _option(
        None, "Directory for progress and state, to resume from. Default: OUTPUT.checkpoint."
    )
    analyze: bool = _option(False, "Run the query in process and compare expected with actual row counts.")
    planner: Mapping[str, str] = field(default_factory=dict)  # the planner options of `option_table`

    @property
    def is_stream(self) -> bool:
        """Return True if the query runs on a stream."""
        return self.stream or is_topic(self.input) or is_topic(self.output)

    @property
    def source(self) -> FileInput:
        """Return the input and how to read it."""
        if self.input == STDIN and STDIN in (self.query_files or []):
            raise SetupError("the query and the input cannot both be standard input")
        if self.input == STDIN and self.master is not None and not self.master.startswith("local"):
            raise SetupError("a cluster cannot read standard input\nHint: write the input to a file that it can read.")
        unit = None if self.time_unit is None else self.time_unit.value
        times = TimeNotation(self.time, self.time_format, unit, self.bad_rows is BadRowsOption.DROP)
        input_format = None if self.input_format is None else self.input_format.value
        return FileInput(self.input, input_format, self.delimiter, times if times.is_given else None)

    @property
    def reading_words(self) -> tuple[str, ...]:
        """Return the options that say how to read the input, as words of a command line."""
        given = (("--input-format", self.input_format), ("--delimiter", self.delimiter))
        return tuple(word for name, value in given if value is not None for word in (name, str(value)))

    @property
    def binding(self) -> dict[str, Any]:
        """Return the arguments of `Query.explain`: the roles of columns and the planner options."""
        return {"time": self.time, "type": self.type, "order": self.order, **self.planner}

    @property
    def run_arguments(self) -> dict[str, Any]:
        """Return the arguments of `Query.run`."""
        return {**self.binding, "bad_rows": self.bad_rows.value}

    @property
    def stream_arguments(self) -> dict[str, Any]:
        """Return the arguments of `Query.run` that apply only to streams."""
        return {"lateness": self.lateness, "buckets": self.buckets}


EVENTS = ("query_files", "input", "time", "type", "order")
PLANNER = ("plan", "condense", "cache", "strategy", "rank", "share", "schedule", "spread")
RESULT = ("output", "format", "as_json", "plot", "fail_on_empty", "limit", "memory_limit", "bad_rows")
READING = ("input_format", "delimiter", "time_format", "time_unit")
ENGINE = (*READING, "schema", "engine", "master", "packages")
STREAM = ("stream", "once", "lateness", "buckets", "checkpoint")

PANELS = {
    "Input": ("input", *READING[:2], "schema", "time", *READING[2:], "type", "order", "bad_rows"),
    "Output": ("output", "format", "as_json", "plot", "limit", "fail_on_empty", "analyze"),
    "Spark": ("engine", "master", "packages", "memory_limit"),
    "Streaming": STREAM,
    "Planner": PLANNER,
}


def takes(*names: str, optional: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function of `Options` into a Typer command with the named options and the function's other parameters.

    Required options that are `optional` for the command are None if not given. Help lists the options panel by panel,
    in the order of `PANELS`.
    """
    panels = {name: panel for panel, members in PANELS.items() for name in members}
    names = tuple(sorted(names, key=lambda name: [*panels].index(name) if name in panels else -1))
    planner = {option.name: option.type for option in option_table()}
    types = {**get_type_hints(Options), **planner}
    declared: dict[str, tuple[Any, Mapping[str, Any]]] = {f.name: (f.default, f.metadata) for f in fields(Options)}
    declared |= {option.name: (option.default, {"help": option.help}) for option in option_table()}

    def parameter(name: str) -> Parameter:
        default, settings = declared[name]
        if name in optional:
            default = None
        spelled = settings.get("names") or (f"--{name.replace('_', '-')}",)
        settings = {key: value for key, value in settings.items() if key != "names"}
        shown = _as_shown(types[name], default, settings) | {"rich_help_panel": panels.get(name)}
        info = typer.Argument(**shown) if types[name] == list[str] else typer.Option(*spelled, **shown)
        default = Parameter.empty if default is ... else default
        annotation: Any = types[name] | None if name in optional else types[name]
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])

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


def _as_shown(annotation: Any, default: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an option with a placeholder for its value, and with the names that it can have."""
    kind = next((each for each in (annotation, *get_args(annotation)) if isinstance(each, type)), str)
    if issubclass(kind, StrEnum):
        values = ", ".join(f"{each} (default)" if each == default else each for each in kind)
        return {**settings, "help": f"{settings['help']} Values: {values}.", "show_default": False, "metavar": "NAME"}
    return {"metavar": {bool: "", Path: "PATH"}.get(kind), **settings}
