"""Run many queries on a DataFrame: one scan and one shuffle of a batch, one pass over a stream.

Results have different columns, so they are sent as Arrow messages with the name of their query, and unpacked by name.
On a batch the messages are persisted: the first result that is used computes them, the others read them, and the caller
releases them. Spark runs each streaming DataFrame separately, so streaming results that share a pass share one
DataFrame, which foreachBatch splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamsift.physical.share import SharingPlan, share
from streamsift.runtime.share import Report, execute_many
from streamsift.spark.batch import execute_owned, result_rows, tables
from streamsift.spark.columns import by_position, column, query_of_all, result_schema
from streamsift.spark.distribute import Distribution, owned_totals, sharded_events, shuffled, task_count
from streamsift.spark.share.placements import placements
from streamsift.spark.stream import message_of, messages_of, run_combined, run_stream, unpack
from streamsift.spark.workers import for_workers

MESSAGES = "query string, message binary"
TASKS_FOR_A_READER = 8  # whose messages one reading task takes


class SharedFrames(dict[str, DataFrame]):
    """Lazy results by query name, and the persisted messages that they come from."""

    def __init__(self, results: Mapping[str, DataFrame], messages: DataFrame) -> None:
        super().__init__(results)
        self._messages = messages

    def unpersist(self) -> None:
        """Release the persisted messages. A result that is used later makes its own pass over the events."""
        self._messages.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unpersist()


def run_batch_many(df: DataFrame, plan: SharingPlan, *, bad_rows: str) -> SharedFrames:
    """Run the queries of each placement on one shuffle, and select each query's results from the messages."""
    tasks, query = task_count(df), query_of_all(plan.plans)
    of_all = placements(plan.plans, tasks)
    shared = [(share(each.plans, plan.how), each.distribution) for each in of_all]
    schema, columns, several = query.schema, len(query.schema), len(of_all) > 1

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in tables(batches, columns + several, ()):
            for number, (together, how) in enumerate(shared):
                events = table
                if several:
                    events = table.filter(pc.equal(table.column(columns), number)).remove_column(columns)
                for name, batch in _results(together, how, schema, events, bad_rows):
                    message = message_of(pa.Table.from_batches([batch]))
                    yield pa.record_batch([pa.array([name]), pa.array([message], pa.binary())], ["query", "message"])

    arriving = shuffled(df.select(*map(column, schema.names)), query, of_all, tasks, None)
    messages = by_position(arriving).mapInArrow(for_workers(run), MESSAGES).persist()
    # Results are much smaller than the events, so reading one takes fewer tasks than computing all.
    readers = max(1, tasks // TASKS_FOR_A_READER)
    results = {
        name: result_rows(messages_of(messages, name).coalesce(readers), unpack, df.schema, one, each.distribution)
        for each in of_all
        for name, one in each.plans.items()
    }
    return SharedFrames({name: results[name] for name in plan.plans}, messages)


def _results(
    plan: SharingPlan, how: Distribution, schema: pa.Schema, arrived: pa.Table, bad_rows: str
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the results that a table owns, with the names of their queries."""
    if not arrived.num_rows:
        return
    sharded = sharded_events(arrived, len(schema))
    sharded = replace(sharded, events=sharded.events.rename_columns(schema.names).cast(schema))
    # Sort by time once for all queries.
    time = next(iter(plan.plans.values())).query.binding.time
    sharded = sharded.take(pc.sort_indices(sharded.events, sort_keys=[(time, "ascending")]).to_numpy())

    def run_one(name: str, report: Report) -> Iterator[pa.RecordBatch]:
        return execute_owned(plan.plans[name], how, sharded, bad_rows, report)

    keep_owned = cache(lambda name: owned_totals(plan.plans[name], how, sharded))
    for name, batch in execute_many(plan, sharded.events, bad_rows=bad_rows, run_one=run_one):
        yield name, keep_owned(name)(batch)


def many_batch_placement(df: DataFrame, plan: SharingPlan) -> list[str]:
    """Return the lines of explain on how the queries are distributed."""
    tasks = task_count(df)
    of_all = placements(plan.plans, tasks)
    lines = [f"Spark: {len(plan.plans)} queries, one scan and one shuffle over {tasks} tasks"]
    for placement in of_all:
        how = placement.distribution
        by = f"by {', '.join(how.keys)}" if how.keys else "by time slices" if how.is_replicated else "in one task"
        lines.append(f"{by}: {', '.join(placement.plans)}")
    if len(of_all) > 1:
        lines.append(f"replicas: up to {len(of_all)} per event, one for each of these distributions that can use it")
    return lines


# --- streams ---------------------------------------------------------------------------------------------------------


class SharedStream(dict[str, DataFrame]):
    """One streaming DataFrame per query, by name, and `together`, one streaming DataFrame for all of them.

    `together` has columns `query` and `message`. `shared.together.writeStream.foreachBatch(shared.each(write))` calls
    `write(results, batch_id)` for every micro-batch, with one batch DataFrame per query.
    """

    def __init__(self, alone: Mapping[str, DataFrame], together: DataFrame, schemas: Mapping[str, StructType]) -> None:
        super().__init__(alone)
        self.together = together
        self._schemas = dict(schemas)

    def each(self, write: Callable[[dict[str, DataFrame], int], Any]) -> Callable[[DataFrame, int], None]:
        """Return a function for foreachBatch on `together` that splits a micro-batch by query and calls `write`."""
        schemas = self._schemas  # not self: on Spark Connect this function is sent to the server

        def split(batch: DataFrame, batch_id: int) -> None:
            batch.persist()  # one pass over the state, however `write` uses the parts
            rows = for_workers(unpack)
            try:
                write({n: messages_of(batch, n).mapInArrow(rows, schema) for n, schema in schemas.items()}, batch_id)
            finally:
                batch.unpersist()

        return split


def run_stream_many(df: DataFrame, plan: SharingPlan, *, lateness: Any, bad_rows: str, buckets: Any) -> SharedStream:
    options = {"lateness": lateness, "bad_rows": bad_rows, "buckets": buckets}
    alone = {name: run_stream(df, one, **options) for name, one in plan.plans.items()}
    schemas = {name: result_schema(df.schema, one.query) for name, one in plan.plans.items()}
    return SharedStream(alone, run_combined(df, plan.plans, **options, sharing=plan.how), schemas)
