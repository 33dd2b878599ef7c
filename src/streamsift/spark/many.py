"""A batch DataFrame and a sharing plan in, a lazy DataFrame for each query out: one scan and one shuffle for all.

Results have different columns, so they travel as Arrow messages beside their query's name, and are unpacked by name.
What travels is persisted: the first result that is used makes it, the others read it, and the caller releases it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.physical import Plan
from streamsift.physical.sharing import SharingPlan, share
from streamsift.runtime import execute_many
from streamsift.spark.batch import BAD, can_matter_with_keys, shuffled_by
from streamsift.spark.filters import column, is_bad
from streamsift.spark.schemas import result_schema
from streamsift.spark.spreading import shuffle_keys

MESSAGES = "query string, message binary"


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
    """Queries that need their rows together in the same way share a shuffle; most workloads have one."""
    by_keys: dict[tuple[str, ...], dict[str, Plan]] = {}
    for name, one in plan.plans.items():
        by_keys.setdefault(shuffle_keys(one), {})[name] = one
    found: dict[str, DataFrame] = {}
    sources: list[DataFrame] = []
    for keys, plans in by_keys.items():
        messages = _messages(df, share(plans, plan.how), keys, bad_rows).persist()
        sources.append(messages)
        for name, one in plans.items():
            own = messages.where(F.col("query") == name).select("message")
            found[name] = own.mapInArrow(_unpack, result_schema(df.schema, one.query))
    return SharedFrames({name: found[name] for name in plan.plans}, sources)


def _messages(df: DataFrame, plan: SharingPlan, keys: tuple[str, ...], bad_rows: str) -> DataFrame:
    fields = {field.name: field for one in plan.plans.values() for field in one.query.schema}
    schema = pa.schema(fields.values())
    first = next(iter(plan.plans.values()))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = list(batches)
        if not arrived:
            return
        table = pa.Table.from_batches(arrived).rename_columns(schema.names).cast(schema)
        for name, batch in execute_many(plan, table, bad_rows=bad_rows):
            message = pa.BufferOutputStream()
            with pa.ipc.new_stream(message, batch.schema) as writer:
                writer.write_batch(batch)
            columns = [pa.array([name]), pa.array([message.getvalue().to_pybytes()], pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, ["query", "message"])

    events = df.select(*(column(name) for name in schema.names)).withColumn(BAD, is_bad(first.query))
    conditions = [can_matter_with_keys(one) for one in plan.plans.values()]
    if all(condition is not None for condition in conditions):
        events = events.where(reduce(or_, [c for c in conditions if c is not None]) | F.col(BAD))
    wide = replace(first.query, schema=schema)
    shuffled = shuffled_by(events, keys, wide).drop(BAD)
    return shuffled.toDF(*(f"c{i}" for i in range(len(schema)))).mapInArrow(run, MESSAGES)


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for message in batch.column(0):
            yield from pa.ipc.open_stream(message.as_buffer())
