"""A plan of any strategy and a table in, record batches of the result out: the one place that picks the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import DetectPlan, Plan, RankPlan
from streamsift.runtime.detect import detect
from streamsift.runtime.events import BadRows, prepare
from streamsift.runtime.output import match_schema
from streamsift.runtime.own_windows import with_own_windows
from streamsift.runtime.rank_output import rank_schema
from streamsift.runtime.ranking import rank


def execute(
    plan: Plan,
    table: pa.Table,
    *,
    bad_rows: str = "fail",
    report: Callable[[BadRows], None] | None = None,
    ties: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The result of the plan on a table, in batches; none if there is no row. Bad rows raise at once.

    With `ties` a ranking has columns more, by which it can be merged with that of other tasks.
    """
    events = with_own_windows(plan.query, prepare(plan.query, table, bad_rows, report))
    match plan:
        case DetectPlan():
            return detect(plan, events)
        case RankPlan():
            return rank(plan, events, ties=ties)


def output_schema(query: BoundQuery) -> pa.Schema:
    """The schema of the result, the same for every input, empty ones too."""
    return rank_schema(query) if query.ranking else match_schema(query)
