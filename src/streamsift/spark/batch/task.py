"""Run a plan on the events of one table, and return the result rows that its shards own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from streamsift.physical import Plan
from streamsift.runtime import BadRows, execute
from streamsift.runtime.events.owned import EVERYTHING
from streamsift.spark.columns import with_class_names
from streamsift.spark.distribute import Distribution, needs_merge, owned_results, sharded_events


@dataclass(frozen=True, slots=True)
class Task:
    """What every task of a plan does. It travels to Spark's Python workers."""

    plan: Plan
    distribution: Distribution
    bad_rows: str
    report: Callable[[BadRows], None] | None = None
    class_names: tuple[str, ...] = ()  # if the type's column has their numbers

    def results(self, arrived: pa.Table) -> Iterator[pa.RecordBatch]:
        """Run on events as they are shuffled: the query's columns, then SHARD, and if replicated SHARD_OFFSETS."""
        owned = EVERYTHING
        if self.distribution.is_replicated:
            sharded = sharded_events(arrived)
            events = self._events(sharded.events)
            owned = owned_results(self.plan, self.distribution, replace(sharded, events=events))
        else:
            events = self._events(arrived.select(range(arrived.num_columns - 1)))
        ties = needs_merge(self.plan, self.distribution)
        return execute(self.plan, events, bad_rows=self.bad_rows, report=self.report, ties=ties, owned=owned)

    def _events(self, arrived: pa.Table) -> pa.Table:
        """Name columns by position. The session's time zone is in the arriving type; the same instants are meant."""
        query = self.plan.query
        events = arrived.rename_columns(query.schema.names)
        if self.class_names:
            events = with_class_names(events, query, self.class_names)
        return events.cast(query.schema)
