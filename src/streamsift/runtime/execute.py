"""A plan of any strategy and a table in, record batches of the result out: the one place that picks the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from streamsift.physical.plan import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.count import aggregate
from streamsift.runtime.detect import detect
from streamsift.runtime.events.bad_rows import BadRows
from streamsift.runtime.events.prepare import prepare_relevant
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.rank import rank


def execute(
    plan: Plan,
    table: pa.Table,
    *,
    bad_rows: str = "fail",
    report: Callable[[BadRows], None] | None = None,
    ties: bool = False,
    own: Bool | None = None,
    owners: tuple[int | None, ...] = (),
    wanted: Callable[[UpdateTicks], UpdateTicks] | None = None,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The result of the plan on a table, in batches; none if there is no row. Bad rows raise at once.

    With `ties` a ranking has columns more, by which it can be merged with that of other tasks. With `own`, matches are
    only those whose first event, or that of the step which `owners` has for the alternative, is one of these rows. Of a
    ranking's ticks only those `wanted` are ranked. Not more than `limit` rows are given: detection stops there.
    """
    events = prepare_relevant(plan, table, bad_rows, report)
    match plan:
        case DetectPlan():
            batches = detect(plan, replace(events, own=own, owners=owners), limit)
        case AggregatePlan():
            batches = aggregate(plan, events)
        case RankPlan():
            batches = rank(plan, events, ties=ties, wanted=wanted, own=own)
    return batches if limit is None else first_rows(batches, limit)


def first_rows(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches up to so many rows, and ask for no other after them."""
    for batch in batches:
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return
