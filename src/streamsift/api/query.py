"""Run, explain and check a query, from text or built by Python calls, on Spark or on Arrow tables."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from streamsift import logical, optimizer, physical
from streamsift.api import arguments
from streamsift.api.arguments import BadRowsPolicy, Roles, as_table, is_spark, memory_bytes, schema_of
from streamsift.api.building import Buildable
from streamsift.errors import QueryError
from streamsift.language import Script, parse, print_script, syntax
from streamsift.physical import PlannerKeywords
from streamsift.view.notebook import Explanation, query_html, sections
from streamsift.view.pictures import signed
from streamsift.view.plan_tree import plan_svg

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from streamsift.runtime import Budget
    from streamsift.spark import ClusterCheck, Metrics

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a query, from text to plan."""

    text: str
    bound: logical.BoundQuery
    optimized: logical.BoundQuery
    rules: tuple[str, ...]
    plan: physical.Plan

    def explain(
        self, distribution: Sequence[str] = (), analyzed: Sequence[str] = (), assumed: Iterable[str] = ()
    ) -> Explanation:
        stages = (self.text, self.bound, self.optimized, self.rules, self.plan)
        text = physical.explain(*stages, distribution, analyzed, assumed)
        return Explanation(text, plan_svg(self.optimized, sections(text)["Physical"][0]))


