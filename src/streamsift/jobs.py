"""A query and a path in, a result shown, streamed or written out: the same few verbs on Spark and in this process."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console

from streamsift.api import Query
from streamsift.errors import BadRowsWarning, SetupError
from streamsift.many import explain_many, run_many
from streamsift.runtime.sources import file_format, read_schema, read_table
from streamsift.runtime.watch import watching
from streamsift.session import start_spark
from streamsift.view.lines import flat_table, json_lines
from streamsift.view.pictures import MOST_ROWS, save_picture
from streamsift.view.progress import progress
from streamsift.view.tables import how_many, print_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


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
    result: pa.Table | None = None  # once it is there

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def many(self, queries: Mapping[str, Query], share: Any) -> dict[str, LocalJob]:
        """The results of several queries from one pass, each a job that has its result."""
        events = self._events()
        results = run_many(queries, events, bad_rows=self.columns.bad_rows, share=share, **self.columns.binding())
        return {
            name: LocalJob(queries[name], self.path, self.given_format, self.columns, self.console, result)
            for name, result in results.items()
        }

    def explain(self, analyze: bool = False) -> str:
        if analyze:
            return self.query.explain(self._events(), analyze=True, **self.columns.binding())
        return self.query.explain(read_schema(self.path, self.given_format), **self.columns.binding())

    def explain_many(self, queries: Mapping[str, Query], share: Any) -> str:
        schema = read_schema(self.path, self.given_format)
        return explain_many(queries, schema, share=share, **self.columns.binding())

    def show(self, limit: int) -> int:
        result = self._result()
        caption = how_many(min(limit, result.num_rows), result.num_rows, *nouns(self.query))
        print_table(result.slice(0, limit), caption)
        return result.num_rows

    def stream(self, output_format: str) -> int:
        result = self._result()
        if output_format == "csv":
            pyarrow.csv.write_csv(flat_table(result), sys.stdout.buffer)
        else:
            for batch in result.to_batches():
                sys.stdout.writelines(f"{line}\n" for line in json_lines(batch))
        return result.num_rows

    def plot(self, output: Path) -> None:
        save_picture(self._result(), self.query.sketch, output)

    def write(self, output: Path, output_format: str) -> int:
        result = self._result()
        match output_format:
            case "parquet":
                pyarrow.parquet.write_table(result, output)
            case "csv":
                pyarrow.csv.write_csv(flat_table(result), output)
            case _:
                with output.open("w", encoding="utf-8") as lines:
                    for batch in result.to_batches():
                        lines.writelines(f"{line}\n" for line in json_lines(batch))
        return result.num_rows

    def _events(self) -> pa.Table:
        with watching() as watch, progress(self.console, f"reading {self.path}", watch.counts, "rows"):
            return read_table(self.path, self.given_format)

    def _result(self) -> pa.Table:
        if self.result is not None:
            return self.result
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BadRowsWarning)
            events = self._events()
            with watching() as watch, progress(self.console, "finding matches", watch.counts, "events"):
                self.result = self.query.run_local(events, bad_rows=self.columns.bad_rows, **self.columns.binding())
        for warning in caught:
            print(f"warning: {warning.message}", file=sys.stderr)
        return self.result


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

    def many(self, queries: Mapping[str, Query], share: Any) -> dict[str, SparkJob]:
        """The results of several queries from one pass, each a job that has its result."""
        results = run_many(
            queries, self._events(), bad_rows=self.columns.bad_rows, share=share, **self.columns.binding()
        )
        jobs: dict[str, SparkJob] = {}
        for name, result in results.items():
            job = SparkJob(queries[name], self.path, self.given_format, self.columns, self.master, self.console)
            job.spark, job.result = self.spark, (result, lambda: None)
            jobs[name] = job
        return jobs

    def explain(self, analyze: bool = False) -> str:
        if analyze:
            raise SetupError("--analyze runs in this process: add --engine local")
        return self.query.explain(self._events(), **self.columns.binding())

    def explain_many(self, queries: Mapping[str, Query], share: Any) -> str:
        return explain_many(queries, self._events(), share=share, **self.columns.binding())

    def show(self, limit: int) -> int:
        result, report = self._result()
        result = result.persist()
        with self._progress("finding matches"):
            total = result.count()
            head = best_first(self.query, result).limit(limit).toArrow()
        report()
        print_table(head, how_many(head.num_rows, total, *nouns(self.query)))
        return total

    def stream(self, output_format: str) -> int:
        result, report = self._result()
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

    def write(self, output: Path, output_format: str) -> int:
        from streamsift.spark.sinks import counted, flat

        result, report = self._result()
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
        from streamsift.spark.sources import read_events

        with self._progress(f"looking at {self.path}"):
            return read_events(self.spark, self.path, self.given_format)

    def _result(self) -> tuple[DataFrame, Callable[[], None]]:
        """The result, kept from one verb to the next, and what reports on dropped rows once it has been used."""
        if self.result is None:
            from pyspark.sql import Observation

            observation = Observation() if self.columns.bad_rows == "drop" else None
            found = self.query.run(
                self._events(), bad_rows=self.columns.bad_rows, observation=observation, **self.columns.binding()
            )
            self.result = found.persist() if self.keep else found, partial(_report, observation)
        return self.result

    def _progress(self, title: str) -> Any:
        from streamsift.spark.jobs import task_counter

        return progress(self.console, title, task_counter(self.spark))


def show_many(
    jobs: Mapping[str, LocalJob] | Mapping[str, SparkJob],
    output: Path | None,
    output_format: str,
    limit: int,
    console: Console,
) -> int:
    """Tables one after the other, or a file for each query in a directory; how many rows there are in all."""
    if output is not None:
        output.mkdir()
        found = sum(job.write(output / f"{name}.{output_format}", output_format) for name, job in jobs.items())
        console.print(f"wrote {output}", highlight=False)
        return found
    found = 0
    for name, job in jobs.items():
        print(name, flush=True)
        found += job.show(limit)
    return found


def _report(observation: Observation | None) -> None:
    if observation is not None and (count := observation.get["bad_rows"]):
        rows = "1 row" if count == 1 else f"{count:,} rows"
        print(f"warning: dropped {rows} without a usable time or order", file=sys.stderr)


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
