"""Run a batch query on files, and show, print, write or draw its result, in process or on Spark."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
from rich.console import Console

from streamsift.api import Query, RowQuery, explain_many, run_many
from streamsift.command.engines import choose_engine
from streamsift.command.options import BadRowsOption, EngineName, Options
from streamsift.command.progress import announced_compiling, progress
from streamsift.command.session import start_spark
from streamsift.errors import SetupError, StreamsiftWarning
from streamsift.runtime.input import file_format, read_schema, read_table
from streamsift.runtime.resources import track_progress
from streamsift.view.files import flat_table, json_lines, write_csv, write_file, write_lines
from streamsift.view.match_columns import MatchRoles, text_columns
from streamsift.view.plots import MAX_ROWS, save_plot
from streamsift.view.tables import how_many, print_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

SHOWN_ROWS = 20  # of a table, without --limit


@contextmanager
def open_job(query: Query, options: Options, console: Console) -> Iterator[LocalJob | SparkJob]:
    """Yield a job in process, or one on Spark; Spark is started for it and stopped afterwards."""
    if options.analyze and (options.engine is EngineName.SPARK or options.master is not None):
        raise SetupError("--analyze does not apply to Spark\nHint: remove --engine or --master to run in process.")
    file_format(options.source)  # reports a wrong path before Spark starts
    if choose_engine(options, console) is EngineName.LOCAL:
        yield LocalJob(query, options, console)
        return
    spark = start_spark(console, options.master)
    try:
        yield SparkJob(query, options, console, spark)
    finally:
        spark.stop()


@dataclass(slots=True)
class Job:
    """A query and its command-line options."""

    query: Query
    options: Options
    console: Console

    def print(self, rows: pa.Table, total: int | None) -> None:
        """Print rows as a table; a total of None means that there are more rows, which were not counted."""
        roles = MatchRoles(self.query.sketch, self.options.time, self.options.type)
        print_table(text_columns(rows, roles), how_many(rows.num_rows, total, *nouns(self.query)))


@dataclass(slots=True)
class LocalJob(Job):
    """A job in this process, on Arrow tables."""

    result: pa.Table | None = None  # of one query, after `many`
    cap: int | None = None  # the row count at which the search stops
    first: pa.Table | None = field(default=None, init=False)  # the first rows, kept for a chart

    def many(self, queries: Mapping[str, Query], limit: int | None, *, shows: bool) -> dict[str, LocalJob]:
        """Run all queries in one pass and return a job with the result of each.

        To show results, search for one row more than is shown.
        """
        cap = limit + 1 if shows and limit is not None else limit
        given = {"memory_limit": self.options.memory_limit, **self.options.run_arguments}
        with _warnings_on_stderr():
            results = run_many(queries, self._events(), share=self.options.share.value, limit=cap, **given)
        return {name: replace(self, query=queries[name], result=result, cap=cap) for name, result in results.items()}

    def explain(self) -> str:
        events = self._events() if self.options.analyze else self._schema()
        return self.query.explain(events, analyze=self.options.analyze, **self.options.binding)

    def explain_many(self, queries: Mapping[str, Query]) -> str:
        return explain_many(queries, self._schema(), share=self.options.share.value, **self.options.binding)

    def show(self, limit: int) -> int:
        """Print a table. The search stops when there is one match more than the table shows."""
        if self.result is None and not has_total(self.query):
            self.cap = max(limit + 1, MAX_ROWS if self.options.plot else 0)
        reader = self._reader(self.cap)
        with self._progress():
            rows = pa.Table.from_batches(self._kept(reader), reader.schema)
        total = None if self.cap is not None and rows.num_rows >= self.cap else rows.num_rows
        self.print(rows.slice(0, limit), total)
        return rows.num_rows

    def stream(self, output_format: str, limit: int | None) -> int:
        reader = self._reader(limit)
        batches = self._kept(reader)
        with self._progress():
            first = list(islice(batches, 1))
        if output_format == "csv":
            return write_csv(chain(first, batches), reader.schema, sys.stdout.buffer)
        return write_lines(chain(first, batches), sys.stdout)

    def plot(self, output: Path) -> None:
        assert self.first is not None, "plot() requires the result"
        save_plot(self.first, self.query.sketch, output)

    def write(self, output: Path, output_format: str, limit: int | None) -> int:
        reader = self._reader(limit)
        with self._progress():
            return write_file(self._kept(reader), reader.schema, output, output_format)

    def _schema(self) -> pa.Schema:
        return read_schema(self.options.source)

    def _events(self) -> pa.Table:
        with self._progress(f"reading {self.options.input}", "rows"):
            return read_table(self.options.source)

    def _reader(self, limit: int | None) -> pa.RecordBatchReader:
        """Return a reader that computes the result while it is read."""
        if self.result is not None:
            return self.result.to_reader()
        given = {"memory_limit": self.options.memory_limit, **self.options.run_arguments}
        with _warnings_on_stderr():
            return self.query.batches(self._events(), limit=limit, **given)

    def _kept(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the reader, and keep the first rows for a chart."""
        kept: list[pa.RecordBatch] = []
        left = MAX_ROWS if self.options.plot else 0
        for batch in reader:
            if left > 0:
                kept.append(batch.slice(0, left))
                left -= batch.num_rows
            yield batch
        self.first = pa.Table.from_batches(kept, reader.schema)

    @contextmanager
    def _progress(self, title: str = "finding matches", unit: str = "events") -> Iterator[None]:
        with (
            announced_compiling(self.console),
            track_progress() as tracker,
            progress(self.console, title, tracker.counts, unit),
        ):
            yield


