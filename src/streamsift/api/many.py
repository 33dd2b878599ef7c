"""Run many queries on the same events with one scan and one shuffle, and count shared parts once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

import pyarrow as pa

from streamsift.api import arguments
from streamsift.api.arguments import BadRowsPolicy, Roles, as_table, is_spark, memory_bytes, schema_of
from streamsift.api.query import Query, query
from streamsift.errors import QueryError
from streamsift.physical import PlannerKeywords
from streamsift.physical.explain import describe_sharing
from streamsift.physical.share import ShareMode, SharingPlan
from streamsift.physical.share import share as plan_sharing
from streamsift.view.pictures import signed

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
    limit: int | None = None,
    memory_limit: int | str | None = None,
    **choices: Unpack[PlannerKeywords],
) -> SharedFrames | SharedStream | dict[str, pa.Table]:
    """Return the result of each query, by its name: DataFrames for a Spark DataFrame, else Arrow tables.

    Each result equals that of the query alone. On Spark the results are lazy and come from one persisted pass over the
    events, which is made when the first of them is used; `unpersist()` of the returned object, or leaving a `with`
    block around it, frees that memory. `share` ("auto", "always", "never") decides if queries are counted together;
    the other choices are those of `Query.run` and apply to every query that allows them.

    >>> import pyarrow as pa
    >>> events = pa.table({"t": [1, 2, 3], "kind": ["A", "B", "C"]})
    >>> queries = {"two": "SEQ(A a, B b) AGG COUNT", "three": "SEQ(A a, B b, C c) AGG COUNT"}
    >>> results = run_many(queries, events, time="t", type="kind")
    >>> {name: table.to_pylist() for name, table in results.items()}
    {'two': [{'time': 2, 'count': 1}], 'three': [{'time': 3, 'count': 1}]}

    On a streaming DataFrame each result is a streaming DataFrame; every one that is started reads the stream and keeps
    its state. To make one pass for all, start `together` of the returned object, and have `each` split it.

    `limit` (of each result) and `memory_limit` (of all together) are those of `Query.run_local`: not for Spark.
    """
    arguments.check_policy(bad_rows)
    roles = Roles(time, type, order)
    if not is_spark(data):
        arguments.check_batch(lateness)
        limit, memory, table = arguments.check_limit(limit), memory_bytes(memory_limit), as_table(data)
        plan = _shared(queries, table, roles, share, choices)
        return _run_local(plan, queries, table, bad_rows, limit, memory)
    arguments.check_no_limits(limit, memory_limit)
    from streamsift import spark

    plan = _shared(queries, data, roles, share, choices)
    if data.isStreaming:
        return spark.run_stream_many(data, plan, lateness=lateness, bad_rows=bad_rows)
    arguments.check_batch(lateness)
    return spark.run_batch_many(data, plan, bad_rows=bad_rows)


def _run_local(
    plan: SharingPlan, queries: Queries, table: pa.Table, bad_rows: str, limit: int | None, memory: int
) -> dict[str, pa.Table]:
    from streamsift import runtime

    budget = runtime.Budget(memory)
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in queries}
    results = runtime.execute_many(plan, table, bad_rows=bad_rows, limit=limit)
    for name, batch in runtime.limited_batches(results, budget):
        budget.hold(batch)
        batches[name].append(batch)

    def schema(name: str) -> pa.Schema:
        query = plan.plans[name].query
        return signed(runtime.output_schema(query), str(queries[name]), query.binding.time)

    return {name: pa.Table.from_batches(of_query, schema(name)) for name, of_query in batches.items()}


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
    """Say what the queries share on this data (a DataFrame, a table or an Arrow schema), and why the rest does not."""
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
    if not queries:
        raise QueryError("no queries", hint='run_many takes names and queries: {"q1": "PATTERN …"}.')
    schema, settings = schema_of(data)
    parsed = {name: query(one) if isinstance(one, str) else one for name, one in queries.items()}
    plans = {name: one.plan(schema, *roles, choices, **settings) for name, one in parsed.items()}
    return plan_sharing(plans, ShareMode(how))
