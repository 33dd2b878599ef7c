"""Run a plan of any strategy on a table, and return the schema of its result: the one place that picks the engine."""

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
    """Return the result of the plan on a table, in batches; none if there is no row. Bad rows raise at once.

    With `ties` a ranking has more columns, by which it can be merged with that of other tasks. Of matches and ranks
    only those `owned` are returned. Not more than `limit` rows are returned: detection stops there.
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
    """Return the Arrow schema of a query's result, the same for every input, empty ones too."""
    if query.aggregates:
        return aggregate_schema(query)
    return rank_schema(query) if query.ranking else match_schema(query)


def first_rows(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches up to so many rows, and ask for no other after them."""
    for batch in batches:
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return


def tables_of(batches: Iterable[pa.RecordBatch], rows: int, size: float = inf) -> Iterator[pa.Table]:
    """Yield the batches put together, as soon as they have so many rows or bytes."""
    waiting: list[pa.RecordBatch] = []
    waiting_rows = waiting_bytes = 0
    for batch in batches:
        waiting.append(batch)
        waiting_rows, waiting_bytes = waiting_rows + batch.num_rows, waiting_bytes + batch.nbytes
        if waiting_rows >= rows or waiting_bytes >= size:
            yield pa.Table.from_batches(waiting)
            waiting, waiting_rows, waiting_bytes = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)
