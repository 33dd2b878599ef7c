"""Run a plan on the events of one table, and return the result rows that its shards own.

Class names arrive as small integers, and become strings again here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical import bound as b
from streamsift.physical import Plan
from streamsift.runtime import BadRows, execute
from streamsift.spark.columns import text
from streamsift.spark.distribute import (
    Distribution,
    ShardedEvents,
    needs_merge,
    owned_results,
    owned_totals,
    sharded_events,
)

MAX_NAMES = 100  # codes fit in a byte
OTHER = "(of no class of the pattern)"  # shown in errors about bad rows; no other rows have it


def class_names(plan: Plan) -> tuple[str, ...]:
    """Return the class names if the type column gives all classes of the pattern; if not, the type is sent as text."""
    query = plan.query
    classes = {variable.event_class for variable in query.variables}
    if query.binding.type is None or any(each.rule is not b.ClassRule.TYPE for each in classes):
        return ()
    names = sorted({each.name for each in classes})
    is_text = pa.types.is_string(query.schema.field(query.binding.type).type)
    return tuple(names) if is_text and len(names) <= MAX_NAMES else ()


def class_code(query: b.BoundQuery, names: Sequence[str]) -> SparkColumn:
    """Return 1 for the first name, 2 for the second, 0 for any other string, null for null."""
    assert query.binding.type is not None
    return F.array_position(F.array(*map(F.lit, names)), text(query.binding.type)).cast("tinyint")


def execute_owned(
    plan: Plan, how: Distribution, sharded: ShardedEvents, bad_rows: str, report: Callable[[BadRows], None] | None
) -> Iterator[pa.RecordBatch]:
    """Run a plan on a table and return owned matches, owned ranks with tie breakers, or all rows of aggregates."""
    events, owned = sharded.events.select(plan.query.schema.names), owned_results(plan, how, sharded)
    return execute(plan, events, bad_rows=bad_rows, report=report, ties=needs_merge(plan, how), owned=owned)


@dataclass(frozen=True, slots=True)
class Task:
    """The work of each task of a plan, pickled and sent to Spark's Python workers."""

    plan: Plan
    distribution: Distribution
    bad_rows: str
    report: Callable[[BadRows], None] | None = None
    class_names: tuple[str, ...] = ()  # if the type column has codes instead of names

    def results(self, arrived: pa.Table) -> Iterator[pa.RecordBatch]:
        """Run on shuffled rows: the query's columns, SHARD and, if events can be replicated, SHARD_OFFSETS."""
        query = self.plan.query
        sharded = sharded_events(arrived, len(query.schema))
        events = sharded.events.rename_columns(query.schema.names)
        if self.class_names and query.binding.type is not None:
            position = events.column_names.index(query.binding.type)
            names = pa.array([OTHER, *self.class_names], pa.string())
            texts = pc.take(names, events.column(position).combine_chunks())
            events = events.set_column(position, query.binding.type, texts)
        # Timestamps arrive in the session's time zone; the cast keeps the instants.
        sharded = replace(sharded, events=events.cast(query.schema))
        rows = execute_owned(self.plan, self.distribution, sharded, self.bad_rows, self.report)
        return map(owned_totals(self.plan, self.distribution, sharded), rows)
