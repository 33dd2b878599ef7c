"""Run a query on files and show, print, write or draw its result: the same verbs on Spark and in this process."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.csv
from rich.console import Console

from streamsift.api import Query, explain_many, run_many
from streamsift.command.options import BadRowsOption, Options
from streamsift.command.progress import progress
from streamsift.command.session import start_spark
from streamsift.errors import BadRowsWarning
from streamsift.runtime.input import file_format, read_schema, read_table
from streamsift.runtime.resources import track_progress
from streamsift.view.files import write_csv, write_file, write_lines
from streamsift.view.lines import flat_table, json_lines
from streamsift.view.pictures import MAX_ROWS, save_picture
from streamsift.view.tables import how_many, print_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


SHOWN_ROWS = 20  # of a table, if not said otherwise


@dataclass(slots=True)
class Job:
    """A query, and what it was given on the command line."""

    query: Query
    options: Options
    console: Console

    @property
    def is_drawn(self) -> bool:
        """Return True if the result, or its first rows, are used once more, for a picture."""
        return self.options.plot is not None


@dataclass(slots=True)
class LocalJob(Job):
    """In this process, on Arrow."""

    result: pa.Table | None = None  # of one of several queries, once it is there
    cap: int | None = None  # the rows with which the search for it ended
    first: pa.Table | None = field(default=None, init=False)  # the rows that are kept

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def many(self, queries: Mapping[str, Query], limit: int | None, *, shows: bool) -> dict[str, LocalJob]:
        """Return a job with its result for each query, from one pass; if it shows, with one row more."""
        cap = limit + 1 if shows and limit is not None else limit
        results = run_many(
            queries,
            self._events(),
            share=self.options.share.value,
            limit=cap,
            memory_limit=self.options.memory_limit,
            **self.options.run_arguments,
        )
        return {name: replace(self, query=queries[name], result=result, cap=cap) for name, result in results.items()}

    def explain(self) -> str:
        events = self._events() if self.options.analyze else self._schema()
        return self.query.explain(events, analyze=self.options.analyze, **self.options.binding)

    def explain_many(self, queries: Mapping[str, Query]) -> str:
        return explain_many(queries, self._schema(), share=self.options.share.value, **self.options.binding)

    def show(self, limit: int) -> int:
        """Print a table; matches are looked for until there is one more than it shows."""
        if self.result is None and not has_total(self.query):
            self.cap = max(limit + 1, MAX_ROWS if self.is_drawn else 0)
        reader = self._reader(self.cap)
        with self._progress():
            rows = pa.Table.from_batches(self._kept(reader), reader.schema)
        total = None if self.cap is not None and rows.num_rows >= self.cap else rows.num_rows
        print_table(rows.slice(0, limit), how_many(min(limit, rows.num_rows), total, *nouns(self.query)))
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
        assert self.first is not None, "a picture is made after the result"
        save_picture(self.first, self.query.sketch, output)

    def write(self, output: Path, output_format: str, limit: int | None) -> int:
        reader = self._reader(limit)
        with self._progress():
            return write_file(self._kept(reader), reader.schema, output, output_format)

    def _schema(self) -> pa.Schema:
        return read_schema(self.options.input, self.options.given_format)

    def _events(self) -> pa.Table:
        with (
            track_progress() as tracker,
            progress(self.console, f"reading {self.options.input}", tracker.counts, "rows"),
        ):
            return read_table(self.options.input, self.options.given_format)

    def _reader(self, limit: int | None) -> pa.RecordBatchReader:
        """Return the result, which is found while it is read."""
        if self.result is not None:
            return self.result.to_reader()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BadRowsWarning)
            memory_limit = self.options.memory_limit
            reader = self.query.batches(
                self._events(), limit=limit, memory_limit=memory_limit, **self.options.run_arguments
            )
        for warning in caught:
            print(f"warning: {warning.message}", file=sys.stderr)
        return reader

    def _kept(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the reader; keep the first rows if they are used once more."""
        kept: list[pa.RecordBatch] = []
        left = MAX_ROWS if self.is_drawn else 0
        for batch in reader:
            if left > 0:
                kept.append(batch.slice(0, left))
                left -= batch.num_rows
            yield batch
        self.first = pa.Table.from_batches(kept, reader.schema)

    @contextmanager
    def _progress(self) -> Iterator[None]:
        with track_progress() as tracker, progress(self.console, "finding matches", tracker.counts, "events"):
            yield


