"""Run many queries on the same events with one scan and one shuffle or one stream; count shared sub-patterns once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

import pyarrow as pa

from streamsift.api import arguments
from streamsift.api.arguments import BadRowsPolicy, Roles, as_table, is_spark, memory_bytes, schema_of
from streamsift.api.query import Query, query
from streamsift.api.streams import Opening, Stream, open_stream
from streamsift.errors import QueryError
from streamsift.physical import PlannerKeywords
from streamsift.physical.explain import describe_sharing
from streamsift.physical.share import ShareMode, SharingPlan
from streamsift.physical.share import share as plan_sharing
from streamsift.view.plots import signed

if TYPE_CHECKING:
    from streamsift.spark import SharedFrames, SharedStream

ShareName = Literal["auto", "always", "never"]
Queries = Mapping[str, Query | str]


def run_many(
    queries: Queries,
    data: Any,
    *,
    time: str,
    type: str | None = None,
    order: str | None = None,
    bad_rows: BadRowsPolicy = "fail",
    share: ShareName = "auto",
    lateness: str | float | None = None,
    buckets: int | None = None,
    limit: int | None = None,
    memory_limit: int | str | None = None,
    **choices: Unpack[PlannerKeywords],
) -> SharedFrames | SharedStream | dict[str, pa.Table]:
    """Run many queries on the same events, with one pass for all of them.

    Each result equals that of the query alone. On a batch DataFrame, results are lazy and come from one persisted pass
    over the events, which runs when the first result is used. Call `unpersist()` on the returned object, or use it in
    a `with` block, to free that memory. On a stream, each result is a streaming DataFrame with its own state. To share
    one pass, start `together` of the returned object and let `each` split its micro-batches.

    Args:
        queries: Queries or query texts, by name.
        data: Spark DataFrame, or a table as in `Query.run_local`.
        time: Name of the time column.
        type: Name of the column that contains the event class. Default: none.
        order: Name of a column that orders events with equal times. Default: none.
        bad_rows: "fail" (default) or "drop", for rows without a usable time or order.
        share: "auto" (default) counts queries together if the planner expects that to be faster; "always" and "never"
            decide it.
        lateness: Allowed lateness of a stream, as in `Query.run`. Default: 0.
        buckets: Number of hash buckets of a new stream, as in `Query.run`. Default: twice the cores of the session.
        limit: Maximum number of rows of each result; not on Spark. Default: no limit.
        memory_limit: Memory that all queries together may use, in bytes or as text ("2 GB"); not on Spark. Default:
            half of the memory available to the process.
        **choices: Planner options, as in `Query.run`; each applies to the queries that allow it.

    Returns:
        Results by query name: DataFrames for a Spark DataFrame, otherwise pyarrow Tables.

    Raises:
        QueryError: A query does not fit the columns, or an argument is invalid.
        UnsupportedQuery: This version cannot evaluate a query.

    Example:
        >>> import pyarrow as pa
        >>> events = pa.table({"t": [1, 2, 3], "kind": ["A", "B", "C"]})
        >>> queries = {"two": "SEQ(A a, B b) AGG COUNT", "three": "SEQ(A a, B b, C c) AGG COUNT"}
        >>> results = run_many(queries, events, time="t", type="kind")
        >>> {name: table.to_pylist() for name, table in results.items()}
        {'two': [{'time': 2, 'count': 1}], 'three': [{'time': 3, 'count': 1}]}
    """
    arguments.check_policy(bad_rows)
    roles = Roles(time, type, order)
    if not is_spark(data):
        arguments.check_batch(lateness=lateness, buckets=buckets)
        limit, memory, table = arguments.check_limit(limit), memory_bytes(memory_limit), as_table(data)
        plan = _shared(queries, table, roles, share, choices)
        return _run_local(plan, queries, table, bad_rows, limit, memory)
    arguments.check_no_limits(limit, memory_limit)
    from streamsift import spark

    plan = _shared(queries, data, roles, share, choices)
    if data.isStreaming:
        return spark.run_stream_many(data, plan, lateness=lateness, bad_rows=bad_rows, buckets=buckets)
    arguments.check_batch(lateness=lateness, buckets=buckets)
    return spark.run_batch_many(data, plan, bad_rows=bad_rows)


def _run_local(
    plan: SharingPlan, queries: Queries, table: pa.Table, bad_rows: str, limit: int | None, memory: int
) -> dict[str, pa.Table]:
    from streamsift import runtime
    from streamsift.runtime.events.unmatched import warn_unmatched

    budget = runtime.Budget(memory)
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in queries}
    results = runtime.execute_many(plan, table, bad_rows=bad_rows, limit=limit)
    for name, batch in runtime.limited_batches(results, budget):
        budget.hold(batch)
        batches[name].append(batch)
    warn_unmatched((each.query for each in plan.plans.values()), table)

    def schema(name: str) -> pa.Schema:
        query = plan.plans[name].query
        return signed(runtime.output_schema(query), str(queries[name]), query.binding.time)

    return {name: pa.Table.from_batches(of_query, schema(name)) for name, of_query in batches.items()}


def open_many(
    queries: Queries,
    schema: Any,
    *,
    time: str,
    type: str | None = None,
    order: str | None = None,
    lateness: str | float | None = None,
    bad_rows: BadRowsPolicy = "fail",
    memory_limit: int | str | None = None,
    **choices: Unpack[PlannerKeywords],
) -> Stream[dict[str, pa.Table]]:
    """Open one stream in this process for many queries, which share the events in its state.

    Args:
        queries: Queries or query texts, by name.
        schema: Arrow schema of the events, or a table, of which no row is read.
        time: Name of the time column.
        type: Name of the column that contains the event class. Default: none.
        order: Name of a column that orders events with equal times. Default: none.
        lateness: How late events may arrive, as in `Query.open`. Default: 0.
        bad_rows: "fail" (default) or "drop", as in `Query.open`.
        memory_limit: Memory that the stream may use, as in `Query.open`. Default: half of the memory available to the
            process.
        **choices: Planner options, as in `Query.run`; each applies to the queries that allow it.

    Returns:
        A `Stream`, whose methods return dicts of pyarrow Tables by query name.

    Raises:
        QueryError: A query does not fit the schema, or an argument is invalid.
        UnsupportedQuery: This version cannot evaluate a query on a stream.

    Example:
        >>> import pyarrow as pa
        >>> queries = {"ab": "SEQ(A a, B b) WITHIN 9 RETURN b.t AS at", "ba": "SEQ(B b, A a) WITHIN 9 RETURN a.t AS at"}
        >>> stream = open_many(queries, pa.schema({"t": pa.int64(), "kind": pa.string()}), time="t", type="kind")
        >>> rows = stream.push([{"t": 1, "kind": "A"}, {"t": 4, "kind": "B"}])
        >>> {name: table.to_pylist() for name, table in stream.finish().items()}
        {'ab': [{'at': 4}], 'ba': []}
    """
    check_queries(queries)
    texts = {name: (query(one) if isinstance(one, str) else one).text for name, one in queries.items()}
    opening = Opening(texts, Roles(time, type, order), lateness, bad_rows, choices, is_many=True)
    return open_stream(opening, schema, memory_limit)


def explain_many(
    queries: Queries,
    data: Any,
    *,
    time: str,
    type: str | None = None,
    order: str | None = None,
    share: ShareName = "auto",
    **choices: Unpack[PlannerKeywords],
) -> str:
    """Return what the queries share on this data, and why the rest is not shared.

    Args:
        queries: Queries or query texts, by name.
        data: Spark DataFrame, table, or Arrow schema. No row is read.
        time: Name of the time column.
        type: Name of the column that contains the event class. Default: none.
        order: Name of a column that orders events with equal times. Default: none.
        share: "auto" (default), "always" or "never", as in `run_many`.
        **choices: Planner options, as in `Query.run`.

    Returns:
        The plan as text.

    Raises:
        QueryError: A query does not fit the columns, or an argument is invalid.
        UnsupportedQuery: This version cannot evaluate a query.

    Example:
        >>> schema = pa.schema({"t": pa.int64(), "kind": pa.string()})
        >>> text = explain_many({"two": "SEQ(A a, B b) AGG COUNT"}, schema, time="t", type="kind")
    """
    plan = _shared(queries, data, Roles(time, type, order), share, choices)
    if not is_spark(data):
        return "\n".join(describe_sharing(plan))
    from streamsift import spark

    if data.isStreaming:
        return "\n".join(spark.many_placement(data, plan))
    return "\n".join([*describe_sharing(plan), *spark.many_batch_placement(data, plan)])


def _shared(queries: Queries, data: Any, roles: Roles, how: str, choices: PlannerKeywords) -> SharingPlan:
    if how not in list(ShareMode):
        raise QueryError(f"invalid value for share: {how!r}", hint='expected "auto", "always" or "never".')
    check_queries(queries)
    schema, settings = schema_of(data)
    parsed = {name: query(one) if isinstance(one, str) else one for name, one in queries.items()}
    plans = {name: one.plan(schema, *roles, choices, **settings) for name, one in parsed.items()}
    return plan_sharing(plans, ShareMode(how))


def check_queries(queries: Queries) -> None:
    if not queries:
        raise QueryError("there are no queries to run", hint='pass queries by name: {"q1": "PATTERN …"}.')
