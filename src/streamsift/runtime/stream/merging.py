"""Merge the rows of the parts of a stream: totals and rankings over all keys, each part with some of the keys."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streamsift.physical.plan import AggregatePlan, Plan
from streamsift.runtime.count import merged_totals
from streamsift.runtime.execute import output_schema
from streamsift.runtime.rank import merged_ranks


def merged_rows(plan: Plan, parts: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of a plan, given all rows of the same ticks that its parts (`part_plan`) returned."""
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return output_schema(plan.query).empty_table()
    together = pa.concat_tables(parts)
    return (merged_totals if isinstance(plan, AggregatePlan) else merged_ranks)(plan.query, together)
