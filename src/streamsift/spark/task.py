"""The events of one partition in, the result rows that its tasks own out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from streamsift.physical import AggregatePlan, Plan
from streamsift.runtime import BadRows, execute
from streamsift.runtime.shares import Share
from streamsift.spark.circle import part_of
from streamsift.spark.slices import slice_numbers
from streamsift.spark.spreading import Spreading


@dataclass(frozen=True, slots=True)
class Task:
    """What every task of a plan does. It travels to Spark's Python workers."""

    plan: Plan
    how: Spreading
    tasks: int
    bad_rows: str
    report: Callable[[BadRows], None] | None = None
    ties: bool = False

    def results(self, arrived: pa.Table) -> Iterator[pa.RecordBatch]:
        """Of the events as they are shuffled: the query's columns, then those that say where they go."""
        plan, how = self.plan, self.how
        if not how.is_dealt:
            return self._run(arrived)
        part, cut, query = part_of(arrived, self.tasks), how.slices, plan.query
        if cut is None or (query.update is None and not isinstance(plan, AggregatePlan)):
            return self._run(part.events, own=part.own)
        if not isinstance(plan, AggregatePlan):
            return self._run(part.events, wanted=Share(part.tasks, cut.ticks_each).owned)

        def owned(batch: pa.RecordBatch) -> pa.RecordBatch:
            slices = slice_numbers(batch.column("time"), query, cut)
            return batch.filter(pa.array(part.tasks[slices % self.tasks]))

        return map(owned, self._run(part.events))

    def _run(self, table: pa.Table, **owned: object) -> Iterator[pa.RecordBatch]:
        schema = self.plan.query.schema
        # The session's time zone is in the arriving type; the same instants are meant.
        events = table.rename_columns(schema.names).cast(schema)
        return execute(self.plan, events, bad_rows=self.bad_rows, report=self.report, ties=self.ties, **owned)  # type: ignore[arg-type]
