"""A query and a path in, a result shown, streamed or written out: the same few verbs on Spark and in this process."""

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

from streamsift.api.many import explain_many, run_many
from streamsift.api.query import Query
from streamsift.command.progress import progress
from streamsift.command.session import start_spark
from streamsift.errors import BadRowsWarning, SetupError
from streamsift.runtime.input import file_format, read_schema, read_table
from streamsift.runtime.resources import track_progress
from streamsift.view.files import write_csv, write_file, write_lines
from streamsift.view.lines import flat_table, json_lines
from streamsift.view.pictures import MOST_ROWS, save_picture
from streamsift.view.tables import how_many, print_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


SHOWN = 20  # rows of a table, if not said otherwise


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns play which part, what happens to rows without a usable time, and the caller's choices."""

    time: str
    type: str | None
    order: str | None
    bad_rows: Any
    choices: dict[str, Any] = field(default_factory=dict)

    def binding(self) -> dict[str, Any]:
        return {"time": self.time, "type": self.type, "order": self.order, **self.choices}


@dataclass(slots=True)
class LocalJob:
    """In this process, on Arrow."""

    query: Query
    path: Path
    given_format: str | None
    columns: Columns
    console: Console
    keep: bool = False  # whether the first rows are used once more, for a picture
    memory_limit: str | None = None
    result: pa.Table | None = None  # of one of several queries, once it is there
    cap: int | None = None  # the rows with which the search for it ended
    first: pa.Table | None = field(default=None, init=False)  # the rows that are kept

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def many(self, queries: Mapping[str, Query], share: Any, limit: int | None, *, shows: bool) -> dict[str, LocalJob]:
        """The results of several queries from one pass, each a job that has its result; if it shows, and one row."""
        cap = limit + 1 if shows and limit is not None else limit
        results = run_many(
            queries,
            self._events(),
            bad_rows=self.columns.bad_rows,
            share=share,
            limit=cap,
            memory_limit=self.memory_limit,
            **self.columns.binding(),
        )
        return {name: replace(self, query=queries[name], result=result, cap=cap) for name, result in results.items()}

    def explain(self, analyze: bool = False) -> str:
        if analyze:
            return self.query.explain(self._events(), analyze=True, **self.columns.binding())
        return self.query.explain(read_schema(self.path, self.given_format), **self.columns.binding())

    def explain_many(self, queries: Mapping[str, Query], share: Any) -> str:
        schema = read_schema(self.path, self.given_format)
        return explain_many(queries, schema, share=share, **self.columns.binding())

    def show(self, limit: int) -> int:
        """Print a table; matches are looked for until there is one more than it shows."""
        if self.result is None and not has_total(self.query):
            self.cap = max(limit + 1, MOST_ROWS if self.keep else 0)
        reader = self._reader(self.cap)
        with self._progress():
            found = pa.Table.from_batches(self._kept(reader), reader.schema)
        total = None if self.cap is not None and found.num_rows >= self.cap else found.num_rows
        print_table(found.slice(0, limit), how_many(min(limit, found.num_rows), total, *nouns(self.query)))
        return found.num_rows

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

    def _events(self) -> pa.Table:
        with track_progress() as tracker, progress(self.console, f"reading {self.path}", tracker.counts, "rows"):
            return read_table(self.path, self.given_format)

    def _reader(self, limit: int | None) -> pa.RecordBatchReader:
        """The result, which is found while it is read."""
        if self.result is not None:
            return self.result.to_reader()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BadRowsWarning)
            reader = self.query.batches(
                self._events(),
                bad_rows=self.columns.bad_rows,
                limit=limit,
                memory_limit=self.memory_limit,
                **self.columns.binding(),
            )
        for warning in caught:
            print(f"warning: {warning.message}", file=sys.stderr)
        return reader

    def _kept(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The batches of the reader; the first rows are kept if they are used once more."""
        kept: list[pa.RecordBatch] = []
        left = MOST_ROWS if self.keep else 0
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
class SparkJob:
    """On Spark: local mode by default, a cluster by its master URL."""

    query: Query
    path: Path
    given_format: str | None
    columns: Columns
    master: str | None
    console: Console
    keep: bool = False  # whether the result is used more than once
    spark: Any = field(default=None, init=False)
    result: tuple[DataFrame, Callable[[], None]] | None = field(default=None, init=False)  # once it is there

    def __enter__(self) -> Self:
        file_format(self.path, self.given_format)  # a wrong path is told before Spark takes its seconds to start
        self.spark = start_spark(self.console, self.master)
        return self

    def __exit__(self, *_: object) -> None:
        self.spark.stop()

    def many(self, queries: Mapping[str, Query], share: Any, limit: int | None, *, shows: bool) -> dict[str, SparkJob]:
        """The results of several queries from one pass, each a job that has its result."""
        results = run_many(
            queries, self._events(), bad_rows=self.columns.bad_rows, share=share, **self.columns.binding()
        )
        jobs: dict[str, SparkJob] = {}
        for name, result in results.items():
            job = SparkJob(queries[name], self.path, self.given_format, self.columns, self.master, self.console)
            limited = result if shows or limit is None else best_first(queries[name], result).limit(limit)
            job.spark, job.result = self.spark, (limited, lambda: None)
            jobs[name] = job
        return jobs

    def explain(self, analyze: bool = False) -> str:
        if analyze:
            raise SetupError("--analyze runs in this process: add --engine local")
        return self.query.explain(self._events(), **self.columns.binding())

    def explain_many(self, queries: Mapping[str, Query], share: Any) -> str:
        return explain_many(queries, self._events(), share=share, **self.columns.binding())

    def show(self, limit: int) -> int:
        """Print a table; every task looks for matches until it has one more than that shows."""
        from streamsift.spark.files import heads

        result, report = self._result()
        is_counted = has_total(self.query)
        wanted = max(limit + 1, MOST_ROWS if self.keep else 0)
        result = (result if is_counted else heads(result, wanted)).persist()
        with self._progress("finding matches"):
            found = result.count()
            head = best_first(self.query, result).limit(limit).toArrow()
        report()
        self.result = result, report
        total = found if is_counted or found < wanted else None
        print_table(head, how_many(head.num_rows, total, *nouns(self.query)))
        return found

    def stream(self, output_format: str, limit: int | None) -> int:
        result, report = self._result(limit, keep=self.keep)
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

        result, report = self._result(limit, keep=self.keep)
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
            save_picture(best_first(self.query, result).limit(MOST_ROWS).toArrow(), self.query.sketch, output)

    def _events(self) -> DataFrame:
        from streamsift.spark.files import read_events

        with self._progress(f"looking at {self.path}"):
            return read_events(self.spark, self.path, self.given_format)

    def _result(self, limit: int | None = None, *, keep: bool = False) -> tuple[DataFrame, Callable[[], None]]:
        """The result, kept from one verb to the next, and what reports on dropped rows once it has been used."""
        if self.result is None:
            from pyspark.sql import Observation

            observation = Observation() if self.columns.bad_rows == "drop" else None
            found = self.query.run(
                self._events(), bad_rows=self.columns.bad_rows, observation=observation, **self.columns.binding()
            )
            if limit is not None:
                found = best_first(self.query, found).limit(limit)
            self.result = found.persist() if keep else found, partial(_report, observation)
        return self.result

    def _progress(self, title: str) -> Any:
        from streamsift.spark.files import task_counter

        return progress(self.console, title, task_counter(self.spark))


def show_many(
    job: LocalJob | SparkJob,
    queries: Mapping[str, Query],
    share: Any,
    output: Path | None,
    output_format: str,
    limit: int | None,
    console: Console,
) -> int:
    """Tables one after the other, or a file for each query in a directory; how many rows there are in all."""
    if output is not None:
        jobs = job.many(queries, share, limit, shows=False)
        output.mkdir()
        found = sum(one.write(output / f"{name}.{output_format}", output_format, None) for name, one in jobs.items())
        console.print(f"wrote {output}", highlight=False)
        return found
    found, shown = 0, limit or SHOWN
    for name, one in job.many(queries, share, shown, shows=True).items():
        print(name, flush=True)
        found += one.show(shown)
    return found


def _report(observation: Observation | None) -> None:
    if observation is not None and (count := observation.get["bad_rows"]):
        rows = "1 row" if count == 1 else f"{count:,} rows"
        print(f"warning: dropped {rows} without a usable time or order", file=sys.stderr)


def has_total(query: Query) -> bool:
    """Whether all rows of a result are known when the first one is: totals and rankings, but not matches."""
    statement = query.script.statement
    return bool(statement.aggregates) or (statement.returns is not None and statement.returns.limit is not None)


def nouns(query: Query) -> tuple[str, str]:
    """What the rows of a result are called: one, and several."""
    return ("row", "rows") if query.script.statement.aggregates else ("match", "matches")


def best_first(query: Query, result: DataFrame) -> DataFrame:
    """A ranking as a leaderboard: tick by tick, group by group, the best first. Anything else as it comes."""
    statement = query.script.statement
    if statement.returns is None or statement.returns.limit is None:
        return result
    groups = [name.parts[-1] for name in statement.group_by]
    columns = [*(["window_end"] if statement.update else []), *groups, "rank"]
    return result.orderBy(*("`" + name.replace("`", "``") + "`" for name in columns))


def to_lines(batches: Any) -> Any:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array(json_lines(batch), pa.string())], ["line"])