@dataclass(frozen=True)
class Query(Buildable):
    """A query. Immutable: every method that changes something returns a new one.

    Made by `query(text)`, or by `event`, `seq`, `all_of`, `any_of` and then `where`, `within`, ….
    """

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return query_html(self.text, self.sketch)

    @property
    def text(self) -> str:
        """Return the query as it was written, or as it is printed if it was built in Python."""
        return self.script.text or print_script(self.script)

    @property
    def sketch(self) -> logical.BoundQuery | None:
        """Return the query bound to no data, for charts; None while a query that is being built makes no sense yet."""
        try:
            return logical.sketch(self._located)
        except QueryError:
            return None

    # --- running ---
    def run(
        self,
        df: DataFrame,
        *,
        time: str,
        type: str | None = None,
        order: str | None = None,
        bad_rows: BadRowsPolicy = "fail",
        lateness: str | float | None = None,
        observation: Observation | None = None,
        **choices: Unpack[PlannerKeywords],
    ) -> DataFrame:
        """Return the result on a Spark DataFrame, as a lazy Spark DataFrame; on a streaming one as a streaming one.

        `time`, `type` and `order` name the columns of these roles. Rows without a usable time (or order) make the job
        fail, or are dropped with `bad_rows="drop"`; a pyspark `Observation` then counts them
        (`observation.get["bad_rows"]`, after an action).

        On a stream a row is appended when the watermark passes the time that makes it final. The watermark is the
        caller's (`withWatermark` on the time column), or the greatest time in earlier micro-batches less `lateness`
        ("10 s", or a number in the units of the time column; 0 if not given). Events before it are late: they are
        dropped and counted, see `metrics`.

        Cost models make the other choices unless given; none of them changes the rows. `plan` is the join tree
        ("left", "right", "bushy", "inner"). `condense` ("on", "off"): compare events with equal values once. `cache`
        ("on", "off"): keep results of inner sub-patterns for later partial matches. `strategy` ("prefix", "sem",
        "two-stack", "pairs", "detect") is the way to count an aggregation.
        """
        if not is_spark(df):
            arguments.check_spark("run()")
            other = arguments.type_name(df)
            raise TypeError(f"run() takes a Spark DataFrame, not {other}; run_local() takes Arrow and pandas tables")
        from streamsift import spark

        arguments.check_policy(bad_rows)
        schema, settings = schema_of(df)
        plan = self.plan(schema, time, type, order, choices, **settings)
        if df.isStreaming:
            if observation is not None:
                hint = "a stream's counts are in its progress: see ss.metrics()."
                raise QueryError("observation= on a stream", hint=hint)
            return spark.run_stream(df, plan, lateness=lateness, bad_rows=bad_rows)
        arguments.check_batch(lateness)
        return spark.run_batch(df, plan, bad_rows=bad_rows, observation=observation)

    def run_local(
        self,
        data: Any,
        *,
        time: str,
        type: str | None = None,
        order: str | None = None,
        bad_rows: BadRowsPolicy = "fail",
        limit: int | None = None,
        memory_limit: int | str | None = None,
        **choices: Unpack[PlannerKeywords],
    ) -> pa.Table:
        """Return the result on a pyarrow or pandas table (or one that exports Arrow) as a pyarrow Table, without Spark.

        The order of the matches depends on the plan: sort them if order matters. The search stops after any `limit`
        matches; the rows of `AGG` and `PREF` are computed in full, then cut off. A result that would need more than
        `memory_limit` (bytes, or "2 GB"; by default half of what the process may take) raises `MemoryLimitExceeded`;
        `batches` needs memory for one part of the result at a time.
        """
        from streamsift import runtime

        rows, budget = self._rows(data, Roles(time, type, order), bad_rows, limit, memory_limit, choices)
        return pa.Table.from_batches(runtime.count_results(rows, budget), rows.schema)

    def batches(
        self,
        data: Any,
        *,
        time: str,
        type: str | None = None,
        order: str | None = None,
        bad_rows: BadRowsPolicy = "fail",
        limit: int | None = None,
        memory_limit: int | str | None = None,
        **choices: Unpack[PlannerKeywords],
    ) -> pa.RecordBatchReader:
        """Return the rows of `run_local` as record batches, each made when it is read.

        Memory is that of the events and of one batch, however many matches there are. A search that needs more than
        `memory_limit` raises `MemoryLimitExceeded`. The reader has the result's `schema`; pass it to any function that
        takes a stream of Arrow batches.

        >>> events = pa.table({"t": [1, 2, 5], "kind": ["A", "B", "B"]})
        >>> reader = query("PATTERN SEQ(A a, B b) RETURN b.t AS at").batches(events, time="t", type="kind")
        >>> [batch.to_pylist() for batch in reader]
        [[{'at': 2}, {'at': 5}]]
        """
        return self._rows(data, Roles(time, type, order), bad_rows, limit, memory_limit, choices)[0]

    def _rows(
        self,
        data: Any,
        roles: Roles,
        bad_rows: str,
        limit: int | None,
        memory_limit: int | str | None,
        choices: PlannerKeywords,
    ) -> tuple[pa.RecordBatchReader, Budget]:
        from streamsift import runtime
        from streamsift.runtime.events.unmatched import warn_unmatched

        budget = runtime.Budget(memory_bytes(memory_limit))
        arguments.check_policy(bad_rows)
        limit = arguments.check_limit(limit)
        table = as_table(data)
        plan = self._stages(table.schema, roles, choices).plan
        schema = signed(runtime.output_schema(plan.query), self.text, roles.time)
        with runtime.limited(budget):
            batches = runtime.execute(plan, table, bad_rows=bad_rows, limit=limit)
        warn_unmatched([plan.query], table)
        return pa.RecordBatchReader.from_batches(schema, runtime.limited_batches(batches, budget)), budget

    def explain(
        self,
        data: Any = None,
        *,
        time: str | None = None,
        type: str | None = None,
        order: str | None = None,
        analyze: bool = False,
        **choices: Unpack[PlannerKeywords],
    ) -> Explanation:
        """Say what will run on this data (a DataFrame, a table or an Arrow schema) and why; notebooks show the tree.

        It reads no rows unless `analyze` is set: then it runs the query on the table and reports rates, selectivities
        and time, and draws the join trees with the rows that were expected and built. Without data, column types are
        assumed from the query, and listed under `Assumed`.
        """
        if data is None:
            if analyze:
                raise TypeError("explain(analyze=True) requires data")
            return self._explain_alone(time, type, order, choices)
        if time is None:
            raise TypeError("explain() with data requires `time`, the name of the time column")
        if analyze and (is_spark(data) or isinstance(data, pa.Schema)):
            raise TypeError("explain(analyze=True) runs in this process: it takes an Arrow or pandas table")
        data = as_table(data) if analyze else data
        schema, settings = schema_of(data)
        stages = self._stages(schema, Roles(time, type, order), choices, **settings)
        if analyze:
            from streamsift import runtime

            with runtime.limited(runtime.Budget(memory_bytes(None))):
                return stages.explain(analyzed=list(runtime.analyze_run(stages.plan, data)))
        if not is_spark(data):
            return stages.explain()
        from streamsift import spark

        placement = spark.stream_placement if data.isStreaming else spark.placement
        return stages.explain(placement(data, stages.plan))

    def _explain_alone(
        self, time: str | None, type: str | None, order: str | None, choices: PlannerKeywords
    ) -> Explanation:
        assumed = logical.assume_schema(self._located, time, type, order)
        stages = self._stages(assumed.schema, Roles(assumed.time, assumed.type, assumed.order), choices)
        return stages.explain(assumed=assumed.describe())

    def check(
        self, data: Any = None, *, time: str | None = None, type: str | None = None, order: str | None = None
    ) -> None:
        """Raise if the query is wrong, alone or (given data or a schema, and `time`) against its columns."""
        if data is None:
            logical.sketch(self._located)
        elif time is None:
            raise TypeError("check() against data needs `time`, the name of the time column")
        else:
            self.explain(data, time=time, type=type, order=order)

    @cached_property
    def _located(self) -> Script:
        """Return the script with source spans: a query made by Python calls is located in its printed text."""
        return self.script if self.script.text else parse(self.text)

    def plan(
        self,
        schema: pa.Schema,
        time: str,
        type: str | None,
        order: str | None,
        choices: PlannerKeywords | None = None,
        **settings: Any,
    ) -> physical.Plan:
        """Return the physical plan on events of a schema: what `run_many` shares."""
        return self._stages(schema, Roles(time, type, order), choices or {}, **settings).plan

    def _stages(self, schema: pa.Schema, roles: Roles, choices: PlannerKeywords, **settings: Any) -> Stages:
        arguments.check_names(**roles._asdict())
        options = physical.planner_options(**choices)
        bound = logical.bind(self._located, schema, **roles._asdict(), **settings)
        optimized, rules = optimizer.optimize(bound)
        if settings.get("case_sensitive") is False:  # a setting of Spark sessions only
            arguments.check_columns(optimized.schema.names)
        plan = physical.plan(optimized, options)
        LOG.debug("planned %r: %s", self._located.text, "; ".join(plan.reasons))
        return Stages(self._located.text, bound, optimized, rules, plan)


