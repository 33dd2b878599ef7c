"""Run many queries on a batch DataFrame, as a lazy DataFrame for each: one scan and one shuffle for all.

Results have different columns, so they travel as Arrow messages beside their query's name, and are unpacked by name.
What travels is persisted: the first result that is used makes it, the others read it, and the caller releases it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical.bound import BoundQuery
from streamsift.physical.share import SharingPlan, share
from streamsift.runtime import execute
from streamsift.runtime.events.owned import Owned
from streamsift.runtime.share import Report, execute_many
from streamsift.spark.batch import result_rows, tables
from streamsift.spark.columns import by_position, query_of_all
from streamsift.spark.distribute import (
    BAD,
    ShardRange,
    can_matter_to,
    key_hash,
    needs_merge,
    owned_results,
    routed,
    sharded_events,
    shards_of,
    task_count,
    with_bad_rows_marked,
)
from streamsift.spark.share.placements import Placement, describe_placements, placements
from streamsift.spark.stream import message_of, messages_of, unpack

MESSAGES = "query string, message binary"
TASKS_FOR_A_READER = 8  # whose messages it reads
_PLACEMENT = "$streamsift_placement"  # a column beside the events: for whose queries this replica is


class SharedFrames(dict[str, DataFrame]):
    """Lazy results by the names of their queries, and the persisted frames that they come from."""

    def __init__(self, results: Mapping[str, DataFrame], sources: Sequence[DataFrame]) -> None:
        super().__init__(results)
        self._sources = sources

    def unpersist(self) -> None:
        """Release the memory. Results can still be used; each then makes its own pass over the events."""
        for source in self._sources:
            source.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unpersist()


def run_batch_many(df: DataFrame, plan: SharingPlan, *, bad_rows: str) -> SharedFrames:
    """Shuffle an event once for each placement that can use it; each query finds its results among all messages."""
    tasks, query = task_count(df), query_of_all(plan.plans)
    of_all = placements(plan.plans, tasks)
    runs = [_PlacementRun(share(each.plans, plan.how), each, query.schema, bad_rows) for each in of_all]
    columns = len(query.schema)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in tables(batches, columns + 1, ()):
            number, events = table.column(columns), table.remove_column(columns)
            for place, each in enumerate(runs):
                for name, batch in each.results(events.filter(pc.equal(number, place))):
                    message = message_of(pa.Table.from_batches([batch]))
                    yield pa.record_batch([pa.array([name]), pa.array([message], pa.binary())], ["query", "message"])

    messages = by_position(_shuffled(df, of_all, query, tasks)).mapInArrow(run, MESSAGES).persist()
    results: dict[str, DataFrame] = {}
    for each in of_all:
        for name, one in each.plans.items():
            # Results are few beside the events: to read one of them takes fewer tasks than to make them all.
            own = messages_of(messages, name).coalesce(max(1, tasks // TASKS_FOR_A_READER))
            results[name] = result_rows(own, unpack, df.schema, one, each.distributions[name])
    return SharedFrames({name: results[name] for name in plan.plans}, [messages])


def _shuffled(df: DataFrame, of_all: Sequence[Placement], query: BoundQuery, tasks: int) -> DataFrame:
    """Replicate every event once for each placement that can use it, and there once for each task; bad ones once."""
    events = with_bad_rows_marked(df, query)
    conditions = [can_matter_to(each.plans.values()) for each in of_all]
    useful = [F.lit(True) if condition is None else condition for condition in conditions]
    numbers = F.array_compact(F.array(*(F.when(condition, number) for number, condition in enumerate(useful))))
    # Not `explode`: Spark would evaluate all conditions once more in a filter, to drop rows that have none.
    events = events.withColumn(_PLACEMENT, F.explode_outer(F.when(F.col(BAD), F.array(F.lit(0))).otherwise(numbers)))
    events = events.where(F.col(_PLACEMENT).isNotNull())
    ranges = [_shards(each, number, tasks) for number, each in enumerate(of_all)]

    def chosen(columns: Sequence[SparkColumn]) -> SparkColumn:
        start = F.when(F.col(_PLACEMENT) == 0, columns[0])
        return reduce(lambda so_far, n: so_far.when(F.col(_PLACEMENT) == n, columns[n]), range(1, len(columns)), start)

    shards = ShardRange(*(chosen([getattr(each, end) for each in ranges]) for end in ("first", "owner", "last")))
    return routed(events, shards, tasks, ~F.col(BAD)).drop(BAD)


def _shards(placement: Placement, number: int, tasks: int) -> ShardRange:
    """Route what must be in one task to a task that no other placement's is, while there are enough."""
    how = placement.distribution
    if not how.keys and not how.is_replicated:
        return ShardRange(F.lit(number), F.lit(number), F.lit(number))
    first = next(iter(placement.plans.values()))
    shards = shards_of(first, how, tasks, key_hash(how.keys, first.query))
    return replace(shards, last=shards.first) if shards.last is None else shards


@dataclass(frozen=True, slots=True)
class _PlacementRun:
    """What a task does for the queries of one placement. It travels to Spark's Python workers."""

    plan: SharingPlan
    placement: Placement
    schema: pa.Schema
    bad_rows: str

    def results(self, arrived: pa.Table) -> Iterator[tuple[str, pa.RecordBatch]]:
        if not arrived.num_rows:
            return
        sharded = sharded_events(arrived)
        sharded = replace(sharded, events=sharded.events.rename_columns(self.schema.names).cast(self.schema))
        # By time, once for all queries: each of them would have to.
        time = next(iter(self.plan.plans.values())).query.binding.time
        sharded = sharded.take(pc.sort_indices(sharded.events, sort_keys=[(time, "ascending")]).to_numpy())

        @cache
        def owned(name: str) -> Owned:
            return owned_results(self.plan.plans[name], self.placement.distributions[name], sharded)

        def run_one(name: str, report: Report) -> Iterator[pa.RecordBatch]:
            one, how = self.plan.plans[name], self.placement.distributions[name]
            events = sharded.events.select(one.query.schema.names)
            # Totals are picked below, with those that queries share.
            mine = replace(owned(name), totals=None)
            ties = needs_merge(one, how)
            return execute(one, events, bad_rows=self.bad_rows, report=report, ties=ties, owned=mine)

        for name, batch in execute_many(self.plan, sharded.events, bad_rows=self.bad_rows, run_one=run_one):
            pick = owned(name).totals
            yield name, batch if pick is None else pick(batch)


def many_batch_placement(df: DataFrame, plan: SharingPlan) -> list[str]:
    """Say how many queries run on a batch, for explain."""
    return list(describe_placements(placements(plan.plans, task_count(df)), task_count(df)))
