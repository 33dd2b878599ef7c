"""Run, explain and check MATCH_RECOGNIZE on Spark DataFrames or Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pyarrow as pa

from streamsift.api import arguments
from streamsift.api.arguments import as_table, is_spark, memory_bytes, schema_of
from streamsift.api.query import Query
from streamsift.errors import QueryError, UnsupportedQuery
from streamsift.language.row_match import RowScript, parse_rows, print_rows
from streamsift.logical.row_match import BoundRows, bind_rows
from streamsift.physical.plan import option_table
from streamsift.view.notebook import Explanation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SkipErrorPolicy = Literal["fail", "next"]
_IN_CLAUSE = "write it in the text of the clause."


@dataclass(frozen=True, repr=False)
class RowQuery(Query):
    """A parsed MATCH_RECOGNIZE clause: a `Query` whose ORDER BY takes the place of `time`, `type` and `order`.

    Create one with `query("MATCH_RECOGNIZE (…)")`.

    Example:
        >>> import streamsift as ss
        >>> q = ss.query("MATCH_RECOGNIZE (ORDER BY t MEASURES UP.x AS top PATTERN (UP+) DEFINE UP AS x > PREV(x))")
        >>> q.run_local(pa.table({"t": [1, 2, 3, 4], "x": [1, 2, 5, 4]})).to_pylist()
        [{'top': 5}]
    """

    script: RowScript  # type: ignore[assignment]

    @property
    def text(self) -> str:
        """The text of the query, as written."""
        return self.script.text or print_rows(self.script)

    @property
    def sketch(self) -> None:
        """None: charts of patterns are drawn for the query language only."""

    @property
    def _located(self) -> RowScript:  # type: ignore[override]
        return self.script if self.script.text else parse_rows(self.text)

    def run(
        self,
        df: DataFrame,
        *,
        on_skip_error: SkipErrorPolicy = "fail",
        max_partition_bytes: int | str | None = None,
        **others: Any,
    ) -> DataFrame:
        """Run the clause on a batch DataFrame of Spark.

        Args:
            df: Batch DataFrame.
            on_skip_error: What to do if AFTER MATCH SKIP TO names a variable without a row, or the match's first row.
                "fail" (default) fails the job; "next" resumes at the next row.
            max_partition_bytes: Largest size of one partition in a worker, in bytes or as text ("2 GB"). A larger one
                fails the job with its key. Default: a share of the worker's memory.
            **others: `time`, `type` and `order` do not apply, because ORDER BY is part of the clause.

        Returns:
            A DataFrame; it is lazy.

        Raises:
            QueryError: The clause does not fit the columns, or an argument is invalid.
            UnsupportedQuery: This version cannot evaluate the clause.
        """
        if not is_spark(df):
            arguments.check_spark("run()")
            other = arguments.type_name(df)
            raise TypeError(f"run() takes a Spark DataFrame, not {other}; use run_local() for Arrow and pandas tables")
        _check_others(others, "bad_rows", "lateness", "observation")
        from streamsift import spark
        from streamsift.physical.row_match import plan_rows

        if df.isStreaming:
            hint = "run it on a batch DataFrame."
            raise UnsupportedQuery("MATCH_RECOGNIZE is not supported on a streaming DataFrame", hint=hint)
        limit = None if max_partition_bytes is None else memory_bytes(max_partition_bytes)
        bound = self._bound_on_spark(df, on_skip_error)
        result = spark.run_rows(df, plan_rows(bound), limit)
        return result.toDF(*self.script.columns) if self.script.columns else result

    def run_local(
        self,
        data: Any,
        *,
        on_skip_error: SkipErrorPolicy = "fail",
        limit: int | None = None,
        memory_limit: int | str | None = None,
        **others: Any,
    ) -> pa.Table:
        """Run the clause in this process, without Spark.

        Args:
            data: Rows, as in `Query.run_local`. Rows that are equal under ORDER BY keep their order.
            on_skip_error: "fail" (default) or "next", as in `run`.
            limit: Maximum number of rows. Default: no limit.
            memory_limit: Memory that the query may use, in bytes or as text ("2 GB"). Default: half of the memory
                available to the process.
            **others: `time`, `type` and `order` do not apply, because ORDER BY is part of the clause.

        Returns:
            A pyarrow Table: matches in the order of partitions and of their first rows.
        """
        return self.batches(
            data, on_skip_error=on_skip_error, limit=limit, memory_limit=memory_limit, **others
        ).read_all()

    def batches(
        self,
        data: Any,
        *,
        on_skip_error: SkipErrorPolicy = "fail",
        limit: int | None = None,
        memory_limit: int | str | None = None,
        **others: Any,
    ) -> pa.RecordBatchReader:
        """Run the clause in this process and return the rows of `run_local` batch by batch.

        Args:
            data: Rows, as in `Query.run_local`.
            on_skip_error: "fail" (default) or "next", as in `run`.
            limit: Maximum number of rows. Default: no limit.
            memory_limit: Memory that the query may use, in bytes or as text ("2 GB").
            **others: `time`, `type` and `order` do not apply.

        Returns:
            A pyarrow RecordBatchReader.
        """
        from streamsift import runtime
        from streamsift.physical.row_match import plan_rows
        from streamsift.runtime.row_match import execute

        _check_others(others, "bad_rows")
        budget = runtime.Budget(memory_bytes(memory_limit))
        limit = arguments.check_limit(limit)
        table = as_table(data)
        bound = bind_rows(self._located, table.schema, on_skip_error=on_skip_error)
        plan = plan_rows(bound)
        names = list(self.script.columns) or bound.output.names
        schema = pa.schema([field.with_name(name) for field, name in zip(bound.output, names, strict=True)])
        with runtime.limited(budget):
            batches = _limited(execute(plan, table), limit)
        renamed = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches)
        return pa.RecordBatchReader.from_batches(schema, runtime.limited_batches(renamed, budget))

    def explain(
        self, data: Any = None, *, on_skip_error: SkipErrorPolicy = "fail", analyze: bool = False, **others: Any
    ) -> Explanation:
        """Return the plan of the clause on this data: its program, which conditions are bits, and why.

        Args:
            data: Spark DataFrame, table as in `run_local`, or Arrow schema. No row is read.
            on_skip_error: "fail" (default) or "next", as in `run`.
            analyze: Not supported for MATCH_RECOGNIZE.
            **others: `time`, `type` and `order` do not apply.

        Returns:
            A string.
        """
        _check_others(others)
        if data is None:
            raise QueryError("explain() of MATCH_RECOGNIZE requires data", hint="pass a table, DataFrame or schema.")
        if analyze:
            raise UnsupportedQuery("explain(analyze=True) is not supported for MATCH_RECOGNIZE")
        from streamsift.physical.row_match import explain_rows, plan_rows

        distribution: list[str] = []
        if is_spark(data):
            from streamsift import spark

            bound = self._bound_on_spark(data, on_skip_error)
            distribution = spark.describe_run(bound)
        else:
            bound = bind_rows(self._located, schema_of(data)[0], on_skip_error=on_skip_error)
        lines = explain_rows(plan_rows(bound))
        return Explanation("\n".join([*_heading(self.text, bound), *lines, *_section("Distribution", distribution)]))

    def check(self, data: Any = None, **others: Any) -> None:
        """Raise an error if the clause is not valid for the columns of some data.

        Args:
            data: Spark DataFrame, table, or Arrow schema. Default: none; then only the syntax is checked.
            **others: `time`, `type` and `order` do not apply.
        """
        _check_others(others)
        if data is not None:
            self.explain(data)

    def plan(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: plans of the query language do not apply."""
        raise UnsupportedQuery("MATCH_RECOGNIZE cannot be run together with other queries", hint="run it alone.")

    def _with(self, clauses: str) -> NoReturn:
        raise QueryError("a clause cannot be added to MATCH_RECOGNIZE", hint=_IN_CLAUSE)

    def _bound_on_spark(self, df: DataFrame, on_skip_error: str) -> BoundRows:
        from streamsift import spark

        schema, settings = schema_of(df)
        arguments.check_columns(schema.names) if settings["case_sensitive"] is False else None
        return bind_rows(
            self._located,
            schema,
            case_sensitive=settings["case_sensitive"],
            zone=settings["zone"],
            typing=spark.typing_of(df),
            on_skip_error=on_skip_error,
        )


