"""The command line: `streamsift new | run | explain | check | demo | bench`. Errors go to stderr, results to stdout."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from streamsift.api.query import Query
from streamsift.command.exit_codes import Exit, run_command
from streamsift.command.jobs import SHOWN, Columns, LocalJob, SparkJob, show_many
from streamsift.command.options import (
    AsJson,
    BadRows,
    CacheOption,
    Checkpoint,
    CondenseOption,
    Engine,
    EngineOption,
    GivenFormat,
    Input,
    InputFormat,
    Lateness,
    Limit,
    Master,
    MemoryLimit,
    Once,
    Order,
    PlanOption,
    QueryFile,
    QueryFiles,
    RankOption,
    ScheduleOption,
    ShareOption,
    SpreadOption,
    StrategyOption,
    Stream,
    Time,
    Type,
)
from streamsift.command.outputs import (
    OutputFormat,
    check_limits,
    check_outputs,
    check_stream,
    format_of_many,
    output_format,
)
from streamsift.command.query_files import read_queries, read_query
from streamsift.command.stream_job import StreamJob
from streamsift.errors import SetupError
from streamsift.physical.plan import Cache, Condense, CountBy, PlanShape, RankBy, Schedule, Spread
from streamsift.physical.share import ShareMode
from streamsift.runtime.input import read_head
from streamsift.view.notebook import sections

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Find, count and rank patterns in event streams.",
    epilog="Start with your own data: streamsift new events.csv",
)
stderr = Console(stderr=True)
SAMPLE_ROWS = 100_000  # of a data file, that `new` looks at


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


@app.command(
    epilog="Example: streamsift run query.txt --input events.csv --time ts --type kind --engine local",
)
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
    as_json: AsJson = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also draw the result: a file that ends in .svg, .png or .html.")
    ] = None,
    fail_on_empty: Annotated[
        bool, typer.Option("--fail-on-empty", help="End with exit code 1 if nothing is found.")
    ] = False,
    limit: Limit = None,
    memory_limit: MemoryLimit = None,
    bad_rows: Annotated[
        BadRows, typer.Option("--bad-rows", help="Rows without a usable time: fail, or drop and count them.")
    ] = BadRows.FAIL,
    plan: PlanOption = PlanShape.AUTO,
    condense: CondenseOption = Condense.AUTO,
    cache: CacheOption = Cache.AUTO,
    strategy: StrategyOption = CountBy.AUTO,
    rank: RankOption = RankBy.AUTO,
    share: ShareOption = ShareMode.AUTO,
    schedule: ScheduleOption = Schedule.WABS,
    spread: SpreadOption = Spread.AUTO,
    input_format: GivenFormat = None,
    engine: EngineOption = Engine.SPARK,
    master: Master = None,
    stream: Stream = False,
    once: Once = False,
    lateness: Lateness = None,
    checkpoint: Checkpoint = None,
) -> None:
    """Run a query on files and show or write its result. Several queries share one pass; --output is a directory."""
    queries = read_queries(query_files)
    parsed = next(iter(queries.values()))
    format = OutputFormat.JSON if as_json else format
    chosen = output_format(output, format) if len(queries) == 1 else format_of_many(output, format)
    choices = _choices(
        plan=plan, condense=condense, cache=cache, strategy=strategy, rank=rank, schedule=schedule, spread=spread
    )
    columns = Columns(time, type, order, bad_rows.value, choices)
    if stream or once or lateness or checkpoint:
        check_stream(stream, len(queries), engine is Engine.LOCAL, output, chosen, limit)
        given = input_format.value if input_format else None
        StreamJob(parsed, input, given, columns, lateness, output, chosen.value, checkpoint, once, master, stderr).run()
        return
    check_outputs(output, plot, len(queries))
    check_limits(memory_limit, engine is Engine.LOCAL)
    with _job(engine, parsed, input, input_format, columns, master, plot is not None, memory_limit) as job:
        if len(queries) > 1:
            found = show_many(job, queries, share.value, output, chosen.value, limit, stderr)
        elif output is not None:
            found = job.write(output, chosen.value, limit)
            stderr.print(f"wrote {output}", highlight=False)
        elif chosen is OutputFormat.TABLE:
            found = job.show(limit or SHOWN)
        else:
            found = job.stream(chosen.value, limit)
        if plot is not None:
            job.plot(plot)
            stderr.print(f"wrote {plot}", highlight=False)
    if fail_on_empty and found == 0:
        raise typer.Exit(Exit.NO_MATCH)


@app.command(epilog="Example: streamsift explain query.txt --input events.csv --time ts --type kind")
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
    share: ShareOption = ShareMode.AUTO,
    schedule: ScheduleOption = Schedule.WABS,
    spread: SpreadOption = Spread.AUTO,
    input_format: GivenFormat = None,
    engine: EngineOption = Engine.SPARK,
    master: Master = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it in this process too, and tell expected and actual rows.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what would run, stage by stage, and why; of several queries, what they share. Reads only the schema."""
    queries = read_queries(query_files)
    parsed = next(iter(queries.values()))
    choices = _choices(
        plan=plan, condense=condense, cache=cache, strategy=strategy, rank=rank, schedule=schedule, spread=spread
    )
    columns = Columns(time, type, order, "fail", choices)
    with _job(Engine.LOCAL if analyze else engine, parsed, input, input_format, columns, master) as job:
        told = job.explain(analyze=analyze) if len(queries) == 1 else job.explain_many(queries, share.value)
    print(json.dumps(sections(told), ensure_ascii=False) if as_json else told)


