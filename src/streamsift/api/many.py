"""Many queries and one stream in, the result of each out: one scan, one shuffle, and what they share counted once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

import pyarrow as pa

from streamsift import physical
from streamsift.api.arguments import (
    BadRowsPolicy,
    as_table,
    check_batch,
    check_limit,
    check_no_limits,
    check_policy,
    is_spark,
    memory_bytes,
)
from streamsift.api.query import Query, query
from streamsift.api.results import signed
from streamsift.errors import QueryError
from streamsift.physical.explain import describe_sharing
from streamsift.physical.share import ShareMode, SharingPlan
from streamsift.physical.share import share as plan_sharing

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from streamsift.spark import Metrics, SharedFrames, SharedStream

ShareName = Literal["auto", "always", "never"]


def run_many(
    queries: Mapping[str, Query | str],
    data: Any,
    *,
    time: str,
    type: str | None = None,
    order: str | None = None,
    bad_rows: BadRowsPolicy = "fail",
    share: ShareName = "auto",
    lateness: str | float | None = None,
    limit: int | None = None,
    memory_limit: int | str | None = None,
    **choices: Unpack[physical.PlannerKeywords],
) -> SharedFrames | SharedStream | dict[str, pa.Table]:
    """The result of each query, by its name: DataFrames for a Spark DataFrame, else Arrow tables.

    Each equals what the query gives alone. On Spark the results are lazy and come from one persisted pass over the
    events, which is made when the first of them is used; `unpersist()` of what is returned, or leaving a `with` block
    around it, gives that memory back. `share` ("auto", "always", "never") tells whether queries are counted together;
    the other choices are those of `Query.run` and hold for every query that they can be made for.

    >>> import pyarrow as pa
    >>> events = pa.table({"t": [1, 2, 3], "kind": ["A", "B", "C"]})
    >>> queries = {"two": "SEQ(A a, B b) AGG COUNT", "three": "SEQ(A a, B b, C c) AGG COUNT"}
    >>> results = run_many(queries, events, time="t", type="kind")
    >>> {name: table.to_pylist() for name, table in results.items()}
    {'two': [{'time': 2, 'count': 1}], 'three': [{'time': 3, 'count': 1}]}

    On a streaming DataFrame each result is a streaming DataFrame; every one that is started reads the stream and keeps
    state on its own. To make one pass for all, start `together` of what is returned, and have `each` split it.

    `limit` (of each result) and `memory_limit` (of all together) are those of `Query.run_local`: not for Spark.
    """
    check_policy(bad_rows)
    if is_spark(data):
        from streamsift import spark

        check_no_limits(limit, memory_limit)
        settings, schema = spark.session_settings(data.sparkSession), spark.arrow_schema(data.schema)
        plan = _shared(queries, schema, time, type, order, share, choices, **settings)
        if data.isStreaming:
            return spark.run_stream_many(data, plan, lateness=lateness, bad_rows=bad_rows)
        check_batch(lateness)
        return spark.run_batch_many(data, plan, bad_rows=bad_rows)
    from streamsift import runtime

    check_batch(lateness)
    limit, budget = check_limit(limit), runtime.Budget(memory_bytes(memory_limit))
    table = as_table(data)
    plan = _shared(queries, table.schema, time, type, order, share, choices)
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name in queries}
    results = runtime.execute_many(plan, table, bad_rows=bad_rows, limit=limit)
    for name, batch in runtime.limited_batches(results, budget):
        budget.hold(batch)
        found[name].append(batch)
    return {
        name: pa.Table.from_batches(
            batches, signed(runtime.output_schema(plan.plans[name].query), str(queries[name]), time)
        )
        for name, batches in found.items()
    }


def explain_many(
    queries: Mapping[str, Query | str],
    data: Any,
    *,
    time: str,
    type: str | None = None,
    order: str | None = None,
    share: ShareName = "auto",
    **choices: Unpack[physical.PlannerKeywords],
) -> str:
    """What the queries share on this data (a DataFrame, a table or an Arrow schema), and why the rest does not."""
    if not is_spark(data):
        schema = data if isinstance(data, pa.Schema) else as_table(data).schema
        return "\n".join(describe_sharing(_shared(queries, schema, time, type, order, share, choices)))
    from streamsift import spark

    settings, schema = spark.session_settings(data.sparkSession), spark.arrow_schema(data.schema)
    plan = _shared(queries, schema, time, type, order, share, choices, **settings)
    if data.isStreaming:
        return "\n".join(spark.many_placement(data, plan))
    return "\n".join([*describe_sharing(plan), *spark.many_batch_placement(data, plan)])


def metrics(streaming_query: StreamingQuery) -> Metrics:
    """What the last triggers of a streaming query did: rows, matches, late events, state, latency. It prints well."""
    from streamsift import spark

    return spark.metrics(streaming_query)


def _shared(
    queries: Mapping[str, Query | str],
    schema: pa.Schema,
    time: str,
    type: str | None,
    order: str | None,
    how: str,
    choices: physical.PlannerKeywords,
    **settings: Any,
) -> SharingPlan:
    if how not in list(ShareMode):
        raise QueryError(f"share={how!r}", hint='it is "auto", "always" or "never".')
    if not queries:
        raise QueryError("no queries", hint='run_many takes names and queries: {"q1": "PATTERN …"}.')
    plans: dict[str, physical.Plan] = {}
    for name, written in queries.items():
        one = query(written) if isinstance(written, str) else written
        plans[name] = one.plan(schema, time, type, order, choices, **settings)
    return plan_sharing(plans, ShareMode(how))
