"""Run a query on the files of a directory until interrupted: a live view, rows to files or standard output."""

from __future__ import annotations

import os
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
from streamsift.command.jobs import as_written, lines_of, nouns
from streamsift.command.options import EngineName, Options
from streamsift.command.progress import Reading, live_table, summary
from streamsift.command.session import start_spark
from streamsift.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SECONDS_PER_LOOK = 1
STDERR, CHUNK_BYTES = 2, 1 << 16
STOPPING = "interrupted: the micro-batch that runs is given up; the next run makes it again"


def check_stream(options: Options, queries: int, output_format: OutputFormat) -> None:
    """Raise if the options cannot be used on a stream."""
    is_csv = output_format is OutputFormat.CSV
    for is_wrong, message in (
        (not options.stream, "--once, --lateness and --checkpoint are for streams: add --stream"),
        (queries > 1, "--stream takes one query; streamsift.run_many streams several"),
        (options.limit is not None, "--limit is not for streams: they have no end"),
        (options.engine is EngineName.LOCAL, "--stream runs on Spark: leave --engine out"),
        (
            options.output is None and is_csv,
            "a stream's CSV goes to files: add --output DIRECTORY, or use --format json",
        ),
    ):
        if is_wrong:
            raise SetupError(message)


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A query over the files of a directory, those that are there and those that come."""

    query: Query
    options: Options
    output_format: str
    console: Console

    def run(self) -> None:
        """Start, follow and end the stream. Its progress is kept beside the output, so that another run continues."""
        path, output, checkpoint = self.options.input, self.options.output, self.options.checkpoint
        if checkpoint is None and output is not None:
            checkpoint = output.with_name(f"{output.name}.checkpoint")
        if not path.is_dir():
            raise SetupError(f"--stream reads a directory that files are dropped into; {path} is none")
        if output is not None and output.exists() and not (checkpoint and checkpoint.exists()):
            raise SetupError(f"{output} is there already, and not from a stream; remove it or choose another name")
        interrupted = threading.Event()
        with mute_stderr_after(interrupted):
            spark = start_spark(self.console, self.options.master)
        from streamsift.spark.files import stream_events

        try:
            events = stream_events(spark, path, self.options.input_format)
            result = self.query.run(events, lateness=self.options.lateness, **self.options.run_arguments)
            with tempfile.TemporaryDirectory(prefix="streamsift-", ignore_cleanup_errors=True) as temporary:
                self._follow(spark, self._start(result, checkpoint or Path(temporary)), interrupted)
        finally:
            spark.stop()

    def _start(self, result: DataFrame, checkpoint: Path) -> StreamingQuery:
        output = self.options.output
        if output is None:
            writer = lines_of(result).writeStream.foreachBatch(_to_stdout)
        else:
            written, source = as_written(result, self.output_format)
            writer = written.writeStream.format(source).option("header", True).option("path", str(output))
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
            # Tasks that are abandoned end with errors, which are noise after an interrupt.
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

    Spark's handler would cancel the jobs of the stream, which then fails instead of being stopped.
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


@contextmanager
def mute_stderr_after(event: threading.Event) -> Iterator[None]:
    """Pass on the output of processes started inside, and of their children, until the event is set.

    A JVM reports a thread that ended by an error at any log level, and workers report that they were interrupted: after
    an interrupt that is noise. What this process writes inside is passed on, too.
    """
    kept = os.dup(STDERR)
    reader, writer = os.pipe()
    os.dup2(writer, STDERR)
    os.close(writer)
    threading.Thread(target=_pass_on, args=(reader, os.dup(kept), event), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)


def _pass_on(reader: int, target: int, muted: threading.Event) -> None:
    """Copy until no process has the other end of the pipe any more."""
    with os.fdopen(reader, "rb", buffering=0) as source, os.fdopen(target, "wb", buffering=0) as copy:
        while chunk := source.read(CHUNK_BYTES):
            if not muted.is_set():
                copy.write(chunk)
