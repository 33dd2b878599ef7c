"""A plan of any strategy and a table in, record batches of the result out: the one place that picks the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from streamsift.physical.plan import DetectPlan, Plan
from streamsift.runtime.detect import detect
from streamsift.runtime.events import BadRows, prepare
from streamsift.runtime.own_windows import with_own_windows


def execute(
    plan: Plan,
    table: pa.Table,
    *,
    bad_rows: str = "fail",
    report: Callable[[BadRows], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The result of the plan on a table, in batches; none if there is no row. Bad rows raise at once."""
    events = with_own_windows(plan.query, prepare(plan.query, table, bad_rows, report))
    match plan:
        case DetectPlan():
            return detect(plan, events)