def _check_others(others: dict[str, Any], *ignored: str) -> None:
    """Raise if an argument is given that has no meaning for a clause; planner options may have their defaults."""
    defaults = {option.name: option.default for option in option_table()} | dict.fromkeys(ignored, "fail")
    for name, value in others.items():
        if value is None or value == defaults.get(name):
            continue
        if name in ("time", "type", "order"):
            raise QueryError(f"`{name}` does not apply to MATCH_RECOGNIZE", hint="write ORDER BY in the clause.")
        raise QueryError(f"`{name}` does not apply to MATCH_RECOGNIZE", hint=f"remove {name}.")


def _limited(batches: Any, limit: int | None) -> Any:
    """Yield at most `limit` rows."""
    left = limit
    for batch in batches:
        yield batch if left is None else batch.slice(0, left)
        if left is not None and (left := left - batch.num_rows) <= 0:
            return


def _heading(text: str, bound: BoundRows) -> list[str]:
    query = [f"  {line}" for line in text.strip().splitlines()]
    order = ", ".join(
        f"{key.column}{' DESC' * key.descending} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in bound.order_by
    )
    logical = [
        f"partition by: {', '.join(bound.partition_by) or 'none, all rows are one partition'}",
        f"order by: {order or 'none, the order of the input'}",
        f"output: {bound.rows_per_match.value}",
        *(f"  {field.name}: {field.type}" for field in bound.output if not field.name.startswith("$")),
        *(f"  {name} = {sql}" for name, sql in bound.projections),
    ]
    return ["Query", *query, *_section("Logical", logical)]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *(f"  {line}" for line in lines)] if lines else []


def match_recognize(data: Any, clause: str, **options: Any) -> Any:
    """Run MATCH_RECOGNIZE on a DataFrame or a table.

    Args:
        data: Spark DataFrame, or a table as in `Query.run_local`.
        clause: Text between the parentheses of MATCH_RECOGNIZE, or the whole clause.
        **options: `on_skip_error` and `max_partition_bytes`, as in `Query.run` of the clause; without Spark also
            `limit` and `memory_limit`.

    Returns:
        A DataFrame for a Spark DataFrame, otherwise a pyarrow Table.

    Raises:
        QueryError: The clause does not parse or does not fit the columns, or an argument is invalid.
        UnsupportedQuery: This version cannot evaluate the clause.

    Example:
        >>> rows = pa.table({"t": [1, 2, 3, 4], "x": [1, 2, 5, 4]})
        >>> clause = "ORDER BY t MEASURES COUNT(*) AS n PATTERN (UP+) DEFINE UP AS x > PREV(x)"
        >>> match_recognize(rows, clause).to_pylist()
        [{'n': 2}]
    """
    q = RowQuery(parse_rows(clause))
    return q.run(data, **options) if is_spark(data) else q.run_local(data, **options)
