"""Run a query on a directory that files are added to, or on a Kafka topic, until interrupted.

The terminal shows a live table.
"""

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
from streamsift.command.arguments import OutputFormat
from streamsift.command.engines import choose_engine
from streamsift.command.jobs import as_written, lines_of, nouns
from streamsift.command.options import EngineName, Options
from streamsift.command.progress import Reading, live_table, progress, summary
from streamsift.command.session import start_spark
from streamsift.command.topics import check_topics, lines_writer, read_dataframe
from streamsift.errors import SetupError
from streamsift.runtime.input import file_format, is_topic, is_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SECONDS_PER_LOOK = 1
STOPPING = "interrupted: the current micro-batch is discarded"
NO_CHECKPOINT = (
    "this run has no checkpoint, so its progress and state are lost; the next run starts from the beginning\n"
    "Hint: add --checkpoint DIRECTORY, or --output DIRECTORY, to let the next run resume."
)


def check_stream(options: Options, queries: int, output_format: OutputFormat) -> None:
    """Raise if the options cannot be used on a stream."""
    is_csv = output_format is OutputFormat.CSV
    for is_wrong, message in (
        (not options.is_stream, "--once, --lateness, --buckets and --checkpoint require --stream"),
        (queries > 1, "--stream takes one query\nHint: use streamsift.run_many in Python to run several on a stream."),
        (options.limit is not None, "--limit does not apply to streams"),
        (options.memory_limit is not None, "--memory-limit does not apply to streams"),
        (options.plot is not None, "--plot does not apply to streams"),
        (options.engine is EngineName.LOCAL, "--stream requires Spark\nHint: remove --engine local."),
        (
            options.output is None and is_csv,
            "a stream cannot write CSV to standard output\nHint: add --output DIRECTORY, or use --format json.",
        ),
    ):
        if is_wrong:
            raise SetupError(message)
    check_topics(options)


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A query over the files of a directory, including files that are added later, or over a Kafka topic."""

    query: Query
    options: Options
    output_format: str
    console: Console

    def run(self) -> None:
        """Run the stream until it ends or is interrupted. A checkpoint next to the output lets the next run resume."""
        path, output, checkpoint = self.options.input, self.options.output, self.options.checkpoint
        to_topic = is_topic(output)
        if checkpoint is None and output is not None and not to_topic:
            checkpoint = output.with_name(f"{output.name}.checkpoint")
        if not is_uri(path) and not Path(path).is_dir():
            raise SetupError(f"--stream requires a directory as input: {path} is not a directory")
        if output is not None and not to_topic and output.exists() and not (checkpoint and checkpoint.exists()):
            raise SetupError(
                f"output path already exists, and has no checkpoint: {output}\nHint: remove it or choose another path."
            )
        choose_engine(self.options, self.console)
        interrupted = threading.Event()
        spark = start_spark(self.console, self.options.master, "streamsift", interrupted, self.options.packages)

        try:
            with progress(self.console, f"reading the schema of {self.options.input}"):
                events = read_dataframe(spark, self.options, streaming=True)
            result = self.query.run(events, **self.options.stream_arguments, **self.options.run_arguments)
            with tempfile.TemporaryDirectory(prefix="streamsift-", ignore_cleanup_errors=True) as temporary:
                stream = self._start(result, checkpoint or Path(temporary))
                self._follow(spark, stream, checkpoint, interrupted)
        finally:
            spark.stop()

    def _start(self, result: DataFrame, checkpoint: Path) -> StreamingQuery:
        output = self.options.output
        if output is None:
            writer = lines_of(result).writeStream.foreachBatch(_to_stdout)
        elif is_topic(output):
            writer = lines_writer(lines_of(result), output)
        else:
            written, source = as_written(result, self.output_format)
            writer = written.writeStream.format(source).option("header", True).option("path", str(output))
        if self.options.once:
            writer = writer.trigger(availableNow=True)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def _follow(
        self, spark: SparkSession, stream: StreamingQuery, checkpoint: Path | None, interrupted: threading.Event
    ) -> None:
        from streamsift.spark import metrics

        noun, reading = nouns(self.query)[1], Reading()
        with _set_by_interrupts(interrupted), self._view(noun) as show:
            while not interrupted.is_set() and not stream.awaitTermination(SECONDS_PER_LOOK):
                reading = reading.after(metrics(stream).triggers)
                show(reading)
        if interrupted.is_set():
            self._report_interrupt(checkpoint)
            # Abandoned tasks fail with errors that mean nothing after an interrupt.
            spark.sparkContext.setLogLevel("OFF")
            stream.stop()
        self.console.print(summary(reading.after(metrics(stream).triggers), noun, self._unit), highlight=False)

    @property
    def _unit(self) -> str:
        """Return what Spark counts as input: of CSV and JSON files, lines, with headers."""
        if is_topic(self.options.input):
            return "records"
        return "rows" if file_format(self.options.source) == "parquet" else "lines"

    def _report_interrupt(self, checkpoint: Path | None) -> None:
        resume = NO_CHECKPOINT if checkpoint is None else f"run the same command to resume from {checkpoint}"
        self.console.print(f"{STOPPING}\n{resume}", highlight=False, markup=False)

    @contextmanager
    def _view(self, noun: str) -> Iterator[Callable[[Reading], None]]:
        if not self.console.is_terminal:
            yield lambda _: None
            return
        # Rows on the same terminal are printed above the table; rows that go elsewhere must not be redirected to it.
        on_terminal = sys.stdout.isatty()
        with Live(console=self.console, auto_refresh=False, transient=True, redirect_stdout=on_terminal) as live:
            yield lambda reading: live.update(live_table(reading, noun, self._unit), refresh=True)


@contextmanager
def _set_by_interrupts(interrupted: threading.Event) -> Iterator[None]:
    """Set the event at Ctrl-C; a second Ctrl-C ends the process as usual.

    Spark's own handler would cancel the jobs of the stream, so that the stream fails instead of stopping.
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
    # Partitions pass through this process one at a time.
    sys.stdout.writelines(f"{row.line}\n" for row in batch.toLocalIterator())
    sys.stdout.flush()
