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
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

from streamsift.command import arguments
from streamsift.command.arguments import OutputFormat
from streamsift.command.engines import has_input
from streamsift.command.exit_codes import EXIT_CODES, ExitCode, run_command
from streamsift.command.jobs import SHOWN_ROWS, LocalJob, open_job, show_many
from streamsift.command.options import (
    ENGINE,
    EVENTS,
    INPUT_HELP,
    MASTER_HELP,
    PLANNER,
    READING,
    RESULT,
    STREAM,
    Options,
    takes,
)
from streamsift.command.progress import announced_compiling, progress
from streamsift.command.stream_job import StreamJob, check_stream
from streamsift.errors import SetupError
from streamsift.runtime.input import read_head
from streamsift.view.notebook import sections
from streamsift.view.tables import print_table, wrapped


class Command(TyperCommand):
    """A command whose help leaves out `--help`, so that it does not take a panel of its own."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.hidden = True
        return option


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Find, count and rank patterns in event streams.",
    epilog="Start with your own data: streamsift new events.csv\n\n"
    f"Help on a command: streamsift run --help\n\n{EXIT_CODES}",
)
stderr = Console(stderr=True)
SAMPLE_ROWS = 2_000_000  # that `new` reads of a data file
BENCHMARKS = Path("benchmarks", "__main__.py")  # in the source tree
FITTED = "--input events.csv --time ts --type kind"


def _version(wanted: bool) -> None:
    if wanted:
        from streamsift import __version__

        print(f"streamsift {__version__}")
        raise typer.Exit


@app.callback()
def before_commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Define the options that come before a command."""


@app.command(cls=Command, epilog=f"Example: streamsift run query.txt {FITTED}\n\n{EXIT_CODES}")
@takes(*EVENTS, *RESULT, *PLANNER, *ENGINE, *STREAM, optional=("time",))
def run(options: Options) -> None:
    """Run a query on files, and show or write the result.

    With several queries, the events are read once and --output is a directory.
    """
    queries = arguments.read_queries(options.query_files)
    arguments.check_time(queries, options.time, "run")
    output, plot, limit = options.output, options.plot, options.limit
    given = OutputFormat.JSON if options.as_json else options.format
    chosen = arguments.output_format(output, given, len(queries))
    if any(getattr(options, name) for name in STREAM):
        check_stream(options, len(queries), chosen)
        StreamJob(next(iter(queries.values())), options, chosen.value, stderr).run()
        return
    arguments.check_outputs(output, plot, len(queries))
    arguments.check_limits(options.memory_limit, options.engine)
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


@app.command(cls=Command, epilog=f"Example: streamsift explain query.txt {FITTED}")
@takes(*EVENTS, *PLANNER, *ENGINE, "analyze", "as_json", optional=("input", "time"))
def explain(options: Options) -> None:
    """Show the plan of a query and the reasons for it.

    Without --input, assume the types of columns. With several queries, show what they share. Only --analyze reads rows.
    """
    queries = arguments.read_queries(options.query_files)
    first = next(iter(queries.values()))
    if not has_input(options, queries):
        plan: str = first.explain(**options.binding)
    else:
        with open_job(first, options, stderr) as job:
            plan = job.explain() if len(queries) == 1 else job.explain_many(queries)
    if options.as_json:
        print(json.dumps(sections(plan), ensure_ascii=False))
    else:
        print(wrapped(plan, Console().width) if sys.stdout.isatty() else plan)


@app.command(cls=Command, epilog=f"Example: streamsift check query.txt {FITTED}")
@takes("type", "order", *READING, "as_json")
def check(
    options: Options,
    query_file: Annotated[
        str,
        typer.Argument(metavar="QUERY_FILE", help="Query file, `-` for standard input, or the text of a query."),
    ],
    input: Annotated[
        str | None,
        typer.Option("--input", "-i", metavar="PATH", help="Events to check against.", rich_help_panel="Input"),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with the time of the event.", rich_help_panel="Input"),
    ] = None,
) -> None:
    """Check a query for errors without running it.

    With --input and --time, also check the names and types of its columns.
    """
    parsed = arguments.read_query(query_file)
    text = "the query is valid; add --input and --time to check it against the columns of a file"
    if input is not None:
        arguments.check_time({query_file: parsed}, time, "check --input")
        given = replace(options, query_files=[query_file], input=input, time=time)  # type: ignore[arg-type]
        LocalJob(parsed, given, stderr).explain()
        text = "the query is valid for this input"
    print(json.dumps({"ok": text}) if options.as_json else f"ok: {text}")