def query(text: str) -> Query:
    """Return a query from its text. What is wrong without knowing the data raises here.

    >>> import pyarrow as pa
    >>> events = pa.table({"t": [1, 2, 5], "kind": ["A", "B", "B"], "x": [3, 4, 2]})
    >>> q = query("PATTERN SEQ(A a, B b) WITHIN 3 RETURN a.x AS first, b.x AS then")
    >>> q.run_local(events, time="t", type="kind").to_pylist()
    [{'first': 3, 'then': 4}]
    >>> query("PATTERN SEQ(A a B b)")
    Traceback (most recent call last):
    ...
    streamsift.errors.QuerySyntaxError: unexpected `B` (line 1, column 17)
       1 | PATTERN SEQ(A a B b)
         |                 ^
    Hint: put a comma or `;` before the next event.
    """
    script = parse(text)
    logical.sketch(script)
    return Query(script)


def register(session: SparkSession, name: str = "streamsift") -> None:
    """Register the table function `streamsift` in a Spark session.

    `SELECT * FROM streamsift(TABLE(trades) PARTITION BY (symbol), 'PATTERN SEQ(A a, B b) WITHIN 5 s', 'ts', 'kind')`:
    the arguments after the table are query, time, type, order and bad_rows, by place or by name (`time => 'ts'`).
    """
    arguments.check_spark("register()")
    from streamsift.spark import table_function

    table_function.register(session, name, _plan_of)


def metrics(streaming_query: StreamingQuery) -> Metrics:
    """Report what the last triggers of a streaming query did: rows, matches, late events, state, latency."""
    from streamsift import spark

    return spark.metrics(streaming_query)


def check_cluster(session: SparkSession, tasks: int = 32) -> ClusterCheck:
    """Compare the Python environments of the executors with the driver's: Python, streamsift, pyarrow, numba, ….

    It runs a job of small tasks; Spark decides which executors run them, so use more tasks on a large cluster. Print
    the result, or call its `raise_problems()` before a job.
    """
    arguments.check_spark("check_cluster()")
    from streamsift import spark

    return spark.check_cluster(session, tasks)


def _plan_of(text: str, schema: pa.Schema, time: str, type: str | None, order: str | None, **settings: Any) -> Any:
    return query(text).plan(schema, time, type, order, **settings)


def event(class_name: str, variable: str | None = None) -> Query:
    """Match one event of a class.

    >>> print(event("A", "a"))
    PATTERN A a
    >>> print(event("A", "a").one_or_more())
    PATTERN A+ a
    """
    any_row = class_name.upper() == "ANY"
    return Query._of(syntax.Event("ANY" if any_row else class_name, variable, any_row=any_row))


def seq(*operands: Query | str) -> Query:
    """Match one after the other; strings are its predicates.

    >>> print(seq(event("A", "a"), ~event("N", "n"), event("B", "b"), "a.x < b.x").within("10 s"))
    PATTERN SEQ(A a, !N n, B b, a.x < b.x) WITHIN 10 s
    """
    return Query._combined(syntax.Seq, *operands)


def all_of(*operands: Query | str) -> Query:
    """Match all operands (AND), in any order; `&` does the same.

    >>> print(all_of(event("A", "a"), event("B", "b")))
    PATTERN AND(A a, B b)
    """
    return Query._combined(syntax.And, *operands)


def any_of(*operands: Query | str) -> Query:
    """Match each operand (OR); `|` does the same.

    >>> print(event("A", "a") | event("B", "b"))
    PATTERN OR(A a, B b)
    """
    return Query._combined(syntax.Or, *operands)
