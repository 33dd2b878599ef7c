"""The events of one partition in, the result rows that its tasks own out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamsift.physical import AggregatePlan, Plan
from streamsift.runtime import BadRows, execute
from streamsift.runtime.shares import Share
from streamsift.spark.circle import Part, part_of
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
        """Of the events as they are shuffled: the query's columns, then, if they are dealt, on which way."""
        return self.of_part(part_of(arrived, self.tasks)) if self.how.is_dealt else self._run(arrived)

    def of_part(self, part: Part) -> Iterator[pa.RecordBatch]:
        how, is_total = self.how, isinstance(self.plan, AggregatePlan)
        if how.partial is not None:
            return self._run(part.events, own=part.own, owners=how.partial.owners)
        if how.slices is None:
            return self._run(part.events)
        if is_total:
            return (self.owned(batch, part) for batch in self._run(part.events))
        if self.plan.query.update is not None:
            return self._run(part.events, wanted=Share(part.tasks, how.slices.ticks_each).owned)
        return self._run(part.events, own=part.own)

    def owned(self, totals: pa.RecordBatch, part: Part) -> pa.RecordBatch:
        """The totals whose times lie in the slices of the part's tasks."""
        if self.how.slices is None:
            return totals
        slices = slice_numbers(totals.column("time"), self.plan.query, self.how.slices)
        return totals.filter(pa.array(part.tasks[slices % self.tasks]))

    def _run(self, table: pa.Table, **owned: Any) -> Iterator[pa.RecordBatch]:
        schema = self.plan.query.schema
        # Columns come by position. The session's time zone is in the arriving type; the same instants are meant.
        events = table.rename_columns(schema.names).cast(schema)
        return execute(self.plan, events, bad_rows=self.bad_rows, report=self.report, ties=self.ties, **owned)
