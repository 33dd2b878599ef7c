"""Choose the engine of a batch command: this process, or Spark."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from streamsift.command.options import EngineName, Options
from streamsift.errors import SetupError
from streamsift.runtime.input import file_format
from streamsift.runtime.resources import default_limit, size_text

# Memory for the events of a file, in multiples of its size: the largest seen while reading the demo's data, doubled.
MEMORY_PER_BYTE = {"csv": 5, "json": 6, "parquet": 20}


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


def _automatic(options: Options) -> tuple[EngineName, str]:
    if options.master is not None:
        return EngineName.SPARK, "--master is given"
    if options.stream:
        return EngineName.SPARK, "streams run on Spark"
    if options.analyze:
        return EngineName.LOCAL, "--analyze runs in process"
    if options.memory_limit is not None:
        return EngineName.LOCAL, "--memory-limit is given"
    size, needed = input_bytes(options.input, options.input_format)
    available = default_limit()
    if needed <= available:
        return EngineName.LOCAL, f"{size_text(size)} of input fits in memory"
    return EngineName.SPARK, f"the input needs about {size_text(needed)} of memory, and {size_text(available)} is free"


def input_bytes(path: Path, given_format: str | None) -> tuple[int, int]:
    """Return the size of the input in its files and, estimated, in memory."""
    read_as = file_format(path, given_format)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return size, size * MEMORY_PER_BYTE[read_as]
