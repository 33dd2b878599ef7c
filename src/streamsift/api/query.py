"""Run, explain and check a query on Spark DataFrames or Arrow tables."""

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
from streamsift.api.streams import Opening, Stream, StreamMetrics, as_json, open_stream
from streamsift.errors import QueryError
from streamsift.language import Script, parse, print_script, syntax
from streamsift.language.row_match import is_match_recognize, parse_rows
from streamsift.physical import PlannerKeywords
from streamsift.physical.stream import Ordered
from streamsift.view.notebook import Explanation, query_html, sections
from streamsift.view.plan_tree import plan_svg
from streamsift.view.plots import sign_frame, signed

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


@dataclass(frozen=True, repr=False)
class Query(Buildable):
    """A parsed query, which can be run, explained and checked.

    Create one with `query(text)`, or build one with `event`, `seq`, `all_of` and `any_of` and add clauses with `where`,
    `within` and so on. Queries are immutable: every method that adds something returns a new query. `str(q)` and
    `repr(q)` are the text of the query; notebooks display it with the pattern as a tree.

    Example:
        >>> import streamsift as ss
        >>> ss.query("PATTERN SEQ(A a, B b) WITHIN 10 s")
        PATTERN SEQ(A a, B b) WITHIN 10 s
        >>> ss.seq(ss.event("A", "a"), ss.event("B", "b")).within("10 s")
        PATTERN SEQ(A a, B b) WITHIN 10 s
    """

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return query_html(self.text, self.sketch)

    @property
    def text(self) -> str:
        """The text of the query: as written, or printed from the tree if it was built in Python."""
        return self.script.text or print_script(self.script)

    @property
    def sketch(self) -> logical.BoundQuery | None:
        """The query bound to no data, for charts; None if it is not yet a valid query."""
        try:
            return logical.sketch(self._located)
        except QueryError:
            return None

    def run(
        self,
        df: DataFrame,
        *,
        time: str,
        type: str | None = None,
        order: str | None = None,
        bad_rows: BadRowsPolicy = "fail",
        lateness: str | float | None = None,
        buckets: int | None = None,
        ordered: Ordered = None,
        observation: Observation | None = None,
        **choices: Unpack[PlannerKeywords],
    ) -> DataFrame:
        """Run the query on a Spark DataFrame.

        A batch DataFrame gives a batch result, a streaming DataFrame a streaming result. Results are lazy: no Spark job
        runs before an action. Over all micro-batches, a stream appends the rows that the batch query returns.

        On a stream, a match is appended as soon as no later event can change it. Most matches are appended in the
        micro-batch in which their last event arrives. A match with a negation or a Kleene group may wait for the
        watermark; `explain` shows when. Aggregates and rankings always wait for it. The watermark is the one set with
        `withWatermark` on the time column, or else the maximum event time of earlier micro-batches minus `lateness`.
        Events older than the watermark are late: they are dropped and counted, see `metrics`.

        Args:
            df: Batch or streaming DataFrame, one row per event.
            time: Name of the time column: timestamp, date, number, or text in ISO format.
            type: Name of the column that contains the event class. Default: none; then every row can be any class
                that WITH does not define.
            order: Name of a column that orders events with equal times. Default: none; such events are unordered.
            bad_rows: "fail" (default) fails the job at a row without a usable time or order; "drop" drops these rows.
            lateness: Allowed lateness of a stream, as text ("10 s") or as a number in the units of the time column.
                Default: 0. Not allowed on a batch DataFrame.
            buckets: Number of hash buckets that a new stream spreads its keys over: partitions of Spark's state store,
                one task each per micro-batch. Default: twice the cores of the session, 8 if it does not know them. A
                restarted stream keeps the number in its checkpoint. Not allowed on a batch DataFrame.
            ordered: Columns, such as "id": events with equal values there arrive in order of time and `order`. True:
                all events do. Matches that would wait for the watermark then wait for the next event of their key.
                Default: no promise. Not allowed on a batch DataFrame.
            observation: pyspark `Observation` that counts dropped rows of a batch: after an action,
                `observation.get["bad_rows"]` is their number. Default: none.
            **choices: Planner options: `plan`, `condense`, `cache`, `strategy`, `rank`, `schedule` and `spread`. The
                planner chooses each of them by default. They change the speed of a query, never its rows.

        Returns:
            A DataFrame with one row per match, per aggregate or per ranked match.

        Raises:
            QueryError: The query does not fit the columns, or an argument is invalid.
            UnsupportedQuery: This version cannot evaluate the query.

        Example:
            >>> q = query("PATTERN SEQ(A a, B b) WITHIN 10 s")
            >>> matches = q.run(df, time="ts", type="kind")  # doctest: +SKIP
        """
        if not is_spark(df):
            arguments.check_spark("run()")
            other = arguments.type_name(df)
            raise TypeError(f"run() takes a Spark DataFrame, not {other}; use run_local() for Arrow and pandas tables")
        from streamsift import spark

        arguments.check_policy(bad_rows)
        schema, settings = schema_of(df)
        plan = self.plan(schema, time, type, order, choices, **settings)
        if df.isStreaming:
            if observation is not None:
                hint = "use ss.metrics() for the counts of a stream."
                raise QueryError("observation is not supported on a stream", hint=hint)
            promise = arguments.order_of_arrival(ordered, schema, settings)
            result = spark.run_stream(df, plan, lateness=lateness, bad_rows=bad_rows, buckets=buckets, ordered=promise)
            return sign_frame(result, self.text, time)
        arguments.check_batch(lateness=lateness, buckets=buckets, ordered=ordered)
        result = spark.run_batch(df, plan, bad_rows=bad_rows, observation=observation)
        return sign_frame(result, self.text, time)

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
        """Run the query in this process, without Spark.

        Args:
            data: pyarrow Table, RecordBatch or RecordBatchReader, pandas DataFrame, or any object that exports an Arrow
                stream, such as a Polars DataFrame or a DuckDB relation.
            time: Name of the time column: timestamp, date, number, or text in ISO format.
            type: Name of the column that contains the event class. Default: none; then every row can be any class
                that WITH does not define.
            order: Name of a column that orders events with equal times. Default: none; such events are unordered.
            bad_rows: "fail" (default) raises at rows without a usable time or order; "drop" drops them with a warning.
            limit: Maximum number of rows. The search stops once it has that many matches; aggregates and rankings are
                computed in full. Default: no limit.
            memory_limit: Memory that the query may use, in bytes or as text ("2 GB"). Default: half of the memory
                available to the process.
            **choices: Planner options, as in `run`.

        Returns:
            A pyarrow Table. The order of matches depends on the plan; sort them if the order matters.

        Raises:
            QueryError: The query does not fit the columns, or an argument is invalid.
            UnsupportedQuery: This version cannot evaluate the query.
            BadInputError: Rows have no usable time or order.
            MemoryLimitExceeded: The query needs more memory than `memory_limit`; `batches` needs less.

        Example:
            >>> import pyarrow as pa
            >>> events = pa.table({"t": [1, 2, 5], "kind": ["A", "B", "B"]})
            >>> q = query("PATTERN SEQ(A a, B b) RETURN a.t AS start, b.t AS end")
            >>> q.run_local(events, time="t", type="kind").to_pylist()
            [{'start': 1, 'end': 2}, {'start': 1, 'end': 5}]
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
        """Run the query in this process and return the rows of `run_local` batch by batch.

        Each batch is computed when it is read, so the memory needed is that of the events and one batch, however many
        matches there are.

        Args:
            data: Events, as in `run_local`.
            time: Name of the time column.
            type: Name of the column that contains the event class. Default: none.
            order: Name of a column that orders events with equal times. Default: none.
            bad_rows: "fail" (default) or "drop", as in `run_local`.
            limit: Maximum number of rows. Default: no limit.
            memory_limit: Memory that the query may use, in bytes or as text ("2 GB"). Default: half of the memory
                available to the process.
            **choices: Planner options, as in `run`.

        Returns:
            A pyarrow RecordBatchReader, which any function that reads an Arrow stream accepts.

        Raises:
            QueryError: The query does not fit the columns, or an argument is invalid.
            UnsupportedQuery: This version cannot evaluate the query.
            BadInputError: Rows have no usable time or order.
            MemoryLimitExceeded: The search needs more memory than `memory_limit`; raised while reading.

        Example:
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

    def open(
        self,
        schema: Any,
        *,
        time: str,
        type: str | None = None,
        order: str | None = None,
        lateness: str | float | None = None,
        ordered: Ordered = None,
        bad_rows: BadRowsPolicy = "fail",
        memory_limit: int | str | None = None,
        **choices: Unpack[PlannerKeywords],
    ) -> Stream[pa.Table]:
        """Open a stream in this process, without Spark: push events, and get the rows that become final.

        Over all pushes and `finish`, the stream returns the rows that `run_local` returns for the same events, except
        that late events are dropped. See `Stream`.

        Args:
            schema: Arrow schema of the events, or a table as in `run_local`, of which no row is read.
            time: Name of the time column: timestamp, date, number, or text in ISO format.
            type: Name of the column that contains the event class. Default: none; then every row can be any class
                that WITH does not define.
            order: Name of a column that orders events with equal times. Default: none; such events are unordered.
            lateness: How late events may arrive, as text ("10 s") or as a number in the units of the time column.
                Default: 0.
            ordered: Columns, such as "id": events with equal values there arrive in order of time. True: all events
                do. Rows that wait for later events of a key are then returned when that key's events arrive, not when
                the watermark passes. An event out of order is late. Default: no promise.
            bad_rows: "fail" (default) rejects a push with rows without a usable time or order; "drop" drops and counts
                these rows.
            memory_limit: Memory that the stream may use, in bytes or as text ("2 GB"). Default: half of the memory
                available to the process.
            **choices: Planner options, as in `run`.

        Returns:
            A `Stream`, whose methods return pyarrow Tables.

        Raises:
            QueryError: The query does not fit the schema, or an argument is invalid.
            UnsupportedQuery: This version cannot evaluate the query on a stream.

        Example:
            >>> schema = pa.schema({"t": pa.int64(), "kind": pa.string()})
            >>> stream = query("PATTERN SEQ(A a, B b) WITHIN 5 RETURN b.t AS at").open(schema, time="t", type="kind")
            >>> stream.push([{"t": 1, "kind": "A"}, {"t": 4, "kind": "B"}]).to_pylist()
            [{'at': 4}]
        """
        roles = Roles(time, type, order)
        opening = Opening({"": self.text}, roles, lateness, as_json(ordered), bad_rows, choices, is_many=False)
        return open_stream(opening, schema, memory_limit)

    def explain(
        self,
        data: Any = None,
        *,
        time: str | None = None,
        type: str | None = None,
        order: str | None = None,
        analyze: bool = False,
        ordered: Ordered = None,
        **choices: Unpack[PlannerKeywords],
    ) -> Explanation:
        """Return the plan of the query on this data, and the reasons for it.

        Args:
            data: Spark DataFrame, table as in `run_local`, or Arrow schema. No row is read unless `analyze` is set.
                Without data, column types are assumed from the query and listed under `Assumed`.
            time: Name of the time column. Required with data.
            type: Name of the column that contains the event class. Default: none.
            order: Name of a column that orders events with equal times. Default: none.
            analyze: Run the query on the table and report event rates, selectivities, times, and the estimated and
                actual rows of each join. Default: False.
            ordered: Columns whose events arrive in order, as in `run`; only for a streaming DataFrame. Default: no
                promise.
            **choices: Planner options, as in `run`.

        Returns:
            A string; its attribute `svg` is the pattern as a tree, which notebooks display with the text.

        Raises:
            QueryError: The query does not fit the columns, or an argument is invalid.
            UnsupportedQuery: This version cannot evaluate the query.
            TypeError: `analyze` is set for a Spark DataFrame or a schema.

        Example:
            >>> schema = pa.schema({"t": pa.int64(), "kind": pa.string()})
            >>> plan = query("PATTERN SEQ(A a, B b)").explain(schema, time="t", type="kind")
            >>> plan.splitlines()[:2]
            ['Query', '  PATTERN SEQ(A a, B b)']
        """
        if not is_spark(data) or not data.isStreaming:
            arguments.check_batch(ordered=ordered)
        if data is None:
            if analyze:
                raise TypeError("explain(analyze=True) requires data")
            return self._explain_alone(time, type, order, choices)
        if time is None:
            raise TypeError("explain() with data requires `time`, the name of the time column")
        if analyze and (is_spark(data) or isinstance(data, pa.Schema)):
            raise TypeError("explain(analyze=True) runs in this process and takes an Arrow or pandas table")
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

        if not data.isStreaming:
            return stages.explain(spark.placement(data, stages.plan))
        promise = arguments.order_of_arrival(ordered, schema, settings)
        return stages.explain(spark.stream_placement(data, stages.plan, promise))

    def _explain_alone(
        self, time: str | None, type: str | None, order: str | None, choices: PlannerKeywords
    ) -> Explanation:
        assumed = logical.assume_schema(self._located, time, type, order)
        stages = self._stages(assumed.schema, Roles(assumed.time, assumed.type, assumed.order), choices)
        return stages.explain(assumed=assumed.describe())

    def check(
        self, data: Any = None, *, time: str | None = None, type: str | None = None, order: str | None = None
    ) -> None:
        """Raise an error if the query is not valid, alone or for the columns of some data.

        Args:
            data: Spark DataFrame, table, or Arrow schema. Default: none; then only the query itself is checked.
            time: Name of the time column; required with `data`.
            type: Name of the column that contains the event class. Default: none.
            order: Name of a column that orders events with equal times. Default: none.

        Raises:
            QueryError: The query is not valid.
            UnsupportedQuery: This version cannot evaluate the query.

        Example:
            >>> query("PATTERN SEQ(A a, B b)").check(pa.schema({"t": pa.int64()}), time="t")
        """
        if data is None:
            logical.sketch(self._located)
        elif time is None:
            raise TypeError("check() with data requires `time`, the name of the time column")
        else:
            self.explain(data, time=time, type=type, order=order)

    @cached_property
    def _located(self) -> Script:
        """The script with source spans: those of a query built in Python refer to its printed text."""
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
        """Return the physical plan for events of a schema."""
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
    """Parse a query.

    Args:
        text: Query in the Streamsift query language, or `MATCH_RECOGNIZE (…)` of SQL.

    Returns:
        A `Query`, which is not bound to any data.

    Raises:
        QuerySyntaxError: The text does not parse.
        QueryError: The query is not valid, whatever the data.

    Example:
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
    if is_match_recognize(text):
        from streamsift.api.row_query import RowQuery

        return RowQuery(parse_rows(text))
    script = parse(text)
    logical.sketch(script)
    return Query(script)


def register(session: SparkSession, name: str = "streamsift") -> None:
    """Register the table function `streamsift` in a Spark session.

    In SQL, the arguments after the table are query, time, type, order and bad_rows, by position or by name
    (`time => 'ts'`).

    Args:
        session: Spark session.
        name: Name of the function. Default: "streamsift".

    Example:
        >>> ss.register(spark)  # doctest: +SKIP
        >>> spark.sql('''
        ...     SELECT * FROM streamsift(
        ...         TABLE(trades) PARTITION BY (symbol), 'PATTERN SEQ(A a, B b) WITHIN 5 s', 'ts', 'kind')
        ... ''')  # doctest: +SKIP
    """
    arguments.check_spark("register()")
    from streamsift.spark import table_function

    table_function.register(session, name, _plan_of)


def metrics(streaming_query: StreamingQuery | Stream[Any]) -> Metrics | StreamMetrics:
    """Return what the recent triggers of a streaming query did, or what a stream in process has done.

    Args:
        streaming_query: Running or stopped query, as returned by `writeStream.start()`, or a `Stream`.

    Returns:
        A `Metrics` object: rows, matches, late events, bad rows, state size and latency, in total and per trigger. Of a
        `Stream`, its `metrics`.

    Example:
        >>> running = q.run(stream, time="ts").writeStream.format("memory").queryName("out").start()  # doctest: +SKIP
        >>> ss.metrics(running).matches  # doctest: +SKIP
    """
    if isinstance(streaming_query, Stream):
        return streaming_query.metrics
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
    """Build a pattern of one event.

    Args:
        class_name: Event class, or "ANY" for every row.
        variable: Name of the event in predicates and in the result. Default: the class name.

    Returns:
        A `Query`, to be combined with others.

    Example:
        >>> print(event("A", "a"))
        PATTERN A a
        >>> print(event("A", "a").one_or_more())
        PATTERN A+ a
    """
    any_row = class_name.upper() == "ANY"
    return Query._of(syntax.Event("ANY" if any_row else class_name, variable, any_row=any_row))


def seq(*operands: Query | str) -> Query:
    """Build a sequence (SEQ): the operands occur one after the other. `a >> b` does the same for two operands.

    Args:
        *operands: Patterns, and strings, which are predicates of the sequence.

    Returns:
        A `Query` with the pattern.

    Example:
        >>> print(seq(event("A", "a"), ~event("N", "n"), event("B", "b"), "a.x < b.x").within("10 s"))
        PATTERN SEQ(A a, !N n, B b, a.x < b.x) WITHIN 10 s
    """
    return Query._combined(syntax.Seq, *operands)


def all_of(*operands: Query | str) -> Query:
    """Build a conjunction (AND): all operands occur, in any order. `a & b` does the same for two operands.

    Args:
        *operands: Patterns, and strings, which are predicates of the conjunction.

    Returns:
        A `Query` with the pattern.

    Example:
        >>> print(all_of(event("A", "a"), event("B", "b")))
        PATTERN AND(A a, B b)
    """
    return Query._combined(syntax.And, *operands)


def any_of(*operands: Query | str) -> Query:
    """Build a disjunction (OR): one of the operands occurs. `a | b` does the same for two operands.

    Args:
        *operands: Patterns, and strings, which are predicates of the disjunction.

    Returns:
        A `Query` with the pattern.

    Example:
        >>> print(event("A", "a") | event("B", "b"))
        PATTERN OR(A a, B b)
    """
    return Query._combined(syntax.Or, *operands)
