"""Define the commands `streamsift new | run | explain | check | demo | bench`.

Errors go to standard error, results to standard output.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamsift.command import arguments
from streamsift.command.arguments import OutputFormat
from streamsift.command.exit_codes import ExitCode, run_command
from streamsift.command.jobs import SHOWN_ROWS, LocalJob, open_job, show_many
from streamsift.command.options import ENGINE, EVENTS, MASTER_HELP, PLANNER, RESULT, STREAM, EngineName, Options, takes
from streamsift.command.stream_job import StreamJob, check_stream
from streamsift.errors import SetupError
from streamsift.runtime.input import read_head
from streamsift.view.notebook import sections

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Find, count and rank patterns in event streams.",
    epilog="Start with your own data: streamsift new events.csv",
)
stderr = Console(stderr=True)
SAMPLE_ROWS = 100_000  # of a data file, that `new` reads
BENCHMARKS = Path("benchmarks", "__main__.py")  # in the source tree


def _version(wanted: bool) -> None:
    if wanted:
        from streamsift import __version__

        print(f"streamsift {__version__}")
        raise typer.Exit


@app.callback()
def before_commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version, and end.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command(epilog="Example: streamsift run query.txt --input events.csv --time ts --type kind --engine local")
@takes(*EVENTS, *RESULT, *PLANNER, *ENGINE, *STREAM)
def run(options: Options) -> None:
    """Run a query on files and show or write its result. Several queries share one pass; --output is a directory."""
    queries = arguments.read_queries(options.query_files)
    output, plot, limit = options.output, options.plot, options.limit
    given = OutputFormat.JSON if options.as_json else options.format
    chosen = arguments.output_format(output, given, len(queries))
    is_local = options.engine is EngineName.LOCAL
    if options.stream or options.once or options.lateness or options.checkpoint:
        check_stream(options, len(queries), chosen)
        StreamJob(next(iter(queries.values())), options, chosen.value, stderr).run()
        return
    arguments.check_outputs(output, plot, len(queries))
    arguments.check_limits(options.memory_limit, is_local)
    with open_job(next(iter(queries.values())), options, stderr) as job:
        if len(queries) > 1:
            rows = show_many(job, queries, chosen.value)
        elif output is not None:
            rows = job.write(output, chosen.value, limit)
            stderr.print(f"wrote {output}", highlight=False)
        elif chosen is OutputFormat.TABLE:
            rows = job.show(limit or SHOWN_ROWS)
        else:
            rows = job.stream(chosen.value, limit)
        if plot is not None:
            job.plot(plot)
            stderr.print(f"wrote {plot}", highlight=False)
    if options.fail_on_empty and rows == 0:
        raise typer.Exit(ExitCode.NO_MATCH)


@app.command(epilog="Example: streamsift explain query.txt --input events.csv --time ts --type kind")
@takes(*EVENTS, *PLANNER, *ENGINE, "analyze", "as_json")
def explain(options: Options) -> None:
    """Show what would run, stage by stage, and why; of several queries, what they share. Reads only the schema."""
    queries = arguments.read_queries(options.query_files)
    with open_job(next(iter(queries.values())), options, stderr) as job:
        plan = job.explain() if len(queries) == 1 else job.explain_many(queries)
    print(json.dumps(sections(plan), ensure_ascii=False) if options.as_json else plan)


@app.command(epilog="Example: streamsift check query.txt --input events.csv --time ts --type kind")
@takes("type", "order", "input_format", "as_json")
def check(
    options: Options,
    query_file: Annotated[
        str,
        typer.Argument(metavar="QUERY_FILE", help="A file with a query, `-` for standard input, or the query itself."),
    ],
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="Check names and types against these events too.")
    ] = None,
    time: Annotated[str | None, typer.Option("--time", help="The column with the event's time.")] = None,
) -> None:
    """Say whether a query is right, and if not, where and why."""
    parsed = arguments.read_query(query_file)
    text = "the query is well formed; with --input and --time it is checked against the data's columns too"
    if input is not None:
        if time is None:
            raise SetupError("check --input needs --time, the name of the time column")
        LocalJob(parsed, replace(options, input=input, time=time), stderr).explain()
        text = "the query fits the data"
    print(json.dumps({"ok": text}) if options.as_json else f"ok: {text}")


@app.command(epilog="Example: streamsift new events.csv --output query.txt")
@takes("input_format", "as_json")
def new(
    options: Options,
    data_file: Annotated[
        Path, typer.Argument(metavar="DATA_FILE", help="Events: a CSV, JSON lines or Parquet file, or a directory.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The query file to write; `-` for standard output.")
    ] = Path("query.txt"),
) -> None:
    """Write a query to start from, with comments, from a data file's own columns and classes."""
    from streamsift.command.starter import command, starter

    sample = read_head(data_file, SAMPLE_ROWS, options.input_format)
    started = starter(sample, data_file, output)
    if str(output) == "-":
        print(started.text, end="")
        return
    arguments.check_outputs(output, None, 1)
    output.write_text(started.text, encoding="utf-8")
    if options.as_json:
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
    root, words = bench_command(names or [])
    raise typer.Exit(subprocess.run(words, cwd=root, check=False).returncode)


def bench_command(names: list[str]) -> tuple[Path, list[str]]:
    """Return the source tree, that of the working directory or else of this package, and the command to run there."""
    here = Path.cwd().resolve()
    roots = [here, *here.parents, *Path(__file__).resolve().parents]
    root = next((root for root in roots if (root / BENCHMARKS).is_file()), None)
    if root is None:
        raise SetupError(
            "the benchmarks are not in the installed package, but in the source tree\n"
            "Hint: run `streamsift bench`, or `make bench`, in a clone of the project."
        )
    return root, [sys.executable, "-m", "benchmarks", "run", *names]


@app.command(epilog="Example: streamsift demo --rows 50000, or, for data to play with: streamsift demo --save data")
def demo(
    rows: Annotated[int, typer.Option("--rows", min=1000, help="Events in each data set.")] = 400_000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other data.")] = 7,
    master: Annotated[str | None, typer.Option("--master", help=MASTER_HELP)] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Only write the data, as CSV files in this new directory.")
    ] = None,
) -> None:
    """Generate three data sets and run queries on them with Spark: plan, matches, throughput."""
    from streamsift.command.demo import run_demo, save_data

    if save is not None:
        arguments.check_outputs(save, None, 1)
        for path in save_data(save, rows, seed):
            stderr.print(f"wrote {path}", highlight=False)
        return
    run_demo(Console(), rows, seed, master)


def main() -> None:
    """Run the command line: every error that is meant for the user is one message and an `ExitCode`."""
    logging.disable(logging.ERROR)  # py4j and pyspark log what they raise, with its stack; it is reported here
    sys.exit(run_command(lambda: app(prog_name="streamsift", standalone_mode=False), stderr))


if __name__ == "__main__":
    main()
