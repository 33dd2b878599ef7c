"""Run a workload on DuckDB: each formulation on a table sorted by key and time, and on the Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa

from benchmarks.engines import sql
from benchmarks.engines.question import Question
from benchmarks.harness.answers import answer_of_table
from benchmarks.harness.experiment import Contender, Side, in_process


def contenders(question: Question, threads: int) -> Iterator[Contender]:
    """Yield the formulations to compare; copying and sorting the table is not timed."""
    for source in ("sorted table", "Arrow"):
        connection = duckdb.connect()
        connection.execute(f"SET threads = {threads}")
        connection.execute("SET preserve_insertion_order = false")
        if source == "Arrow":
            connection.register("events", question.events)
        else:
            connection.register("unsorted", question.events)
            connection.execute("CREATE TABLE events AS SELECT * FROM unsorted ORDER BY key, t")
        for name, text in sql.formulations(question, sql.DUCKDB).items():
            yield in_process(
                f"DuckDB, {source}: {name}",
                Side.RIVAL,
                _run(connection, text),
                lambda result: answer_of_table(result, question.columns),
            )


def _run(connection: duckdb.DuckDBPyConnection, text: str) -> Callable[[], pa.Table]:
    return lambda: connection.sql(text).to_arrow_table()
