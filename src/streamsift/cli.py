"""The command line: `streamsift run | explain | check | demo`. Errors go to stderr, results to stdout or a file."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from streamsift.api import Query, query
from streamsift.errors import QueryError, SetupError, StreamsiftError
from streamsift.jobs import Columns, LocalJob, SparkJob
from streamsift.live import StreamJob
from streamsift.physical.choices import Cache, Condense, CountBy, PlanShape, RankBy, Schedule
from streamsift.physical.sharing import Share

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help="Find patterns in event streams."
)
stderr = Console(stderr=True)
COMMANDS = ("run", "explain", "check", "demo")
STOPPED = 130  # the exit code after Ctrl-C: 128 + SIGINT


class Engine(StrEnum):
    SPARK = "spark"
    LOCAL = "local"


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


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
Time = Annotated[str, typer.Option("--time", help="The column with the event's time.")]
Type = Annotated[str | None, typer.Option("--type", help="The column with the event's class name.")]
Order = Annotated[str | None, typer.Option("--order", help="The column that orders events of equal time.")]
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
    Share, typer.Option("--share", help="Count several queries together: where it pays, wherever possible, or never.")
]
Master = Annotated[
    str | None, typer.Option("--master", help="A Spark master URL; all cores of this machine if not given.")
]


RankOption = Annotated[RankBy, typer.Option("--rank", help="How PREF finds the best: the first that can, or this way.")]
ScheduleOption = Annotated[Schedule, typer.Option("--schedule", help="Which part a merge of PREF reads next.")]


def _version(wanted: bool) -> None:
    if wanted:
        from streamsift import __version__

        print(f"streamsift {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version, and end.")
    ] = False,
) -> None:
    """What stands before a command."""


def _choices(**chosen: StrEnum) -> dict[str, Any]:
    return {name: choice.value for name, choice in chosen.items()}


@app.command()
def run(
    query_files: QueryFiles,
    input: Input,
    time: Time,
    type: Type = None,
    order: Order = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; standard output if not given.")
    ] = None,
    format: Annotated[
        OutputFormat | None, typer.Option("--format", "-f", help="Of the output; by its name if not given.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many rows a table shows.")] = 20,
    bad_rows: Annotated[
        BadRows, typer.Option("--bad-rows", help="Rows without a usable time: fail, or drop and count them.")
    ] = BadRows.FAIL,
    plan: PlanOption = PlanShape.AUTO,
    condense: CondenseOption = Condense.AUTO,
    cache: CacheOption = Cache.AUTO,
    strategy: StrategyOption = CountBy.AUTO,
    rank: RankOption = RankBy.AUTO,
    share: ShareOption = Share.AUTO,
    schedule: ScheduleOption = Schedule.WABS,
    input_format: GivenFormat = None,
    engine: EngineOption = Engine.SPARK,
    master: Master = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Follow a directory that files are dropped into, until Ctrl-C.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="With --stream: end when the files that are there are read.")
    ] = False,
    lateness: Annotated[
        str | None, typer.Option("--lateness", help='With --stream: how late events may come, e.g. "10 s".')
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="With --stream: where it remembers; OUTPUT.checkpoint.")
    ] = None,
) -> None:
    """Run a query on files and show or write its result. Several queries share one pass; --output is a directory."""
    queries = _read_queries(query_files)
    parsed = next(iter(queries.values()))
    chosen = _output_format(output, format) if len(queries) == 1 else _format_of_many(output, format)
    choices = _choices(plan=plan, condense=condense, cache=cache, strategy=strategy, rank=rank, schedule=schedule)
    columns = Columns(time, type, order, bad_rows.value, choices)
    if stream or once or lateness or checkpoint:
        _check_stream_options(stream, len(queries), engine, output, chosen)
        given = input_format.value if input_format else None
        StreamJob(parsed, input, given, columns, lateness, output, chosen.value, checkpoint, once, master, stderr).run()
        return
    if output is not None and output.exists():
        raise SetupError(f"{output} is there already; remove it or choose another name")
    if output is not None and not output.parent.is_dir():
        raise SetupError(f"no such directory: {output.parent}")
    job = _job(engine, parsed, input, input_format, columns, master)
    with job:
        if len(queries) > 1:
            _show_many(job.many(queries, share.value), output, chosen, limit)
        elif output is not None:
            job.write(output, chosen.value)
            stderr.print(f"wrote {output}", highlight=False)
        elif chosen is OutputFormat.TABLE:
            job.show(limit)
        else:
            job.stream(chosen.value)


@app.command()
def explain(
    query_files: QueryFiles,
    input: Input,
    time: Time,
    type: Type = None,
    order: Order = None,
    plan: PlanOption = PlanShape.AUTO,
    condense: CondenseOption = Condense.AUTO,
    cache: CacheOption = Cache.AUTO,
    strategy: StrategyOption = CountBy.AUTO,
    rank: RankOption = RankBy.AUTO,
    share: ShareOption = Share.AUTO,
    schedule: ScheduleOption = Schedule.WABS,
    input_format: GivenFormat = None,
    engine: EngineOption = Engine.SPARK,
    master: Master = None,
) -> None:
    """Show what would run, stage by stage, and why; of several queries, what they share. Reads only the schema."""
    queries = _read_queries(query_files)
    parsed = next(iter(queries.values()))
    choices = _choices(plan=plan, condense=condense, cache=cache, strategy=strategy, rank=rank, schedule=schedule)
    columns = Columns(time, type, order, "fail", choices)
    with _job(engine, parsed, input, input_format, columns, master) as job:
        print(job.explain() if len(queries) == 1 else job.explain_many(queries, share.value))


@app.command()
def check(
    query_file: QueryFile,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="Check names and types against these events too.")
    ] = None,
    time: Annotated[str | None, typer.Option("--time", help="The column with the event's time.")] = None,
    type: Type = None,
    order: Order = None,
    input_format: GivenFormat = None,
) -> None:
    """Say whether a query is right, and if not, where and why."""
    parsed = _read_query(query_file)
    if input is None:
        print("ok: the query is well formed; with --input and --time it is checked against the data's columns too")
        return
    if time is None:
        raise SetupError("check --input needs --time, the name of the time column")
    job = LocalJob(parsed, input, input_format.value if input_format else None, Columns(time, type, order, "fail"))
    job.explain()
    print("ok: the query fits the data")


@app.command()
def demo(
    rows: Annotated[int, typer.Option("--rows", min=1000, help="Events in each data set.")] = 400_000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other data.")] = 7,
    master: Master = None,
) -> None:
    """Generate three data sets and run queries on them with Spark: plan, matches, throughput."""
    from streamsift.demo import run_demo

    run_demo(Console(), rows, seed, master)


def main() -> None:
    """The entry point: every error that is meant for the user is one message and exit code 2."""
    logging.disable(logging.ERROR)  # py4j and pyspark log what they raise, with its stack; it is told here
    try:
        code = app(standalone_mode=False)  # typer turns a KeyboardInterrupt into this code
        if code == STOPPED:
            stderr.print("stopped")
        sys.exit(code)
    except StreamsiftError as error:
        _fail(type(error).__name__, str(error))
    except OSError as error:
        _fail("SetupError", str(error))  # no space on the device, no permission
    except Exception as error:
        # Click's usage errors and errors from Spark workers are for the user too; anything else is a bug: show it all.
        usage = getattr(error, "format_message", None)
        if usage is not None and not usage():
            sys.exit(2)  # the help was shown
        if usage is not None:
            command = [word for word in sys.argv[1:2] if word in COMMANDS]
            _fail("usage", f"{usage()}\nHint: `{' '.join(['streamsift', *command, '--help'])}` lists what there is.")
        inner = _worker_error(str(error))
        if inner is None:
            raise
        _fail(*inner)


def _fail(name: str, message: str) -> NoReturn:
    message = message.replace('bad_rows="drop"', "--bad-rows drop")  # as it is called here
    # Not wrapped: a caret must stay under its place.
    stderr.print(Text(f"{name}: ", style="bold red") + Text(message), soft_wrap=True)
    sys.exit(2)


def _worker_error(text: str) -> tuple[str, str] | None:
    """The error that our own code raised inside a Spark worker, out of Spark's report of it."""
    found = re.search(r"streamsift\.errors\.(\w+): (.*?)(?:\n\n|\n SQLSTATE|\nJVM stacktrace|\Z)", text, re.DOTALL)
    return (found[1], found[2].strip()) if found else None


