"""Run a plan on a table with the engine of its strategy, and return the schema of its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf

import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.runtime.count import aggregate, aggregate_schema
from streamsift.runtime.detect import detect
from streamsift.runtime.events.bad_rows import BadRows
from streamsift.runtime.events.owned import EVERYTHING, Owned
from streamsift.runtime.events.prepare import prepare_relevant
from streamsift.runtime.matches import match_schema
from streamsift.runtime.rank import rank, rank_schema


def execute(
    plan: Plan,
    table: pa.Table,
    *,
    bad_rows: str = "fail",
    report: Callable[[BadRows], None] | None = None,
    ties: bool = False,
    owned: Owned = EVERYTHING,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the result of the plan on a table in batches; no batch if the result is empty. Bad rows raise at once.

    With `ties`, a ranking has extra columns by which it can be merged with those of other tasks. Only `owned` matches
    and ranks are returned, and at most `limit` rows: detection stops there.
    """
    events = prepare_relevant(plan, table, bad_rows, report)
    match plan:
        case DetectPlan():
            batches = detect(plan, events, limit, owned)
        case AggregatePlan():
            batches = aggregate(plan, events)
        case RankPlan():
            batches = rank(plan, events, ties=ties, owned=owned)
    return batches if limit is None else first_rows(batches, limit)


def output_schema(query: BoundQuery) -> pa.Schema:
    """Return the Arrow schema of a query's result; it is the same for every input, even an empty one."""
    if query.aggregates:
        return aggregate_schema(query)
    return rank_schema(query) if query.ranking else match_schema(query)


def first_rows(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield at most `limit` rows of the batches; compute no batch after them."""
    for batch in batches:
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return


def tables_of(batches: Iterable[pa.RecordBatch], rows: int, size: float = inf) -> Iterator[pa.Table]:
    """Concatenate batches into tables; yield a table as soon as it has `rows` rows or `size` bytes."""
    pending: list[pa.RecordBatch] = []
    pending_rows = pending_bytes = 0
    for batch in batches:
        pending.append(batch)
        pending_rows, pending_bytes = pending_rows + batch.num_rows, pending_bytes + batch.nbytes
        if pending_rows >= rows or pending_bytes >= size:
            yield pa.Table.from_batches(pending)
            pending, pending_rows, pending_bytes = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending)