@app.command(epilog="Example: streamsift check query.txt --input events.csv --time ts --type kind")
def check(
    query_file: QueryFile,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="Check names and types against these events too.")
    ] = None,
    time: Annotated[str | None, typer.Option("--time", help="The column with the event's time.")] = None,
    type: Type = None,
    order: Order = None,
    input_format: GivenFormat = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a query is right, and if not, where and why."""
    parsed = read_query(query_file)
    if input is None:
        told = "the query is well formed; with --input and --time it is checked against the data's columns too"
        print(json.dumps({"ok": told}) if as_json else f"ok: {told}")
        return
    if time is None:
        raise SetupError("check --input needs --time, the name of the time column")
    job = LocalJob(
        parsed, input, input_format.value if input_format else None, Columns(time, type, order, "fail"), stderr
    )
    job.explain()
    print(json.dumps({"ok": "the query fits the data"}) if as_json else "ok: the query fits the data")


@app.command(epilog="Example: streamsift new events.csv --output query.txt")
def new(
    data_file: Annotated[
        Path, typer.Argument(metavar="DATA_FILE", help="Events: a CSV, JSON lines or Parquet file, or a directory.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The query file to write; `-` for standard output.")
    ] = Path("query.txt"),
    input_format: GivenFormat = None,
    as_json: AsJson = False,
) -> None:
    """Write a query to start from, with comments, from a data file's own columns and classes."""
    from streamsift.command.starter import command, starter

    sample = read_head(data_file, SAMPLE_ROWS, input_format.value if input_format else None)
    started = starter(sample, data_file, output)
    if str(output) == "-":
        print(started.text, end="")
        return
    check_outputs(output, None, 1)
    output.write_text(started.text, encoding="utf-8")
    if as_json:
        print(json.dumps({"query_file": str(output), "time": started.guess.time, "type": started.guess.type}))
        return
    print(f"wrote {output}: columns, classes and a first query. Read it, change it, and run it:")
    print(f"  {command('run', data_file, output, started.options)} --engine local")


@app.command(epilog="Example: streamsift bench throughput nested")
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Which benchmarks; all of them if none is named.")
    ] = None,
) -> None:
    """Run the benchmarks of the source tree: equal results are checked first, then ratios are printed."""
    from streamsift.command.bench_command import bench_command

    root, words = bench_command(names or [])
    raise typer.Exit(subprocess.run(words, cwd=root, check=False).returncode)


@app.command(epilog="Example: streamsift demo --rows 50000, or, for data to play with: streamsift demo --save data")
def demo(
    rows: Annotated[int, typer.Option("--rows", min=1000, help="Events in each data set.")] = 400_000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other data.")] = 7,
    master: Master = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Only write the data, as CSV files in this new directory.")
    ] = None,
) -> None:
    """Generate three data sets and run queries on them with Spark: plan, matches, throughput."""
    from streamsift.command.demo import run_demo, save_data

    if save is not None:
        check_outputs(save, None, 1)
        for path in save_data(save, rows, seed):
            stderr.print(f"wrote {path}", highlight=False)
        return
    run_demo(Console(), rows, seed, master)


def main() -> None:
    """The entry point: every error that is meant for the user is one message and an exit code (see `exits.Exit`)."""
    logging.disable(logging.ERROR)  # py4j and pyspark log what they raise, with its stack; it is told here
    sys.exit(run_command(lambda: app(prog_name="streamsift", standalone_mode=False), stderr))


def _job(
    engine: Engine,
    parsed: Query,
    path: Path,
    given: InputFormat | None,
    columns: Columns,
    master: str | None,
    keep: bool = False,
    memory_limit: str | None = None,
) -> LocalJob | SparkJob:
    given_format = given.value if given else None
    if engine is Engine.LOCAL:
        return LocalJob(parsed, path, given_format, columns, stderr, keep, memory_limit)
    return SparkJob(parsed, path, given_format, columns, master, stderr, keep)


if __name__ == "__main__":
    main()
