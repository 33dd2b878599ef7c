"""The options and arguments that commands share: a name, a type and a sentence of help for each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from streamsift.command.query_files import column_names
from streamsift.physical.plan import Cache, Condense, CountBy, PlanShape, RankBy, Schedule, Spread
from streamsift.physical.share import ShareMode


class Engine(StrEnum):
    SPARK = "spark"
    LOCAL = "local"


class InputFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class BadRows(StrEnum):
    FAIL = "fail"
    DROP = "drop"


QueryFile = Annotated[
    str, typer.Argument(metavar="QUERY_FILE", help="A file with a query, `-` for standard input, or the query itself.")
]
QueryFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="QUERY_FILE…",
        help="A file with a query, `-` for standard input, the query itself, or several files.",
    ),
]
Input = Annotated[
    Path, typer.Option("--input", "-i", help="Events: a CSV, JSON lines or Parquet file, or a directory of them.")
]
Time = Annotated[str, typer.Option("--time", help="The column with the event's time.", autocompletion=column_names)]
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
EngineOption = Annotated[
    Engine, typer.Option("--engine", help="Spark (local mode or --master), or the same engine in this process.")
]
PlanOption = Annotated[PlanShape, typer.Option("--plan", help="The tree of joins: the cheapest, or a shape.")]
CondenseOption = Annotated[
    Condense, typer.Option("--condense", help="Compare events of equal values once: where it pays, always, or never.")
]
CacheOption = Annotated[
    Cache, typer.Option("--cache", help="Keep answers of inner sub-patterns: where it pays, always, or never.")
]
StrategyOption = Annotated[CountBy, typer.Option("--strategy", help="How AGG counts: the cheapest way, or this one.")]
ShareOption = Annotated[
    ShareMode,
    typer.Option("--share", help="Count several queries together: where it pays, wherever possible, or never."),
]
Master = Annotated[
    str | None, typer.Option("--master", help="A Spark master URL; all cores of this machine if not given.")
]
AsJson = Annotated[bool, typer.Option("--json", help="For machines: JSON on standard output, errors as JSON too.")]
RankOption = Annotated[RankBy, typer.Option("--rank", help="How PREF finds the best: the first that can, or this way.")]
ScheduleOption = Annotated[Schedule, typer.Option("--schedule", help="Which part a merge of PREF reads next.")]
SpreadOption = Annotated[
    Spread, typer.Option("--spread", help="How events meet in Spark tasks: by keys, by slices of time, or as it pays.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="How many rows; 20 in a table, otherwise all, if not given.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        help='With --engine local: what the query may hold, e.g. "2 GB"; half of the free memory if not given.',
    ),
]
Stream = Annotated[bool, typer.Option("--stream", help="Follow a directory that files are dropped into, until Ctrl-C.")]
Once = Annotated[bool, typer.Option("--once", help="With --stream: end when the files that are there are read.")]
Lateness = Annotated[
    str | None, typer.Option("--lateness", help='With --stream: how late events may come, e.g. "10 s".')
]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", help="With --stream: where it remembers; OUTPUT.checkpoint.")
]
