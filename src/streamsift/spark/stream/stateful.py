"""Keep the state of a stream in Spark's state store, and run the engine of each bucket on its messages.

The state of a bucket is a header and immutable chunks. A micro-batch writes the header and the chunks of its events. A
Python worker caches the engine of a bucket with the version of its state. Each state is stored with its version and the
versions before it. If the cached version is an earlier one, because another worker had the bucket in between, the
engine reads the missing chunks. If the cached version is not in the state, after a failure or a retry, the engine is
rebuilt from the state (tests/spark/stream/test_stateful.py).

Contract: the watermark moves before events are pushed; rows are released after that. So an event is late exactly if it
is before the watermark of its micro-batch, whatever its bucket is and whenever that bucket was last used
(tests/spark/stream/test_stateful.py, `test_what_is_late_does_not_depend_on_the_bucket`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from streamsift.runtime.events.bad_rows import bad_rows_error
from streamsift.runtime.state import read_head
from streamsift.runtime.stream import ManyEngine
from streamsift.spark.columns import EventTime
from streamsift.spark.stream.identity import check_same, describe_states
from streamsift.spark.stream.packing import ROWS_PER_RESULT, bad_rows_in, is_copy, message_of, table_of
from streamsift.spark.stream.placing import PlacedBuckets, StreamPlacement
from streamsift.spark.workers import plain_errors

if TYPE_CHECKING:
    import pandas as pd

RESULTS = (
    "query string, message binary, matches bigint, late bigint, bad_rows bigint, "
    "state_rows bigint, state_bytes bigint, state_rows_change bigint, state_bytes_change bigint, buckets bigint, "
    "all_buckets bigint"
)
VERSION_LENGTH, VERSIONS = 16, 32  # a worker that missed more micro-batches rebuilds the engine
CACHED_BYTES = 1 << 30  # of engines that a Python worker caches; evicted engines are rebuilt from the state


# Types rather than strings, which the JVM would parse for each task.
def _fields(**types: Any) -> StructType:
    return StructType([StructField(name, kind, True) for name, kind in types.items()])


# Checkpoints contain these names.
HEADER = _fields(
    token=StringType(), earlier=StringType(), timer=LongType(), rows=LongType(), bytes=LongType(), head=BinaryType()
)
ABOUT = _fields(about=StringType())
CHUNK_NUMBER = _fields(number=LongType())
CHUNK = _fields(chunk=BinaryType())


@dataclass(slots=True)
class CachedEngine:
    """An engine, with the rest of the header that it was loaded from."""

    engine: ManyEngine
    version: str = ""  # of the state; "" if none has been written
    earlier: str = ""  # the previous versions
    timer: int | None = None
    rows: int = 0
    bytes: int = 0


_ENGINES: OrderedDict[tuple[str, int], CachedEngine] = OrderedDict()  # of this worker, least recently used first


class BucketProcessor(StatefulProcessor):
    """Run the engine of each bucket. Spark calls it with the messages of a micro-batch, and when a timer expires."""

    def __init__(
        self, placements: Sequence[StreamPlacement], time: EventTime, buckets: PlacedBuckets, bad_rows: str
    ) -> None:
        self.placements, self.time, self.buckets, self.bad_rows = placements, time, buckets, bad_rows
        self.plans = [placement.engine_plans for placement in placements]
        self.merges = any(placement.merged for placement in placements)
        self.run = uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
        header, about = handle.getValueState("head", HEADER), handle.getValueState("about", ABOUT)
        self.attach(handle, header, about, handle.getMapState("chunks", CHUNK_NUMBER, CHUNK))

    def attach(self, handle: StatefulProcessorHandle, header: ValueState, about: ValueState, chunks: MapState) -> None:
        """Use states that have been declared (`deferred.py`)."""
        self._handle, self._header, self._about, self._chunks = handle, header, about, chunks

    def close(self) -> None:
        pass

    def handleInputRows(  # noqa: N802 (Spark's names)
        self,
        key: Any,
        rows: Iterator[Row],  # type: ignore[override]
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        messages = [row for row in rows if row.message is not None]
        bad = bad_rows_in([row.message for row in messages if row.bad])
        events = [row.message for row in messages if not row.bad]
        with plain_errors():
            if bad.count and self.bad_rows == "fail":
                raise bad_rows_error(bad, next(iter(self.plans[0].values())).query.binding)
            yield from self._step(key[0], events, timerValues.getCurrentWatermarkInMs(), bad.count, None)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        watermark = timerValues.getCurrentWatermarkInMs()
        with plain_errors():
            yield from self._step(key[0], [], watermark, 0, expiredTimerInfo.getExpiryTimeInMs())

    # --- one bucket, one micro-batch ---
    def _step(
        self, bucket: int, messages: list[bytes], watermark: int, bad_rows: int, expired: int | None
    ) -> Iterator[Row]:
        cached = self._engine(bucket)
        engine, late, rows_before, bytes_before = cached.engine, cached.engine.late, cached.rows, cached.bytes
        # Without data, only some buckets are called: see `merging`.
        is_alone = expired is not None and self.merges
        passed = self.time.expired(watermark) if is_alone else self.time.passed(watermark)
        if passed is not None:
            engine.move(passed)
        late_copies = 0
        for message in messages:
            events, late_before = table_of(message), engine.late
            engine.push(events)
            late_copies += engine.late - late_before if is_copy(events) else 0
        final = engine.advance()
        rows, size = engine.rows(), engine.size()
        if cached.version or rows or messages:
            self._write(cached, watermark, expired)
        _keep((self.run, bucket), cached)
        yield _row(
            late=engine.late - late - late_copies,
            bad_rows=bad_rows,
            state_rows=rows,
            state_bytes=size,
            state_rows_change=rows - rows_before,
            state_bytes_change=size - bytes_before,
            buckets=1,
            all_buckets=self.buckets.total(),
        )
        for name, results in final.items():
            for start in range(0, results.num_rows, ROWS_PER_RESULT):
                part = results.slice(start, ROWS_PER_RESULT)
                yield _row(query=name, message=message_of(part), matches=part.num_rows)

    def _engine(self, bucket: int) -> CachedEngine:
        """Return the engine of a bucket: the cached one if it is current, else brought up to date or loaded."""
        cached, plans = _ENGINES.pop((self.run, bucket), None), self.plans[self.buckets.placement(bucket)]
        saved = self._header.get()
        if cached is not None and cached.version == ("" if saved is None else saved[0]):
            return cached
        if saved is None:
            return CachedEngine(ManyEngine(plans))
        *described, header = saved
        is_earlier = cached is not None and cached.version and cached.version in saved[1]
        if cached is None or not is_earlier or not cached.engine.follow(bytes(header), self._since(cached, header)):
            about = self._about.get()
            check_same("{}" if about is None else about[0], self._describe())
            cached = CachedEngine(ManyEngine(plans))
            cached.engine.load(bytes(header), ((key[0], bytes(value[0])) for key, value in self._chunks.iterator()))
        return CachedEngine(cached.engine, *described)

    def _describe(self) -> str:
        counts = [len(numbers) for numbers in self.buckets.numbers()]
        return describe_states(self.placements, counts)

    def _since(self, cached: CachedEngine, header: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks written since an engine was current, except those that have been dropped."""
        for number in range(cached.engine.next_chunk, read_head(bytes(header))["next_chunk"]):
            chunk = self._chunks.getValue((number,))
            if chunk is not None:
                yield number, bytes(chunk[0])

    def _write(self, cached: CachedEngine, watermark: int, expired: int | None) -> None:
        if not cached.version:
            self._about.update((self._describe(),))
        changes = cached.engine.changes()
        for number, chunk in changes.added.items():
            self._chunks.updateValue((number,), (chunk,))
        for number in changes.dropped:
            self._chunks.removeKey((number,))
        wake = cached.engine.wake()
        # Buckets whose rows are merged have the same timers for the same tick: see `merging`.
        earliest = watermark if self.merges else watermark + 1
        timer = None if wake is None else max(earliest, self.time.timer(wake))
        if timer != cached.timer:
            if cached.timer is not None and cached.timer != expired:  # Spark deletes the expired timer itself
                self._handle.deleteTimer(cached.timer)
            if timer is not None:
                self._handle.registerTimer(timer)
        cached.earlier = f"{cached.earlier} {cached.version}"[-VERSIONS * (VERSION_LENGTH + 1) :]
        cached.version, cached.timer = uuid4().hex[:VERSION_LENGTH], timer
        cached.rows, cached.bytes = cached.engine.rows(), cached.engine.size()
        self._header.update((cached.version, cached.earlier, timer, cached.rows, cached.bytes, changes.head))


class FrameBucketProcessor(BucketProcessor):
    """The same for `transformWithStateInPandas`, the only operator of PySpark 4.0 that keeps state in Python."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[Any]:  # noqa: N802, N803
        messages = (message for frame in rows for message in frame.itertuples(index=False))
        return map(_frame, super().handleInputRows(key, messages, timerValues))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Any]:
        return map(_frame, super().handleExpiredTimer(key, timerValues, expiredTimerInfo))


def _frame(row: Row) -> pd.DataFrame:
    import pandas as pd  # slow to import, and only needed for PySpark 4.0

    return pd.DataFrame([row.asDict()])


def _keep(key: tuple[str, int], cached: CachedEngine) -> None:
    """Cache an engine, and evict the least recently used ones if the cache is too large."""
    _ENGINES[key] = cached
    total = sum(each.bytes for each in _ENGINES.values())
    while total > CACHED_BYTES and len(_ENGINES) > 1:
        total -= _ENGINES.popitem(last=False)[1].bytes


_ZERO = {name.split()[0]: 0 for name in RESULTS.split(", ")} | {"query": None, "message": None}


def _row(**values: Any) -> Row:
    return Row(**{**_ZERO, **values})
