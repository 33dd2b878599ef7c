"""Simulate the micro-batches of a Spark stream around packer and processor, without Spark.

Plain objects stand in for the state store, timers, watermark, task retries and workers that lose their memory, so that
tests can run thousands of streams. tests/spark/stream/test_streaming.py runs the same on Spark.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from streamsift.logical import lateness_of
from streamsift.physical.plan.plan import Plan
from streamsift.runtime.stream import merged_rows
from streamsift.runtime.stream.engine import ManyEngine
from streamsift.spark.columns import query_of_all
from streamsift.spark.columns.event_time import event_time
from streamsift.spark.stream import stateful
from streamsift.spark.stream.buckets import BucketCount
from streamsift.spark.stream.merging import Merger
from streamsift.spark.stream.packing import Packer, unpack
from streamsift.spark.stream.placing import PlacedBuckets, new_engine, stream_placements
from streamsift.spark.stream.stateful import RESULTS, BucketProcessor

RESULT_TYPES = pa.schema(
    [
        (name, {"string": pa.string(), "binary": pa.binary(), "bigint": pa.int64()}[kind])
        for name, kind in (field.split() for field in RESULTS.split(", "))
    ]
)


class Value:
    def __init__(self, store: dict[str, Any], name: str) -> None:
        self.store, self.name = store, name

    def get(self) -> Any:
        return self.store.get(self.name)

    def update(self, value: Any) -> None:
        self.store[self.name] = value


class Chunks:
    def __init__(self, store: dict[str, Any]) -> None:
        self.chunks: dict[Any, Any] = store.setdefault("chunks", {})

    def iterator(self) -> Iterator[Any]:
        return iter(list(self.chunks.items()))

    def getValue(self, key: Any) -> Any:  # noqa: N802 (Spark's name)
        return self.chunks.get(key)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802 (Spark's name)
        assert key not in self.chunks, "a chunk never changes"
        self.chunks[key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802
        del self.chunks[key]


class Handle:
    """The state of one bucket, as a processor sees it."""

    def __init__(self, store: dict[str, Any]) -> None:
        self.store = store
        self.timers: set[int] = store.setdefault("timers", set())

    def getValueState(self, name: str, _: Any) -> Value:  # noqa: N802
        return Value(self.store, name)

    def getMapState(self, _name: str, _key: Any, _value: Any) -> Chunks:  # noqa: N802
        return Chunks(self.store)

    def registerTimer(self, moment: int) -> None:  # noqa: N802
        self.timers.add(moment)

    def deleteTimer(self, moment: int) -> None:  # noqa: N802
        self.timers.remove(moment)


class Moment:
    def __init__(self, moment: int) -> None:
        self.moment = moment

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802
        return self.moment

    def getExpiryTimeInMs(self) -> int:  # noqa: N802
        return self.moment


class Stream:
    """A streaming query over buckets of keys."""

    def __init__(self, plans: Mapping[str, Plan], *, lateness: Any = None, buckets: int = 3, bad_rows: str = "fail"):
        ManyEngine(plans)  # raises if the query is not supported on a stream
        self.plans, self.query = plans, query_of_all(plans)
        self.placements = stream_placements(plans)
        self.merger = Merger({name: plan for each in self.placements for name, plan in each.merged.items()})
        self.buckets = PlacedBuckets(tuple(BucketCount(bool(each.keys), buckets) for each in self.placements))
        self.time = event_time(self.query, lateness_of(lateness, self.query.binding))
        self.bad_rows = bad_rows
        self.stores: dict[int, dict[str, Any]] = {}
        self.watermark = self.seen = 0
        self.counts: dict[str, int] = {}
        self.processor = self.restart()

    def restart(self) -> BucketProcessor:
        """Restart the query with a new processor, so that engines cached in workers are not used."""
        self.processor = BucketProcessor(self.placements, self.time, self.buckets, self.bad_rows)
        return self.processor

    def batch(self, rows: pa.Table | None) -> dict[str, list[Any]]:
        """Run a micro-batch, or a no-data one if `rows` is None, and return the result rows by query."""
        found: list[Row] = []
        if rows is not None:
            messages = pa.Table.from_batches(list(Packer(self.query, self.time, self.buckets)(self._arriving(rows))))
            for seen in messages["seen"].cast(pa.int64()).drop_null().to_pylist():
                self.seen = max(self.seen, seen // 1000 - self.time.delay_milliseconds)
            rows_of_all = messages.drop_columns("seen").to_pylist()
            for bucket in sorted({row["bucket"] for row in rows_of_all}):
                own = [Row(**row) for row in rows_of_all if row["bucket"] == bucket]
                self._ready(bucket)
                found += self.processor.handleInputRows((bucket,), iter(own), Moment(self.watermark))
        for bucket, store in self.stores.items():
            for timer in sorted(t for t in store["timers"] if t < self.watermark):
                self._ready(bucket)
                found += self.processor.handleExpiredTimer(
                    key=(bucket,), timerValues=Moment(self.watermark), expiredTimerInfo=Moment(timer)
                )
                store["timers"].remove(timer)
        self.watermark = max(self.watermark, self.seen)
        return self._rows(found)

    def attempt(self, rows: pa.Table | None) -> None:
        """Run a micro-batch that fails at its end, so that Spark discards the state that it wrote."""
        kept = copy.deepcopy((self.stores, self.watermark, self.seen, self.counts))
        self.batch(rows)
        self.stores, self.watermark, self.seen, self.counts = kept

    def finish(self) -> dict[str, list[Any]]:
        """Load the state, finish the stream and return the rows that were not final."""
        found: dict[str, list[pa.Table]] = {name: [] for name in self.plans}
        for bucket, store in self.stores.items():
            if "head" not in store:
                continue
            engine = new_engine(self.placements[self.buckets.placement(bucket)])
            engine.load(store["head"][-1], [(key[0], value[0]) for key, value in store["chunks"].items()])
            for name, table in engine.finish().items():
                found[name].append(table)
        merged, rows = self.merger.plans, dict[str, list[Any]]()
        for name, tables in found.items():
            tables = [merged_rows(merged[name], tables)] if name in merged else tables
            rows[name] = [row for table in tables for row in table.to_pylist()]
        return rows

    def _ready(self, bucket: int) -> None:
        self.processor.init(Handle(self.stores.setdefault(bucket, {})))  # type: ignore[arg-type]

    def _arriving(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        rows = rows.select(self.query.schema.names)
        events = rows
        for place, placement in enumerate(self.placements):
            columns = [pa.array([hash(plain_key(v)) for v in events[key].to_pylist()]) for key in placement.keys]
            numbers = np.zeros(rows.num_rows, np.int64)
            for column in columns:
                numbers = numbers * 31 + column.to_numpy() % 1009
            rows = rows.append_column(f"matters{place}", pa.array(np.ones(rows.num_rows, np.bool_)))
            rows = rows.append_column(f"hash{place}", pa.array(numbers))
        return iter(rows.to_batches())

    def _rows(self, found: list[Row]) -> dict[str, list[Any]]:
        results = pa.Table.from_pylist([row.asDict() for row in found], RESULT_TYPES).to_batches()
        found = [Row(**row) for batch in self.merger(iter(results)) for row in batch.to_pylist()]
        for name in ("late", "matches", "bad_rows"):
            self.counts[name] = self.counts.get(name, 0) + sum(row[name] for row in found)
        return {
            name: pa.Table.from_batches(
                list(unpack(iter([pa.RecordBatch.from_arrays([pa.array(own, pa.binary())], ["message"])])))
            ).to_pylist()
            if (own := [row.message for row in found if row.query == name and row.message is not None])
            else []
            for name in self.plans
        }


def plain_key(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


class Workers:
    """Python workers that take turns at random; each has its own memory and may lose it."""

    def __init__(self, chance: random.Random, count: int = 2) -> None:
        self.chance, self.memories = chance, [dict[Any, Any]() for _ in range(count)]
        self.current = 0
        stateful._ENGINES.clear()

    def swap(self) -> None:
        self.memories[self.current] = dict(stateful._ENGINES)
        self.current = self.chance.randrange(len(self.memories))
        stateful._ENGINES.clear()
        if self.chance.random() < 0.8:
            stateful._ENGINES.update(self.memories[self.current])
