"""Run several queries on a table: compute shared parts once, and run the other queries one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.errors import BadRowsWarning, warn
from streamsift.physical.plan import Alternative
from streamsift.physical.share import ChoppedQueries, SharedTree, SharingPlan
from streamsift.runtime.count import AggregateInput, Timeline, measures_of, result_batch
from streamsift.runtime.events.bad_rows import BadRows
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.execute import execute
from streamsift.runtime.share.chop import count_chopped
from streamsift.runtime.share.prefixes import count_tree

Report = Callable[[BadRows], None]
RunOne = Callable[[str, Report], Iterator[pa.RecordBatch]]  # run the query of this name


def execute_many(
    plan: SharingPlan,
    table: pa.Table,
    *,
    bad_rows: str = "fail",
    report: Report | None = None,
    run_one: RunOne | None = None,
    limit: int | None = None,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield result batches with the name of their query. Bad rows are reported once for all queries.

    `run_one` replaces `execute` for queries that run alone, for callers that need only part of their results. At most
    `limit` rows are returned per query.
    """
    report_bad = report or (lambda bad: warn(f"dropped bad rows: {bad}", BadRowsWarning))
    reported: list[BadRows] = []

    def once(bad: BadRows) -> None:
        if not reported:
            reported.append(bad)
            report_bad(bad)

    alone, together = list(plan.alone), list[SharedTree | ChoppedQueries]((*plan.trees, *plan.chops))
    for shared in together:
        results = _shared_results(plan, shared, table, bad_rows, once)
        if results is None:
            # Sharing would cost more on these events, or need too much memory.
            alone += shared.members
        else:
            yield from ((name, batch.slice(0, limit)) for name, batch in results.items() if batch is not None)
    for name in alone:
        if run_one is not None:
            batches = run_one(name, once)
        else:
            batches = execute(plan.plans[name], table, bad_rows=bad_rows, report=once, limit=limit)
        yield from ((name, batch) for batch in batches)


def _shared_results(
    plan: SharingPlan, shared: SharedTree | ChoppedQueries, table: pa.Table, bad_rows: str, report: Report
) -> dict[str, pa.RecordBatch | None] | None:
    """Return the results of each query; None if the queries should run one by one."""
    events = prepare(shared.query, table, bad_rows, report)
    if events.rank.size == 0 or events.width < 0:
        return {}
    steps = Alternative(shared.query, tuple(node.step for node in shared.nodes), ())
    given = AggregateInput.of(shared.query, (steps,), events)
    timelines: Mapping[str, Timeline] | None = None
    with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap; the doubles detect it
        if isinstance(shared, ChoppedQueries):
            timelines = count_chopped(shared, given)
        elif (totals := count_tree(shared, given)) is not None:
            timelines = {name: totals[node] for name, node in shared.terminals.items()}
    if timelines is None:
        return None
    results = {}
    for name, timeline in timelines.items():
        query = plan.plans[name]
        if isinstance(shared, SharedTree):
            decoders = [given.decoders[number] for number in shared.aggregates[name]]
        else:
            decoders = measures_of(query.query, query.alternatives, events)[1]
        results[name] = result_batch(query, replace(given, decoders=decoders), timeline)
    return results
