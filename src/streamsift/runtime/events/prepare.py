"""Prepare the events of a table for a query: in order of time, with every column that its plan may read.

All callers get their events here, so none can leave out the columns of definitions that have a window of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import Plan
from streamsift.runtime.events.bad_rows import BadRows
from streamsift.runtime.events.definition_windows import with_own_windows
from streamsift.runtime.events.events import Events, in_order
from streamsift.runtime.events.relevant import relevant


def prepare(
    query: BoundQuery, table: pa.Table, bad_rows: str = "fail", report: Callable[[BadRows], None] | None = None
) -> Events:
    """Return the events of a table as `query` binds them. `bad_rows` is "fail" or "drop"."""
    return with_own_windows(query, in_order(query, table, bad_rows, report))


def prepare_relevant(
    plan: Plan, table: pa.Table, bad_rows: str = "fail", report: Callable[[BadRows], None] | None = None
) -> Events:
    """Return the events as `prepare` does, without those that no step of the plan may bind if they are many."""
    return with_own_windows(plan.query, relevant(plan, in_order(plan.query, table, bad_rows, report)))
