"""Register the table function `streamsift` for Spark SQL: events as a TABLE argument, matches as rows.

    SELECT * FROM streamsift(TABLE(trades) PARTITION BY (symbol), 'PATTERN SEQ(A a, B b) WITHIN 5 s', 'ts', 'kind')

The columns of the result follow from the query and the columns of the table, so Spark reports mistakes in the query
when it analyzes the statement. Spark passes rows to a table function one by one, so `Query.run` is faster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row, SparkSession
from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.functions import udtf
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from streamsift.errors import BadInputError, QueryError
from streamsift.physical import Plan
from streamsift.runtime import execute, output_schema
from streamsift.spark.columns import arrow_schema, result_schema, session_settings
from streamsift.spark.stream import check_buckets
from streamsift.spark.workers import plain_errors


@dataclass
class Analyzed(AnalyzeResult):
    """An analyzed call of the function. Spark sends it to the workers."""

    plan: Plan | None = None
    events: StructType | None = None
    bad_rows: str = "fail"


def register(spark: SparkSession, name: str, plan_of: Callable[..., Plan]) -> None:
    """Register the table function with this session's SQL. `plan_of` plans a query's text."""
    plan_here = partial(plan_of, **session_settings(spark))

    class Streamsift:
        """Return the matches of one partition of the table."""

        def __init__(self, call: Analyzed) -> None:
            self._call = call
            self._rows: list[Row] = []

        @staticmethod
        def analyze(
            events: AnalyzeArgument,
            query: AnalyzeArgument,
            time: AnalyzeArgument,
            type: AnalyzeArgument | None = None,
            order: AnalyzeArgument | None = None,
            bad_rows: AnalyzeArgument | None = None,
            buckets: AnalyzeArgument | None = None,
        ) -> Analyzed:
            given = {"query": query, "time": time, "type": type, "order": order, "bad_rows": bad_rows}
            with plain_errors():
                check_unused_buckets(buckets)
                return analyze_call(plan_here, events, **given)

        def eval(self, events: Row, *_: Any, **__: Any) -> None:
            if not self._rows:
                with plain_errors():
                    check_clause()
            self._rows.append(events)

        def terminate(self) -> Iterator[Row]:
            return matches(self._call, self._rows)

    spark.udtf.register(name, udtf(Streamsift, useArrow=False))  # type: ignore[arg-type] # of the decorator's form


def analyze_call(
    plan_of: Callable[..., Plan], events: AnalyzeArgument, **arguments: AnalyzeArgument | None
) -> Analyzed:
    """Check the arguments of a call, and return its plan and the columns of its result."""
    if not events.isTable:
        raise QueryError(
            "the first argument must be a table", hint="write streamsift(TABLE(events) PARTITION BY …, …)."
        )
    assert isinstance(events.dataType, StructType)
    given = {name: _text(name, argument) for name, argument in arguments.items() if argument is not None}
    text, bad_rows = given.pop("query"), given.pop("bad_rows", None) or "fail"
    if text is None or given["time"] is None:
        raise QueryError("the query and the name of the time column must not be null")
    if bad_rows not in ("fail", "drop"):
        raise QueryError(f"invalid value for bad_rows: {bad_rows!r}", hint="expected 'fail' or 'drop'.")
    columns = {"type": None, "order": None, **given}
    plan = plan_of(text, arrow_schema(events.dataType), **columns)
    return Analyzed(result_schema(events.dataType, plan.query), plan=plan, events=events.dataType, bad_rows=bad_rows)


def check_unused_buckets(buckets: AnalyzeArgument | None) -> None:
    """Raise if `buckets` is invalid. It has no effect: the function reads a table, and a table has no state."""
    if buckets is not None:
        check_buckets(buckets.value if buckets.isConstantExpression else "an expression")


def _text(name: str, argument: AnalyzeArgument) -> str | None:
    if not argument.isConstantExpression or not isinstance(argument.value, str | None):
        raise QueryError(f"`{name}` must be a constant string", hint=f"write {name} => '…'.")
    return argument.value


def check_clause() -> None:
    """Raise if the table has several partitions and the statement has no clause on how to partition its rows.

    Spark does not pass that to a table function, so the calling frame is inspected.
    """
    task = TaskContext.get()
    if task is None or task.partitionId() == 0:
        return
    frame = sys._getframe(2)
    if not hasattr(frame.f_locals.get("self"), "_partition_child_indexes"):
        raise BadInputError(
            "the table has several partitions, and matches across them would be lost\n"
            "Hint: after TABLE(…), add WITH SINGLE PARTITION, or PARTITION BY columns that all events of a match share."
        )


def matches(call: Analyzed, rows: list[Row]) -> Iterator[Row]:
    assert call.plan is not None
    assert call.events is not None
    schema = call.plan.query.schema
    table = LocalDataToArrowConversion.convert(rows, call.events, use_large_var_types=False)
    with plain_errors():
        batches = execute(call.plan, table.select(schema.names).cast(schema), bad_rows=call.bad_rows)
        result = pa.Table.from_batches(batches, output_schema(call.plan.query))
    yield from ArrowTableToRowsConversion.convert(result, call.schema)
