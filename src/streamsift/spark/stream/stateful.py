"""Messages of events and a watermark in, messages of decided rows out: the state of a query in Spark's state store.

The state of a bucket is a head and immutable chunks; a micro-batch writes the head and the chunks of its own events.
A Python worker keeps the engine of a bucket in memory beside the token of the state that it stands for. A token is
written with each state, beside those before it. An engine with an earlier token catches up, as another worker had the
bucket in between; one whose token the state does not know, after a failure or a retry, is thrown away and read again
(tests/spark/stream/test_stateful.py).

Contract: time passes first, then events come: an event is late exactly if it is before the watermark of the micro-batch
that brings it, whichever bucket it falls into and whenever that was used last
(tests/spark/stream/test_stateful.py, `test_what_is_late_does_not_depend_on_the_bucket`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from streamsift.logical.bound import Binding
from streamsift.physical import Plan
from streamsift.runtime.events.bad_rows import bad_rows_error
from streamsift.runtime.state import read_head
from streamsift.runtime.stream import ManyEngine
from streamsift.spark.columns import EventTime
from streamsift.spark.stream.identity import check_same
from streamsift.spark.stream.packing import bad_rows_in, message_of, table_of

RESULTS = (
    "query string, message binary, matches bigint, late bigint, bad_rows bigint, "
    "state_rows bigint, state_bytes bigint, state_rows_change bigint, state_bytes_change bigint, buckets bigint"
)
ROWS_PER_RESULT = 1 << 16
TOKEN_LENGTH, TOKENS = 16, 32  # a worker that missed more micro-batches than that reads the state anew
CACHED_BYTES = 1 << 30  # of engines that one Python worker keeps; more than that are read from the state again


# As types, not as text: a text would be parsed by the JVM for each task.
def _fields(**types: Any) -> StructType:
    return StructType([StructField(name, kind, True) for name, kind in types.items()])


HEAD = _fields(
    token=StringType(), earlier=StringType(), timer=LongType(), rows=LongType(), bytes=LongType(), head=BinaryType()
)
ABOUT = _fields(about=StringType())
CHUNK_NUMBER = _fields(number=LongType())
CHUNK = _fields(chunk=BinaryType())


@dataclass(slots=True)
class Held:
    """An engine, and what the state says beside it."""

    engine: ManyEngine
    token: str  # "": no state has been written yet
    earlier: str  # the tokens of the last states before it
    timer: int | None
    rows: int = 0
    bytes: int = 0


_ENGINES: OrderedDict[tuple[str, int], Held] = OrderedDict()  # of this worker, the one that was used last at the end


class BucketProcessor(StatefulProcessor):
    """The engine of each bucket of keys, called by Spark once per micro-batch with its messages, and by its timers."""

    def __init__(self, plans: Mapping[str, Plan], time: EventTime, about: str, bad_rows: str) -> None:
        self.plans, self.time, self.about, self.bad_rows = plans, time, about, bad_rows
        self.run = uuid4().hex

    @property
    def binding(self) -> Binding:
        return next(iter(self.plans.values())).query.binding

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._head = handle.getValueState("head", HEAD)
        self._about = handle.getValueState("about", ABOUT)
        self._chunks = handle.getMapState("chunks", CHUNK_NUMBER, CHUNK)

    def close(self) -> None:
        pass

    def handleInputRows(  # noqa: N802 (Spark's names)
        self,
        key: Any,
        rows: Iterator[Row],  # type: ignore[override]
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        events: list[bytes] = []
        bad: list[bytes] = []
        for row in rows:
            if row.message is not None:
                (bad if row.bad else events).append(row.message)
        dropped = 0
        if bad:
            found = bad_rows_in(bad)
            if self.bad_rows == "fail":
                raise bad_rows_error(found, self.binding)
            dropped = found.count
        yield from self._step(key[0], events, timerValues.getCurrentWatermarkInMs(), dropped, None)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        watermark = timerValues.getCurrentWatermarkInMs()
        yield from self._step(key[0], [], watermark, 0, expiredTimerInfo.getExpiryTimeInMs())

    # --- one bucket, one micro-batch ---
    def _step(
        self, bucket: int, messages: list[bytes], watermark: int, bad_rows: int, expired: int | None
    ) -> Iterator[Row]:
        held = self._held(bucket)
        engine, late = held.engine, held.engine.late
        passed = self.time.passed(watermark)
        decided = {} if passed is None else engine.advance(passed)
        for message in messages:
            engine.push(table_of(message))
        rows, size = engine.rows(), engine.size()
        change = rows - held.rows, size - held.bytes
        if held.token or rows or messages:
            self._write(held, watermark, expired)
        _keep((self.run, bucket), held)
        counts = {
            "late": engine.late - late,
            "bad_rows": bad_rows,
            "state_rows": rows,
            "state_bytes": size,
            "state_rows_change": change[0],
            "state_bytes_change": change[1],
            "buckets": 1,
        }
        yield _row(**counts)
        for name, rows_of_query in decided.items():
            yield from _results(name, rows_of_query)

    def _held(self, bucket: int) -> Held:
        """The engine of a bucket as the state has it: the one in memory if it is that, else read."""
        held = _ENGINES.pop((self.run, bucket), None)
        saved = self._head.get()
        if held is not None and held.token == ("" if saved is None else saved[0]):
            return held
        if saved is None:
            return Held(ManyEngine(self.plans), "", "", None)
        token, earlier, timer, rows, size, head = saved
        if (
            held is not None
            and held.token
            and held.token in earlier
            and held.engine.follow(bytes(head), self._since(held, head))
        ):
            return Held(held.engine, token, earlier, timer, rows, size)
        about = self._about.get()
        check_same("{}" if about is None else about[0], self.about)
        engine = ManyEngine(self.plans)
        engine.load(bytes(head), ((key[0], bytes(value[0])) for key, value in self._chunks.iterator()))
        return Held(engine, token, earlier, timer, rows, size)

    def _since(self, held: Held, head: bytes) -> Iterator[tuple[int, bytes]]:
        """The chunks that were written since an engine saw the state; some may have been dropped since then, too."""
        for number in range(held.engine.next_chunk, read_head(bytes(head))["next_chunk"]):
            chunk = self._chunks.getValue((number,))
            if chunk is not None:
                yield number, bytes(chunk[0])

    def _write(self, held: Held, watermark: int, expired: int | None) -> None:
        if not held.token:
            self._about.update((self.about,))
        changes = held.engine.changes()
        for number, chunk in changes.added.items():
            self._chunks.updateValue((number,), (chunk,))
        for number in changes.dropped:
            self._chunks.removeKey((number,))
        wake = held.engine.wake()
        timer = None if wake is None else max(watermark + 1, self.time.timer(wake))
        if timer != held.timer:
            if held.timer is not None and held.timer != expired:  # Spark deletes the one that has expired
                self._handle.deleteTimer(held.timer)
            if timer is not None:
                self._handle.registerTimer(timer)
        held.earlier = f"{held.earlier} {held.token}"[-TOKENS * (TOKEN_LENGTH + 1) :]
        held.token, held.timer = uuid4().hex[:TOKEN_LENGTH], timer
        held.rows, held.bytes = held.engine.rows(), held.engine.size()
        self._head.update((held.token, held.earlier, held.timer, held.rows, held.bytes, changes.head))


def _keep(key: tuple[str, int], held: Held) -> None:
    """Keeps an engine in memory, and lets go of those that were not used for longest where there are too many."""
    _ENGINES[key] = held
    total = sum(each.bytes for each in _ENGINES.values())
    while total > CACHED_BYTES and len(_ENGINES) > 1:
        total -= _ENGINES.popitem(last=False)[1].bytes


def _results(name: str, decided: pa.Table) -> Iterator[Row]:
    for start in range(0, decided.num_rows, ROWS_PER_RESULT):
        part = decided.slice(start, ROWS_PER_RESULT)
        yield _row(query=name, message=message_of(part), matches=part.num_rows)


_ZERO = {name.split()[0]: 0 for name in RESULTS.split(", ")} | {"query": None, "message": None}


def _row(**values: Any) -> Row:
    return Row(**{**_ZERO, **values})