@dataclass(slots=True)
class SparkJob(Job):
    """A job on Spark: in local mode, or on the cluster of a master URL."""

    spark: Any
    result: DataFrame | None = None  # once computed
    observation: Observation | None = None  # counts dropped rows

    def many(self, queries: Mapping[str, Query], limit: int | None, *, shows: bool) -> dict[str, SparkJob]:
        """Run all queries in one pass and return a job with the result of each."""
        share: Any = self.options.share.value
        results = run_many(queries, self._events(), share=share, **self.options.run_arguments)
        if not shows and limit is not None:
            results = {name: best_first(queries[name], result).limit(limit) for name, result in results.items()}
        return {name: replace(self, query=queries[name], result=result) for name, result in results.items()}

    def explain(self) -> str:
        return self.query.explain(self._events(), **self.options.binding)

    def explain_many(self, queries: Mapping[str, Query]) -> str:
        return explain_many(queries, self._events(), share=self.options.share.value, **self.options.binding)

    def show(self, limit: int) -> int:
        """Print a table. Every task stops when it has one match more than the table shows."""
        from streamsift.spark.files import heads

        result = self._result()
        is_counted = has_total(self.query)
        wanted = max(limit + 1, MAX_ROWS if self.options.plot else 0)
        result = self.result = (result if is_counted else heads(result, wanted)).persist()
        with self._progress("finding matches"):
            rows = result.count()
            head = best_first(self.query, result).limit(limit).toArrow()
        self._report_bad_rows()
        total = rows if is_counted or rows < wanted else None
        self.print(head, total)
        return rows

    def stream(self, output_format: str, limit: int | None) -> int:
        result = self._result(limit, keep=self.options.plot is not None)
        if output_format == "csv":
            with self._progress("finding matches"):
                table = flat_table(result.toArrow())
            pyarrow.csv.write_csv(table, sys.stdout.buffer)
            rows = table.num_rows
        else:
            # Partitions pass through this process one at a time.
            lines = lines_of(result).toLocalIterator(prefetchPartitions=True)
            with self._progress("finding matches"):
                first = list(islice(lines, 1))
            rows = 0
            for row in chain(first, lines):
                sys.stdout.write(f"{row.line}\n")
                rows += 1
        self._report_bad_rows()
        return rows

    def write(self, output: Path, output_format: str, limit: int | None) -> int:
        from streamsift.spark.files import counted

        result, rows = counted(self._result(limit, keep=self.options.plot is not None))
        with self._progress(f"writing {output}"):
            written, source = as_written(result, output_format)
            written.write.format(source).option("header", True).save(str(output))
        self._report_bad_rows()
        return rows()

    def plot(self, output: Path) -> None:
        with self._progress(f"drawing {output}"):
            first = best_first(self.query, self._result()).limit(MAX_ROWS).toArrow()
            save_plot(first, self.query.sketch, output)

    def _events(self) -> DataFrame:
        from streamsift.spark.files import read_events

        with self._progress(f"reading the schema of {self.options.input}"):
            return read_events(self.spark, self.options.source)

    def _result(self, limit: int | None = None, *, keep: bool = False) -> DataFrame:
        """Return the result, which is computed once and reused by later calls."""
        if self.result is None:
            from pyspark.sql import Observation

            self.observation = Observation() if self.options.bad_rows is BadRowsOption.DROP else None
            result = self.query.run(self._events(), observation=self.observation, **self.options.run_arguments)
            if limit is not None:
                result = best_first(self.query, result).limit(limit)
            self.result = result.persist() if keep else result
        return self.result

    def _report_bad_rows(self) -> None:
        """Print how many rows were dropped, after an action on the result."""
        if self.observation is not None and (count := self.observation.get["bad_rows"]):
            rows = "1 row" if count == 1 else f"{count:,} rows"
            print(f"warning: dropped {rows} without a usable time or order", file=sys.stderr)

    def _progress(self, title: str) -> Any:
        from streamsift.spark.files import task_counter

        return progress(self.console, title, task_counter(self.spark))


