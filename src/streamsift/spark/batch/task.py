"""The events of one table in, the result rows that its stops own out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from streamsift.physical import AggregatePlan, Plan
from streamsift.runtime import BadRows, execute
from streamsift.runtime.events.owned_ticks import Share
from streamsift.spark.columns import with_class_names
from streamsift.spark.distribute import Part, Spreading, part_of, picks_own


@dataclass(frozen=True, slots=True)
class Task:
    """What every task of a plan does. It travels to Spark's Python workers."""

    plan: Plan
    how: Spreading
    bad_rows: str
    report: Callable[[BadRows], None] | None = None
    ties: bool = False
    class_names: tuple[str, ...] = ()  # where the type's column has their numbers

    def results(self, arrived: pa.Table) -> Iterator[pa.RecordBatch]:
        """Of the events as they are shuffled: the query's columns, then at which stop, and if copied on which way."""
        if self.how.is_copied:
            part = part_of(arrived)
            yield from self.of_part(replace(part, events=self._events(part.events)))
        else:
            yield from self._run(self._events(arrived.select(range(arrived.num_columns - 1))))

    def of_part(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Of events that have the query's names and types."""
        how = self.how
        if how.partial is not None:
            return self._run(part.events, own=part.own, owners=how.partial.owners)
        if how.slices is None:
            return self._run(part.events)
        if isinstance(self.plan, AggregatePlan):
            return map(picks_own(self.plan.query, how.slices, part), self._run(part.events))
        if self.plan.query.update is not None:
            return self._run(part.events, wanted=Share(part.stops, how.slices.ticks_each).owned)
        return self._run(part.events, own=part.own)

    def _events(self, arrived: pa.Table) -> pa.Table:
        """Columns come by position. The session's time zone is in the arriving type; the same instants are meant."""
        query = self.plan.query
        events = arrived.rename_columns(query.schema.names)
        if self.class_names:
            events = with_class_names(events, query, self.class_names)
        return events.cast(query.schema)

    def _run(self, events: pa.Table, **owned: Any) -> Iterator[pa.RecordBatch]:
        return execute(self.plan, events, bad_rows=self.bad_rows, report=self.report, ties=self.ties, **owned)