@app.command(cls=Command, epilog="Example: streamsift new events.csv --output query.txt")
@takes("input_format", "delimiter", "as_json")
def new(
    options: Options,
    data_file: Annotated[str, typer.Argument(metavar="DATA_FILE", help=INPUT_HELP)],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Query file to write, or `-` for standard output.",
            rich_help_panel="Output",
        ),
    ] = Path("query.txt"),
) -> None:
    """Write a first query for a data file, with a profile of its columns as comments."""
    from streamsift.command.starter import Sample, command, starter

    if str(output) != "-":
        arguments.check_outputs(output, None, 1)
    with progress(stderr, f"reading {data_file}"):
        head = read_head(replace(options, query_files=[], input=data_file).source, SAMPLE_ROWS + 1)
    sample = Sample(head.slice(0, SAMPLE_ROWS), head.num_rows <= SAMPLE_ROWS)
    with announced_compiling(stderr), progress(stderr, "trying a query"):
        started = starter(sample, data_file, output, options.reading_words)
    if str(output) == "-":
        print(started.text, end="")
        return
    output.write_text(started.text, encoding="utf-8")
    if options.as_json:
        print(json.dumps(started.report(output), ensure_ascii=False))
        return
    print_table(started.profile, started.title)
    print(f"\nwrote {output}, a first query ({started.suggestion.outcome}); to run it:")
    print(f"  {command('run', data_file, output, started.options)}")


@app.command(cls=Command, epilog="Example: streamsift bench throughput nested")
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Benchmarks to run. Default: all.")] = None,
) -> None:
    """Run the benchmarks of the source tree.

    Checks that all engines return equal results, then prints how their times compare.
    """
    root, words = bench_command(names or [])
    raise typer.Exit(subprocess.run(words, cwd=root, check=False).returncode)


def bench_command(names: list[str]) -> tuple[Path, list[str]]:
    """Return the source tree (around the working directory, or else around this package) and the command to run."""
    here = Path.cwd().resolve()
    roots = [here, *here.parents, *Path(__file__).resolve().parents]
    root = next((root for root in roots if (root / BENCHMARKS).is_file()), None)
    if root is None:
        raise SetupError(
            "the installed package does not contain the benchmarks\n"
            "Hint: run `streamsift bench`, or `make bench`, in a clone of the project."
        )
    return root, [sys.executable, "-m", "benchmarks", "run", *names]


@app.command(
    cls=Command,
    epilog="Example: streamsift demo --rows 50000\n\nTo get data for your own queries: streamsift demo --save data",
)
def demo(
    rows: Annotated[int, typer.Option(min=1000, metavar="N", help="Events per data set.")] = 400_000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the generated data.")] = 7,
    master: Annotated[str | None, typer.Option(metavar="URL", help=MASTER_HELP)] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Only write the data sets, as CSV files in this new directory."),
    ] = None,
) -> None:
    """Generate three data sets and run seven queries on Spark.

    Shows the plan, the first rows and the throughput of each query.
    """
    from streamsift.command.demo import run_demo, save_data

    if save is not None:
        arguments.check_outputs(save, None, 1)
        for path in save_data(save, rows, seed):
            stderr.print(f"wrote {path}", highlight=False)
        return
    run_demo(Console(), rows, seed, master)


def main() -> None:
    """Run the command line. Errors meant for users become one message and an `ExitCode`."""
    logging.disable(logging.ERROR)  # py4j and pyspark also log the errors that they raise, with a stack trace
    sys.exit(run_command(lambda: app(prog_name="streamsift", standalone_mode=False), stderr))


if __name__ == "__main__":
    main()
