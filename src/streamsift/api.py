"""The public face: a query as text or from Python calls, run on Spark or on Arrow tables, or explained."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from streamsift import logical, optimizer, physical
from streamsift.arguments import (
    BadRowsPolicy,
    as_table,
    check_batch,
    check_columns,
    check_names,
    check_policy,
    check_streaming,
    is_spark,
    type_name,
)
from streamsift.errors import QueryError
from streamsift.language import Script, parse, print_script, syntax
from streamsift.logical import builder
from streamsift.view.notebook import Explanation, query_html, sections
from streamsift.view.plan_tree import plan_svg
from streamsift.view.results import signed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Query:
    """A query. Immutable: every method that changes something returns a new one.

    Made by `query(text)`, or by `event`, `seq`, `all_of`, `any_of` and then `where`, `within`, ….
    """

    script: Script

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return query_html(self.text, self.sketch)

    @property
    def text(self) -> str:
        """The query as it was written, or as it is printed if it was built in Python."""
        return self.script.text or print_script(self.script)

    @property
    def sketch(self) -> logical.BoundQuery | None:
        """What can be told without data, for pictures; None while a query that is being built makes no sense yet."""
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
        **choices: Unpack[physical.ChoiceNames],
    ) -> DataFrame:
        """The result on a Spark DataFrame, as a lazy Spark DataFrame; on a streaming one as a streaming one.

        `time`, `type` and `order` name the columns that play these parts. Rows without a usable time (or order) make
        the job fail, or are left out with `bad_rows="drop"`; a pyspark `Observation` then tells how many
        (`observation.get["bad_rows"]`, after an action).

        On a stream rows are appended when the watermark has passed what decides them. It is the caller's
        (`withWatermark` on the time column), or the greatest time seen in earlier micro-batches less `lateness`
        ("10 s", or a number in the time column's own units; nothing if not given). Events before it are late: they are
        dropped and counted, see `metrics`.

        The other choices are left to cost models unless given; none of them changes the rows. `plan` is the tree of
        joins ("left", "right", "bushy", "inner"), `condense` ("on", "off") whether events with equal values are
        compared once, `cache` ("on", "off") whether answers of inner sub-patterns are kept for later partial matches,
        `strategy` ("prefix", "sem", "two-stack", "pairs", "detect") how an aggregation counts.
        """
        if not is_spark(df):
            raise TypeError(
                f"run() takes a Spark DataFrame, not {type_name(df)}; run_local() takes Arrow and pandas tables"
            )
        from streamsift import spark

        check_policy(bad_rows)
        schema, settings = spark.arrow_schema(df.schema), spark.session_settings(df.sparkSession)
        plan = self._plan(schema, time, type, order, choices, **settings).plan
        if df.isStreaming:
            check_streaming(observation)
            return spark.run_stream(df, plan, lateness=lateness, bad_rows=bad_rows)
        check_batch(lateness)
        return spark.run_batch(df, plan, bad_rows=bad_rows, observation=observation)

    def run_local(
        self,
        data: Any,
        *,
        time: str,
        type: str | None = None,
        order: str | None = None,
        bad_rows: BadRowsPolicy = "fail",
        **choices: Unpack[physical.ChoiceNames],
    ) -> pa.Table:
        """The result on a pyarrow or pandas table (or anything that exports Arrow), as a pyarrow Table, without Spark.

        The order of the matches depends on the plan: sort them where it matters.
        """
        from streamsift import runtime

        check_policy(bad_rows)
        table = as_table(data)
        plan = self._plan(table.schema, time, type, order, choices).plan
        schema = signed(runtime.output_schema(plan.query), self.text, time)
        return pa.Table.from_batches(runtime.execute(plan, table, bad_rows=bad_rows), schema)

    def explain(
        self,
        data: Any,
        *,
        time: str,
        type: str | None = None,
        order: str | None = None,
        analyze: bool = False,
        **choices: Unpack[physical.ChoiceNames],
    ) -> Explanation:
        """What will run on this data (a DataFrame, a table or an Arrow schema) and why; notebooks show the tree.

        Reads no rows, unless `analyze` is asked for: then the query is run on the table, and rates, selectivities and
        time are told, and the trees of joins are drawn with the rows that were expected and built.
        """
        if analyze:
            return self._analyzed(data, time, type, order, choices)
        if is_spark(data):
            from streamsift import spark

            schema, settings = spark.arrow_schema(data.schema), spark.session_settings(data.sparkSession)
            stages = self._plan(schema, time, type, order, choices, **settings)
            placement = spark.stream_placement if data.isStreaming else spark.placement
            return stages.explain(placement(data, stages.plan))
        schema = data if isinstance(data, pa.Schema) else as_table(data).schema
        return self._plan(schema, time, type, order, choices).explain()

    def _analyzed(
        self, data: Any, time: str, type: str | None, order: str | None, choices: physical.ChoiceNames
    ) -> Explanation:
        if is_spark(data) or isinstance(data, pa.Schema):
            raise TypeError("explain(analyze=True) runs in this process: it takes an Arrow or pandas table")
        from streamsift import runtime

        table = as_table(data)
        stages = self._plan(table.schema, time, type, order, choices)
        return stages.explain(analysed=list(runtime.analyze_run(stages.plan, table)))

    def check(
        self, data: Any = None, *, time: str | None = None, type: str | None = None, order: str | None = None
    ) -> None:
        """Raises what is wrong with the query, alone or (given data or a schema, and `time`) against its columns."""
        if data is None:
            logical.check(self._located)
        elif time is None:
            raise TypeError("check() against data needs `time`, the name of the time column")
        else:
            self.explain(data, time=time, type=type, order=order)

    @cached_property
    def _located(self) -> Script:
        """The script with source spans: a query made by Python calls is located in its printed text."""
        return self.script if self.script.text else parse(self.text)

    def plan(
        self,
        schema: pa.Schema,
        time: str,
        type: str | None,
        order: str | None,
        choices: physical.ChoiceNames | None = None,
        **settings: Any,
    ) -> physical.Plan:
        """The physical plan on events of a schema: what `run_many` shares."""
        return self._plan(schema, time, type, order, choices or {}, **settings).plan

    def _plan(
        self,
        schema: pa.Schema,
        time: str,
        type: str | None,
        order: str | None,
        choices: physical.ChoiceNames,
        **settings: Any,
    ) -> _Stages:
        check_names(time=time, type=type, order=order)
        chosen = physical.choices(**choices)
        bound = logical.bind(self._located, schema, time=time, type=type, order=order, **settings)
        optimised, rules = optimizer.optimize(bound)
        if settings.get("case_sensitive") is False:  # a setting of Spark sessions only
            check_columns(optimised.schema.names)
        plan = physical.plan(optimised, chosen)
        LOG.debug("planned %r: %s", self._located.text, "; ".join(plan.reasons))
        return _Stages(self._located.text, bound, optimised, rules, plan)

    # --- building ---
    def where(self, predicate: str) -> Query:
        """Only matches that satisfy the predicate; several are joined by AND.

        >>> print(query("SEQ(A a, B b)").where("[id]").where("a.x > 3"))
        PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 3
        """
        return self._with(f"WHERE {predicate}")

    def within(self, length: str | float, *, exclusive: bool = False) -> Query:
        """Only matches that fit into a window: `within("10 s")`, `within("100 events")`, `within(500)`."""
        return self._with(f"WITHIN {length}" + " EXCLUSIVE" * exclusive)

    def partition_by(self, *attributes: str) -> Query:
        """All events of a match share these columns."""
        return self._with(f"PARTITION BY {', '.join(attributes)}")

    def group_by(self, *attributes: str) -> Query:
        """A result of `agg` or `prefer` for each value of these columns."""
        return self._with(f"GROUP BY {', '.join(attributes)}")

    def agg(self, *aggregates: str) -> Query:
        """Numbers instead of matches.

        >>> print(query("SEQ(A a, B b)").group_by("id").agg("COUNT", "AVG(b.x) AS mean"))
        PATTERN SEQ(A a, B b) GROUP BY id AGG COUNT, AVG(b.x) AS mean
        """
        return self._with(f"AGG {', '.join(aggregates)}")

    def prefer(self, *objectives: str, merge: str | None = None) -> Query:
        """What makes a match good: `prefer("MAX[a.x + b.x]", "MIN[b.t - a.t]")`."""
        return self._with(f"PREF {' AND '.join(objectives)}" + (f" MERGE {merge}" if merge else ""))

    def update(self, length: str | float) -> Query:
        """Results of `agg` or `prefer` at every multiple of a step: `update("1 min")`."""
        return self._with(f"UPDATE {length}")

    def emit(self, mode: str) -> Query:
        """When rows come out: "FINAL", "EACH" for growing groups, "CHANGES" for aggregates."""
        return self._with(f"EMIT {mode}")

    def returns(self, *items: str, top: int | None = None) -> Query:
        """The output columns, and with `prefer` how many matches: `returns(top=10)`."""
        limit = [] if top is None else [f"TOP {top}"]
        return self._with(" ".join(["RETURN", *limit, ", ".join(items)]))

    def classes(self, **predicates: str) -> Query:
        """Event classes by a predicate over a row: `classes(Big="amount > 1000")`."""
        return self._with("WITH " + ", ".join(f"`{name}` = ({predicate})" for name, predicate in predicates.items()))

    def define(self, name: str, definition: Query) -> Query:
        """A sub-pattern with a name, which the pattern uses as `event(name)`."""
        return Query(builder.with_definition(self.script, name, definition.script))

    def one_or_more(self) -> Query:
        """`A+`: a group of at least one event."""
        return self._repeated(syntax.Repeat.ONE_OR_MORE)

    def any_number(self) -> Query:
        """`A*`: a group that may be empty."""
        return self._repeated(syntax.Repeat.ANY_NUMBER)

    def exactly(self, count: int) -> Query:
        """`A[n]`: every choice of n events."""
        return self._repeated(syntax.Repeat.EXACTLY, count)

    def __invert__(self) -> Query:
        return _of(syntax.Not(builder.only_pattern(self.script)))

    def __and__(self, other: Query) -> Query:
        return all_of(self, other)

    def __or__(self, other: Query) -> Query:
        return any_of(self, other)

    def __rshift__(self, other: Query) -> Query:
        return seq(self, other)

    def _with(self, clause: str) -> Query:
        return Query(builder.with_clause(self.script, clause))

    def _repeated(self, repeat: syntax.Repeat, count: int | None = None) -> Query:
        return _of(builder.repeated(builder.only_pattern(self.script), repeat, count))


@dataclass(frozen=True, slots=True)
class _Stages:
    text: str
    bound: logical.BoundQuery
    optimised: logical.BoundQuery
    rules: tuple[str, ...]
    plan: physical.Plan

    def explain(self, where: Sequence[str] = (), analysed: Sequence[str] = ()) -> Explanation:
        text = physical.explain(self.text, self.bound, self.optimised, self.rules, self.plan, where, analysed)
        physical_lines = sections(text)["Physical"]
        return Explanation(text, plan_svg(self.optimised, physical_lines[0]))


def query(text: str) -> Query:
    """A query from its text. What is wrong without knowing the data raises here.

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
    Hint: an event is `class variable`; the next one follows a comma or `;`.
    """
    script = parse(text)
    logical.check(script)
    return Query(script)


def register(session: SparkSession, name: str = "streamsift") -> None:
    """Makes the table function `streamsift` known to a session's SQL.

    `SELECT * FROM streamsift(TABLE(trades) PARTITION BY (symbol), 'PATTERN SEQ(A a, B b) WITHIN 5 s', 'ts', 'kind')`:
    the arguments after the table are query, time, type, order and bad_rows, by place or by name (`time => 'ts'`).
    """
    from streamsift.spark import table_function

    table_function.register(session, name, _plan_of)


def _plan_of(text: str, schema: pa.Schema, time: str, type: str | None, order: str | None, **settings: Any) -> Any:
    return query(text).plan(schema, time, type, order, **settings)


def event(class_name: str, variable: str | None = None) -> Query:
    """One event of a class.

    >>> print(event("A", "a"))
    PATTERN A a
    >>> print(event("A", "a").one_or_more())
    PATTERN A+ a
    """
    return _of(builder.event_pattern(class_name, variable))


def seq(*operands: Query | str) -> Query:
    """One after the other; strings are its predicates.

    >>> print(seq(event("A", "a"), ~event("N", "n"), event("B", "b"), "a.x < b.x").within("10 s"))
    PATTERN SEQ(A a, !N n, B b, a.x < b.x) WITHIN 10 s
    """
    return _of(builder.operator_pattern(syntax.Seq, _patterns(operands)))


def all_of(*operands: Query | str) -> Query:
    """AND: all operands, in any order; `&` does the same.

    >>> print(all_of(event("A", "a"), event("B", "b")))
    PATTERN AND(A a, B b)
    """
    return _of(builder.operator_pattern(syntax.And, _patterns(operands)))


def any_of(*operands: Query | str) -> Query:
    """OR: each match of each operand; `|` does the same.

    >>> print(event("A", "a") | event("B", "b"))
    PATTERN OR(A a, B b)
    """
    return _of(builder.operator_pattern(syntax.Or, _patterns(operands)))


def _of(pattern: syntax.Pattern) -> Query:
    return Query(builder.of_pattern(pattern))


def _patterns(operands: tuple[Query | str, ...]) -> tuple[syntax.Pattern | str, ...]:
    return tuple(o if isinstance(o, str) else builder.only_pattern(o.script) for o in operands)