@dataclass(slots=True)
class SparkJob(Job):
    """On Spark: local mode by default, a cluster by its master URL."""

    spark: Any = None
    result: tuple[DataFrame, Callable[[], None]] | None = None  # once it is there, and what reports dropped rows

    def __enter__(self) -> Self:
        # A wrong path is reported before Spark takes its seconds to start.
        file_format(self.options.input, self.options.given_format)
        self.spark = start_spark(self.console, self.options.master)
        return self

    def __exit__(self, *_: object) -> None:
        self.spark.stop()

    def many(self, queries: Mapping[str, Query], limit: int | None, *, shows: bool) -> dict[str, SparkJob]:
        """Return a job with its result for each query, from one pass."""
        share: Any = self.options.share.value
        results = run_many(queries, self._events(), share=share, **self.options.run_arguments)
        jobs: dict[str, SparkJob] = {}
        for name, result in results.items():
            limited = result if shows or limit is None else best_first(queries[name], result).limit(limit)
            jobs[name] = replace(self, query=queries[name], result=(limited, lambda: None))
        return jobs

    def explain(self) -> str:
        return self.query.explain(self._events(), **self.options.binding)

    def explain_many(self, queries: Mapping[str, Query]) -> str:
        return explain_many(queries, self._events(), share=self.options.share.value, **self.options.binding)

    def show(self, limit: int) -> int:
        """Print a table; every task looks for matches until it has one more than that shows."""
        from streamsift.spark.files import heads

        result, report = self._result()
        is_counted = has_total(self.query)
        wanted = max(limit + 1, MAX_ROWS if self.is_drawn else 0)
        result = (result if is_counted else heads(result, wanted)).persist()
        with self._progress("finding matches"):
            rows = result.count()
            head = best_first(self.query, result).limit(limit).toArrow()
        report()
        self.result = result, report
        total = rows if is_counted or rows < wanted else None
        print_table(head, how_many(head.num_rows, total, *nouns(self.query)))
        return rows

    def stream(self, output_format: str, limit: int | None) -> int:
        result, report = self._result(limit, keep=self.is_drawn)
        if output_format == "csv":
            with self._progress("finding matches"):
                table = flat_table(result.toArrow())
            pyarrow.csv.write_csv(table, sys.stdout.buffer)
            rows = table.num_rows
        else:
            # One partition after the other passes through this process, never all of them at once.
            lines = result.mapInArrow(to_lines, "line string").toLocalIterator(prefetchPartitions=True)
            with self._progress("finding matches"):
                first = list(islice(lines, 1))
            rows = 0
            for row in chain(first, lines):
                sys.stdout.write(f"{row.line}\n")
                rows += 1
        report()
        return rows

    def write(self, output: Path, output_format: str, limit: int | None) -> int:
        from streamsift.spark.files import counted, flat

        result, report = self._result(limit, keep=self.is_drawn)
        result, rows = counted(result)
        with self._progress(f"writing {output}"):
            match output_format:
                case "parquet":
                    result.write.parquet(str(output))
                case "csv":
                    flat(result).write.csv(str(output), header=True)
                case _:
                    result.mapInArrow(to_lines, "line string").write.text(str(output))
        report()
        return rows()

    def plot(self, output: Path) -> None:
        result, _ = self._result()
        with self._progress(f"drawing {output}"):
            save_picture(best_first(self.query, result).limit(MAX_ROWS).toArrow(), self.query.sketch, output)

    def _events(self) -> DataFrame:
        from streamsift.spark.files import read_events

        with self._progress(f"looking at {self.options.input}"):
            return read_events(self.spark, self.options.input, self.options.given_format)

    def _result(self, limit: int | None = None, *, keep: bool = False) -> tuple[DataFrame, Callable[[], None]]:
        """Return the result, kept from one verb to the next, and what reports on dropped rows once it has been used."""
        if self.result is None:
            from pyspark.sql import Observation

            observation = Observation() if self.options.bad_rows is BadRowsOption.DROP else None
            result = self.query.run(self._events(), observation=observation, **self.options.run_arguments)
            if limit is not None:
                result = best_first(self.query, result).limit(limit)
            self.result = result.persist() if keep else result, partial(_report, observation)
        return self.result

    def _progress(self, title: str) -> Any:
        from streamsift.spark.files import task_counter

        return progress(self.console, title, task_counter(self.spark))


def show_many(job: LocalJob | SparkJob, queries: Mapping[str, Query], output_format: str) -> int:
    """Show tables one after the other, or write a file for each query; return how many rows there are in all."""
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


def _report(observation: Observation | None) -> None:
    if observation is not None and (count := observation.get["bad_rows"]):
        rows = "1 row" if count == 1 else f"{count:,} rows"
        print(f"warning: dropped {rows} without a usable time or order", file=sys.stderr)


def has_total(query: Query) -> bool:
    """Return True if all rows of a result are known when the first one is: totals and rankings, but not matches."""
    statement = query.script.statement
    return bool(statement.aggregates) or (statement.returns is not None and statement.returns.limit is not None)


def nouns(query: Query) -> tuple[str, str]:
    """Return what the rows of a result are called: one, and several."""
    return ("row", "rows") if query.script.statement.aggregates else ("match", "matches")


def best_first(query: Query, result: DataFrame) -> DataFrame:
    """Return a ranking as a leaderboard: tick by tick, group by group, the best first. Anything else as it comes."""
    statement = query.script.statement
    if statement.returns is None or statement.returns.limit is None:
        return result
    groups = [name.parts[-1] for name in statement.group_by]
    columns = [*(["window_end"] if statement.update else []), *groups, "rank"]
    return result.orderBy(*("`" + name.replace("`", "``") + "`" for name in columns))


def to_lines(batches: Any) -> Any:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array(json_lines(batch), pa.string())], ["line"])
