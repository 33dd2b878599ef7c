"""A batch DataFrame and a sharing plan in, a lazy DataFrame for each query out: one scan and one shuffle for all.

Results have different columns, so they travel as Arrow messages beside their query's name, and are unpacked by name.
What travels is persisted: the first result that is used makes it, the others read it, and the caller releases it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import or_
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.physical import AggregatePlan, RankPlan
from streamsift.physical.share import SharingPlan, share
from streamsift.runtime.share import Report, execute_many
from streamsift.spark.batch import (
    BAD,
    Task,
    arc_of,
    asked_of_rows,
    can_matter_with_keys,
    key_number,
    merged,
    tables,
    tasks_of,
)
from streamsift.spark.columns import column, is_bad, result_schema
from streamsift.spark.distribute import Arc, Part, Picked, dealt, needs_merge, part_of, picks_own
from streamsift.spark.share.placements import Placement, describe_placements, placements
from streamsift.spark.stream import message_of, unpack

MESSAGES = "query string, message binary"
TASKS_FOR_A_READER = 8  # whose messages it reads
_PLACEMENT = "$streamsift_placement"  # a column beside the events: for whose queries this copy is


class SharedFrames(dict[str, DataFrame]):
    """Lazy results by the names of their queries, and the persisted frames that they come from."""

    def __init__(self, results: Mapping[str, DataFrame], sources: Sequence[DataFrame]) -> None:
        super().__init__(results)
        self._sources = sources

    def unpersist(self) -> None:
        """Gives the memory back. Results can still be used; each then makes its own pass over the events."""
        for source in self._sources:
            source.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unpersist()


def run_batch_many(df: DataFrame, plan: SharingPlan, *, bad_rows: str) -> SharedFrames:
    """An event goes as many ways as there are placements, in one shuffle; each query finds its results among all."""
    tasks = tasks_of(df)
    found = placements(plan.plans, tasks)
    fields = {field.name: field for one in plan.plans.values() for field in one.query.schema}
    schema = pa.schema(fields.values())
    runs = [_Run(share(each.plans, plan.how), each, schema, bad_rows) for each in found]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in tables(batches, len(schema) + 1, ()):
            number = table.column(len(schema))
            events = table.remove_column(len(schema))
            for place, each in enumerate(runs):
                for name, batch in each.results(events.filter(pc.equal(number, place))):
                    message = message_of(pa.Table.from_batches([batch]))
                    columns = [pa.array([name]), pa.array([message], pa.binary())]
                    yield pa.RecordBatch.from_arrays(columns, ["query", "message"])

    shuffled = _shuffled(df, found, schema, tasks)
    messages = shuffled.toDF(*(f"c{i}" for i in range(len(schema) + 3))).mapInArrow(run, MESSAGES).persist()
    results: dict[str, DataFrame] = {}
    for each in runs:
        for name, one in each.plan.plans.items():
            # Results are few beside the events: to read one of them takes fewer tasks than to make them all.
            own = messages.where(F.col("query") == name).select("message").coalesce(max(1, tasks // TASKS_FOR_A_READER))
            rows = own.mapInArrow(unpack, result_schema(df.schema, one.query, ties=each.has_ties(name)))
            if isinstance(one, RankPlan) and each.has_ties(name):
                rows = merged(rows, one, result_schema(df.schema, one.query))
            results[name] = rows
    return SharedFrames({name: results[name] for name in plan.plans}, [messages])


def _shuffled(df: DataFrame, found: Sequence[Placement], schema: pa.Schema, tasks: int) -> DataFrame:
    """Every event once for each placement that can use it, and there once for each task; bad ones once."""
    first = next(iter(found[0].plans.values()))
    events = df.select(*(column(name) for name in schema.names)).withColumn(BAD, is_bad(first.query))
    wanted = [_matters(each) for each in found]
    numbers = F.array_compact(F.array(*(F.when(condition, number) for number, condition in enumerate(wanted))))
    # Not `explode`: Spark would evaluate all conditions once more in a filter, to leave out rows that have none.
    events = events.withColumn(_PLACEMENT, F.explode_outer(F.when(F.col(BAD), F.array(F.lit(0))).otherwise(numbers)))
    events = events.where(F.col(_PLACEMENT).isNotNull())
    arcs = [_arc(each, number, tasks) for number, each in enumerate(found)]

    def chosen(columns: Sequence[SparkColumn]) -> SparkColumn:
        start = F.when(F.col(_PLACEMENT) == 0, columns[0])
        return reduce(lambda so_far, n: so_far.when(F.col(_PLACEMENT) == n, columns[n]), range(1, len(columns)), start)

    arc = Arc(*(chosen([getattr(each, part) for each in arcs]) for part in ("start", "home", "last")))
    return dealt(events, arc, tasks, ~F.col(BAD)).drop(BAD)


def _matters(placement: Placement) -> SparkColumn:
    """Many queries ask for the same events: each condition once."""
    conditions = {asked_of_rows(plan): can_matter_with_keys(plan) for plan in placement.plans.values()}
    return reduce(or_, (F.lit(True) if each is None else each for each in conditions.values()))


def _arc(placement: Placement, number: int, tasks: int) -> Arc:
    """What one task must have goes to a task that no other placement's is, while there are enough."""
    if not placement.how.keys and not placement.how.is_copied:
        return Arc(F.lit(number), F.lit(number), F.lit(number))
    first = next(iter(placement.plans.values()))
    arc = arc_of(first, placement.how, tasks, key_number(first, placement.how))
    return replace(arc, last=arc.start) if arc.last is None else arc


@dataclass(frozen=True, slots=True)
class _Run:
    """What a task does for the queries of one placement. It travels to Spark's Python workers."""

    plan: SharingPlan
    placement: Placement
    schema: pa.Schema
    bad_rows: str

    @property
    def time(self) -> str:
        return next(iter(self.plan.plans.values())).query.binding.time

    def has_ties(self, name: str) -> bool:
        one, how = self.plan.plans[name], self.placement.ways[name]
        return isinstance(one, RankPlan) and needs_merge(one, how.keys, is_cut=how.is_copied)

    def results(self, arrived: pa.Table) -> Iterator[tuple[str, pa.RecordBatch]]:
        if not arrived.num_rows:
            return
        part = part_of(arrived)
        part = _in_order(
            replace(part, events=part.events.rename_columns(self.schema.names).cast(self.schema)), self.time
        )

        def task(name: str, report: Report | None) -> Task:
            one = self.plan.plans[name]
            return Task(one, self.placement.ways[name], self.bad_rows, report, self.has_ties(name))

        def run_one(name: str, report: Report) -> Iterator[pa.RecordBatch]:
            names = self.plan.plans[name].query.schema.names
            return task(name, report).of_part(replace(part, events=part.events.select(names)))

        @cache
        def picked(name: str) -> Picked:
            one, cut = self.plan.plans[name], self.placement.ways[name].slices
            if cut is None or not isinstance(one, AggregatePlan):
                return lambda batch: batch
            return picks_own(one.query, cut, part)

        for name, batch in execute_many(self.plan, part.events, bad_rows=self.bad_rows, run_one=run_one):
            yield name, picked(name)(batch)


def _in_order(part: Part, time: str) -> Part:
    """By time, once for all queries: each of them would have to."""
    order = pc.sort_indices(part.events, sort_keys=[(time, "ascending")])
    return part.take(order.to_numpy())


def many_batch_placement(df: DataFrame, plan: SharingPlan) -> list[str]:
    """How many queries run on a batch, for explain."""
    return list(describe_placements(placements(plan.plans, tasks_of(df)), tasks_of(df)))
