"""Run several queries on a table: count what they share once, and run the others one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from streamsift.errors import BadRowsWarning, warn
from streamsift.physical.plan import Alternative
from streamsift.physical.share import ChoppedQueries, SharedTree, SharingPlan
from streamsift.runtime.count import (
    AggregateInput,
    Decoder,
    Timeline,
    aggregate_schema,
    groups_of,
    measures_of,
    result_batch,
    result_rows,
)
from streamsift.runtime.events.bad_rows import BadRows
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.events.stamps import clock_of
from streamsift.runtime.execute import execute
from streamsift.runtime.share.chop import count_chopped
from streamsift.runtime.share.tree import count_tree

Report = Callable[[BadRows], None]
RunOne = Callable[[str, Report], Iterator[pa.RecordBatch]]  # the name of a query in, its results out


def execute_many(
    plan: SharingPlan,
    table: pa.Table,
    *,
    bad_rows: str = "fail",
    report: Report | None = None,
    run_one: RunOne | None = None,
    limit: int | None = None,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield batches with the name of their query. Bad rows are reported once, however many queries see them.

    `run_one` runs a query that shares nothing, where not all of its results are wanted. Of each query not more than
    `limit` rows are given.
    """
    reported: list[BadRows] = []

    def once(bad: BadRows) -> None:
        if not reported:
            reported.append(bad)
            if report is not None:
                report(bad)
            else:
                warn(f"Dropped: {bad}", BadRowsWarning)

    alone = list(plan.alone)
    shared: tuple[SharedTree | ChoppedQueries, ...] = (*plan.trees, *plan.chops)
    for together in shared:
        answers = _of_several(plan, together, table, bad_rows, once)
        if answers is None:
            # It would cost more on these events, or take too much memory.
            alone += together.members
        else:
            yield from ((name, batch.slice(0, limit)) for name, batch in answers)
    for name in alone:
        if run_one is not None:
            batches = run_one(name, once)
        else:
            batches = execute(plan.plans[name], table, bad_rows=bad_rows, report=once, limit=limit)
        yield from ((name, batch) for batch in batches)


def _of_several(
    plan: SharingPlan, together: SharedTree | ChoppedQueries, table: pa.Table, bad_rows: str, report: Report
) -> list[tuple[str, pa.RecordBatch]] | None:
    events = prepare(together.query, table, bad_rows, report)
    if events.rank.size == 0 or events.width < 0:
        return []
    clock = clock_of(together.query, events)
    groups = groups_of(together.query, events, clock)
    alternatives = (Alternative(together.query, tuple(node.step for node in together.nodes), ()),)
    measures, decoders = measures_of(together.query, alternatives, events)
    given = AggregateInput(events, clock, groups, measures)
    with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap: the doubles beside them show it
        counted = _counts(plan, together, given, decoders)
    if counted is None:
        return None
    answers = []
    for name, (timeline, own_decoders) in counted.items():
        query = plan.plans[name].query
        rows = result_rows(query, clock, timeline, own_decoders, lambda: np.empty(0, np.int64))
        if rows.stamp.size:
            answers.append((name, result_batch(query, aggregate_schema(query), given, rows, own_decoders)))
    return answers


def _counts(
    plan: SharingPlan, together: SharedTree | ChoppedQueries, given: AggregateInput, decoders: list[Decoder]
) -> dict[str, tuple[Timeline, list[Decoder]]] | None:
    """Return the totals of each query, and how its aggregates are made from them."""
    if isinstance(together, SharedTree):
        totals = count_tree(together, given)
        if totals is None:
            return None
        return {
            name: (totals[node], [decoders[number] for number in together.aggregates[name]])
            for name, node in together.terminals.items()
        }
    counts = count_chopped(together, given)
    if counts is None:
        return None
    return {
        name: (timeline, measures_of(plan.plans[name].query, plan.plans[name].alternatives, given.events)[1])
        for name, timeline in counts.items()
    }