def show_many(job: LocalJob | SparkJob, queries: Mapping[str, Query], output_format: str) -> int:
    """Print the table of each query, or write a file for each; return the total number of rows."""
    output, limit = job.options.output, job.options.limit
    rows, shown = 0, limit or SHOWN_ROWS
    if output is None:
        for name, one in job.many(queries, shown, shows=True).items():
            print(name, flush=True)
            rows += one.show(shown)
        return rows
    jobs = job.many(queries, limit, shows=False)
    output.mkdir()
    rows = sum(one.write(output / f"{name}.{output_format}", output_format, None) for name, one in jobs.items())
    job.console.print(f"wrote {output}", highlight=False)
    return rows


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Print the warnings of Streamsift inside, one line each, without the source line that Python would add."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StreamsiftWarning)
        yield
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)


def has_total(query: Query) -> bool:
    """Return True if all rows are computed before the first is returned: for AGG and PREF … RETURN k."""
    if isinstance(query, RowQuery):
        return False
    statement = query.script.statement
    return bool(statement.aggregates) or (statement.returns is not None and statement.returns.limit is not None)


def nouns(query: Query) -> tuple[str, str]:
    """Return the noun for the rows of a result, in singular and plural."""
    if isinstance(query, RowQuery):
        return "row", "rows"
    return ("row", "rows") if query.script.statement.aggregates else ("match", "matches")


def best_first(query: Query, result: DataFrame) -> DataFrame:
    """Sort a ranking by window, group and rank; return any other result unchanged."""
    if isinstance(query, RowQuery):
        return result
    statement = query.script.statement
    if statement.returns is None or statement.returns.limit is None:
        return result
    groups = [name.parts[-1] for name in statement.group_by]
    columns = [*(["window_end"] if statement.update else []), *groups, "rank"]
    return result.orderBy(*("`" + name.replace("`", "``") + "`" for name in columns))


def as_written(result: DataFrame, output_format: str) -> tuple[DataFrame, str]:
    """Return the result in columns that the format supports, and Spark's name of the format."""
    from streamsift.spark.files import flat

    if output_format == "parquet":
        return result, "parquet"
    return (flat(result), "csv") if output_format == "csv" else (lines_of(result), "text")


def lines_of(result: DataFrame) -> DataFrame:
    return result.mapInArrow(_to_lines, "line string")


def _to_lines(batches: Any) -> Any:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array(json_lines(batch), pa.string())], ["line"])
