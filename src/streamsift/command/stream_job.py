"""Run a query on the files of a directory until interrupted: a live view, rows to files or standard output."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from streamsift.api import Query
from streamsift.command.jobs import nouns, to_lines
from streamsift.command.live_table import Reading, live_table, summary
from streamsift.command.options import Options
from streamsift.command.session import start_spark
from streamsift.command.stderr_filter import mute_stderr_after
from streamsift.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SECONDS_PER_LOOK = 1
STOPPING = "interrupted: the micro-batch that runs is given up; the next run makes it again"


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A query over the files of a directory, those that are there and those that come."""

    query: Query
    options: Options
    output_format: str
    console: Console

    def run(self) -> None:
        """Start, follow and end the stream."""
        path, output = self.options.input, self.options.output
        if not path.is_dir():
            raise SetupError(f"--stream reads a directory that files are dropped into; {path} is none")
        if output is not None and output.exists() and not self._checkpoint_of(output).exists():
            raise SetupError(f"{output} is there already, and not from a stream; remove it or choose another name")
        interrupted = threading.Event()
        with mute_stderr_after(interrupted):
            spark = start_spark(self.console, self.options.master)
        from streamsift.spark.files import stream_events

        try:
            events = stream_events(spark, path, self.options.given_format)
            result = self.query.run(events, lateness=self.options.lateness, **self.options.run_arguments)
            with self._checkpoint() as checkpoint:
                self._follow(spark, self._start(result, checkpoint), interrupted)
        finally:
            spark.stop()

    def _checkpoint_of(self, output: Path) -> Path:
        return self.options.checkpoint or output.with_name(f"{output.name}.checkpoint")

    @contextmanager
    def _checkpoint(self) -> Iterator[Path]:
        """Yield where the stream keeps its progress: beside the output, so that another run continues from it."""
        output = self.options.output
        known = self.options.checkpoint if output is None else self._checkpoint_of(output)
        if known is not None:
            yield known
            return
        with tempfile.TemporaryDirectory(prefix="streamsift-", ignore_cleanup_errors=True) as path:
            yield Path(path)

    def _start(self, result: DataFrame, checkpoint: Path) -> StreamingQuery:
        from streamsift.spark.files import flat

        match self.output_format if self.options.output is not None else "lines":
            case "parquet":
                writer = result.writeStream.format("parquet")
            case "csv":
                writer = flat(result).writeStream.format("csv").option("header", True)
            case "lines":
                writer = result.mapInArrow(to_lines, "line string").writeStream.foreachBatch(_to_stdout)
            case _:
                writer = result.mapInArrow(to_lines, "line string").writeStream.format("text")
        if self.options.output is not None:
            writer = writer.option("path", str(self.options.output))
        if self.options.once:
            writer = writer.trigger(availableNow=True)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def _follow(self, spark: SparkSession, stream: StreamingQuery, interrupted: threading.Event) -> None:
        from streamsift.spark import metrics

        noun, reading = nouns(self.query)[1], Reading()
        with _set_by_interrupts(interrupted), self._view(noun) as show:
            while not interrupted.is_set() and not stream.awaitTermination(SECONDS_PER_LOOK):
                reading = reading.after(metrics(stream).triggers)
                show(reading)
        if interrupted.is_set():
            self.console.print(STOPPING, highlight=False)
            # Tasks that are abandoned end with errors, which would be noise to whoever has just interrupted them.
            spark.sparkContext.setLogLevel("OFF")
            stream.stop()
        self.console.print(summary(reading.after(metrics(stream).triggers), noun), highlight=False)

    @contextmanager
    def _view(self, noun: str) -> Iterator[Callable[[Reading], None]]:
        if not self.console.is_terminal:
            yield lambda _: None
            return
        with Live(console=self.console, auto_refresh=False, transient=True) as live:
            yield lambda reading: live.update(live_table(reading, noun), refresh=True)


@contextmanager
def _set_by_interrupts(interrupted: threading.Event) -> Iterator[None]:
    """Set the event at Ctrl-C; a second one ends the process as usual.

    Spark's own handler would cancel the jobs of the stream, which then fails instead of being stopped.
    """
    before = signal.getsignal(signal.SIGINT)

    def note(*_: object) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _to_stdout(batch: DataFrame, _: int) -> None:
    # One partition after the other passes through this process, never all of them at once.
    sys.stdout.writelines(f"{row.line}\n" for row in batch.toLocalIterator())
    sys.stdout.flush()