def _read_query(source: str) -> Query:
    if source == "-":
        return query(sys.stdin.read())
    path = Path(source)
    looks_like_text = bool(re.search(r"[\s;(]", source))
    if not path.is_file():
        if looks_like_text:
            return query(source)
        raise SetupError(f"no such query file: {source}")
    try:
        return query(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise QueryError(f"{source} is not UTF-8 text: {error}") from error


def _read_queries(sources: list[str]) -> dict[str, Query]:
    """Queries by name: that of the file without its ending."""
    names = [Path(source).stem if Path(source).is_file() else f"query {n}" for n, source in enumerate(sources, start=1)]
    if len(set(names)) < len(names):
        raise SetupError("two query files have the same name; results are called by it")
    return {name: _read_query(source) for name, source in zip(names, sources, strict=True)}


def _show_many(
    jobs: Mapping[str, LocalJob] | Mapping[str, SparkJob], output: Path | None, chosen: OutputFormat, limit: int
) -> None:
    """Tables one after the other, or a file for each query in a directory."""
    if output is not None:
        output.mkdir()
        for name, job in jobs.items():
            job.write(output / f"{name}.{chosen.value}", chosen.value)
        stderr.print(f"wrote {output}", highlight=False)
        return
    for name, job in jobs.items():
        print(name, flush=True)
        job.show(limit)


def _format_of_many(output: Path | None, given: OutputFormat | None) -> OutputFormat:
    """Files are JSON lines unless another format is asked for: a directory's name tells none."""
    if output is None:
        if given not in (None, OutputFormat.TABLE):
            raise SetupError("the results of several queries go to files: add --output DIRECTORY")
        return OutputFormat.TABLE
    return OutputFormat.JSON if given is None else _output_format(output, given)


def _check_stream_options(
    stream: bool, queries: int, engine: Engine, output: Path | None, format: OutputFormat
) -> None:
    if not stream:
        raise SetupError("--once, --lateness and --checkpoint are for streams: add --stream")
    if queries > 1:
        raise SetupError("--stream takes one query; streamsift.run_many streams several")
    if engine is Engine.LOCAL:
        raise SetupError("--stream runs on Spark: leave --engine out")
    if output is None and format is OutputFormat.CSV:
        raise SetupError("a stream's CSV goes to files: add --output DIRECTORY, or use --format json")


def _output_format(output: Path | None, given: OutputFormat | None) -> OutputFormat:
    if given is None and output is not None:
        by_suffix = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}.get(output.suffix.lower())
        if by_suffix is None:
            raise SetupError(f"cannot tell the format of {output} by its name; say --format json, csv or parquet")
        return OutputFormat(by_suffix)
    chosen = given or OutputFormat.TABLE
    if output is None and chosen is OutputFormat.PARQUET:
        raise SetupError("Parquet goes to a file: add --output PATH")
    if output is not None and chosen is OutputFormat.TABLE:
        raise SetupError("a table is for the terminal; write json, csv or parquet")
    return chosen


def _job(
    engine: Engine, parsed: Query, path: Path, given: InputFormat | None, columns: Columns, master: str | None
) -> LocalJob | SparkJob:
    given_format = given.value if given else None
    if engine is Engine.LOCAL:
        return LocalJob(parsed, path, given_format, columns)
    return SparkJob(parsed, path, given_format, columns, master, stderr)


if __name__ == "__main__":
    main()
