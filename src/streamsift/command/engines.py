"""Choose the engine of a batch command: this process, or Spark."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from streamsift.api import Query
from streamsift.command.arguments import check_time
from streamsift.command.options import EngineName, Options
from streamsift.errors import SetupError
from streamsift.runtime.input import file_format, local_files, size_bytes
from streamsift.runtime.resources import default_limit, size_text

# Peak memory for reading a file and running a query on it, in multiples of its size.
MEMORY_PER_BYTE = {"csv": 8, "json": 8, "parquet": 30}
COMPRESSION = 8  # by gzip, of event data as text


def choose_engine(options: Options, console: Console) -> EngineName:
    """Return the engine to use; say on stderr which one `auto` chose, and why."""
    if options.engine is not EngineName.AUTO:
        if options.engine is EngineName.LOCAL and options.master is not None:
            raise SetupError("--master does not apply to --engine local\nHint: remove one of the two options.")
        return options.engine
    chosen, reason = _automatic(options)
    if not options.as_json:  # where stderr is for errors only, as JSON
        console.print(f"engine: {chosen} ({reason})", highlight=False, markup=False, soft_wrap=True, style="dim")
    return chosen


def has_input(options: Options, queries: Mapping[str, Query]) -> bool:
    """Return True if `explain` has an input to plan for; raise if it needs one, or the name of its time column."""
    if options.input is not None:
        check_time(queries, options.time, "--input")
        return True
    on_spark = options.master is not None or options.engine is EngineName.SPARK
    for is_given, what in (
        (options.analyze, "--analyze"),
        (len(queries) > 1, "the plan of several queries"),
        (on_spark, "the plan on Spark"),
    ):
        if is_given:
            raise SetupError(f"{what} requires --input")
    return False


def _automatic(options: Options) -> tuple[EngineName, str]:
    if options.master is not None:
        return EngineName.SPARK, "--master is given"
    if options.stream:
        return EngineName.SPARK, "streams run on Spark"
    if options.analyze:
        return EngineName.LOCAL, "--analyze runs in process"
    if options.memory_limit is not None:
        return EngineName.LOCAL, "--memory-limit is given"
    size = size_bytes(options.source)
    if size is None:
        return EngineName.SPARK, "the input is a URI"
    needed, available = size * _memory_per_byte(options), default_limit()
    if needed <= available:
        return EngineName.LOCAL, f"{size_text(size)} of input fits in memory"
    return EngineName.SPARK, f"the input needs about {size_text(needed)} of memory, and {size_text(available)} is free"


def _memory_per_byte(options: Options) -> int:
    is_compressed = any(path.suffix.lower() == ".gz" for path in local_files(options.input))
    factor = MEMORY_PER_BYTE[file_format(options.source)]
    return factor * COMPRESSION if is_compressed else factor
