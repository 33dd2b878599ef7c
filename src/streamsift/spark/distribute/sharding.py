"""Events in, the same events dealt to tasks out: each once at every stop that it matters to, at home at one of them.

Stops are numbered: by a hash of a key, by slices of time, by both, by tasks. An event goes to a row of them: to that of
its key; to two where a slice that needs it borders on its own; to all where every task needs it. Tasks stand on a
circle, and stops go round it. What is at several stops may meet again: Spark puts small tasks into one partition, and a
table has the events of many stops (`spark/batch/spill.py`). There the first copy of an event is kept.

Contract: a stop is in one table; a table has each of its events once, and an event is at home in one table, however
stops are put together (tests/spark/distribute/test_slices.py, test_partial_keys.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.arrays.grouping import distinct

STOP = "$streamsift_stop"  # a column beside the events: where this copy is; null for rows that cannot be used
WAY = "$streamsift_way"  # one more where events may be copied: from the first stop to this one, and from there to home
_START, _HOME, _LAST = "$streamsift_start", "$streamsift_home", "$streamsift_last"
_BITS = 31  # of each of the two distances
NOWHERE = np.iinfo(np.int64).min  # the home of a row that cannot be used


@dataclass(frozen=True, slots=True)
class Arc:
    """Where an event goes: the stops from `start` to `last`, one of them its home; None: to `start` alone."""

    start: SparkColumn
    home: SparkColumn
    last: SparkColumn | None = None


def dealt(events: DataFrame, arc: Arc, tasks: int, good: SparkColumn) -> DataFrame:
    """The events in partitions, with STOP, and if they may be copied WAY, beside them."""
    if arc.last is None:
        at_stops = events.withColumn(STOP, F.when(good, arc.start.cast("bigint")))
    else:
        # Not `explode`: Spark would make the stops once more in a filter, to leave out rows that have none.
        ends = {_START: arc.start, _HOME: arc.home, _LAST: arc.last}
        at_stops = (
            events.withColumns({name: F.when(good, number.cast("bigint")) for name, number in ends.items()})
            .withColumn(STOP, F.explode_outer(F.when(good, F.sequence(_START, _LAST))))
            .withColumn(WAY, (F.col(_HOME) - F.col(_START)) * F.lit(1 << _BITS) + (F.col(STOP) - F.col(_START)))
        )
    # Spark hashes what it partitions by: these numbers are hashed to one partition each.
    names = F.array(*(F.lit(name) for name in bucket_numbers(tasks)))
    task = F.pmod(F.col(STOP), F.lit(tasks)).cast("int") + 1
    return at_stops.repartition(F.element_at(names, task)).drop(_START, _HOME, _LAST)


def way_of(home: Int64, start: Int64, stop: Int64) -> Int64:
    """The column WAY, as the JVM makes it."""
    return (home - start << _BITS) + (stop - start)


@dataclass(frozen=True, slots=True)
class Part:
    """The events of a table, each once, which of them are at home there, and its stops, in ascending order."""

    events: pa.Table
    own: Bool  # [rows]
    home: Int64  # [rows], a stop here or elsewhere
    stops: Int64

    def take(self, rows: Int64) -> Part:
        return Part(self.events.take(pa.array(rows)), self.own[rows], self.home[rows], self.stops)


def part_of(table: pa.Table) -> Part:
    """The part in a table, whose last columns are STOP and WAY."""
    arrived, ways = (table.column(table.num_columns - nth).combine_chunks() for nth in (2, 1))
    stop, way = (each.fill_null(0).to_numpy(zero_copy_only=False) for each in (arrived, ways))
    events = table.select(range(table.num_columns - 2))
    stops = distinct(arrived.drop_null().to_numpy(zero_copy_only=False))
    own = np.ones(stop.size, np.bool_)
    # How far its stop is from the first one of an event, and home from there. Most go to one stop only: both are 0.
    passed, home = way & ((1 << _BITS) - 1), way >> _BITS
    away = np.flatnonzero(passed != home)
    at_home = stop.copy()
    at_home[away] += home[away] - passed[away]
    own[away] = is_in(at_home[away], stops)
    if arrived.null_count:
        at_home[arrived.is_null().to_numpy(zero_copy_only=False)] = NOWHERE
    # Is the table at a stop that comes before this one? Then it has the event already.
    later = np.flatnonzero(passed)
    again = later[stops[np.searchsorted(stops, stop[later] - passed[later])] < stop[later]]
    if not again.size:
        return Part(events, own, at_home, stops)
    kept = np.ones(stop.size, np.bool_)
    kept[again] = False
    return Part(events.filter(pa.array(kept)), own[kept], at_home[kept], stops)


def is_in(numbers: Int64, ascending: Int64) -> Bool:
    """Which of these numbers are among those."""
    near = np.searchsorted(ascending, numbers)
    found: Bool = ascending[np.minimum(near, ascending.size - 1)] == numbers
    return found


def bucket_numbers(count: int) -> tuple[int, ...]:
    """Names for buckets such that Spark's hash partitioning gives each partition exactly one of `count` buckets."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < count:
        found.setdefault(_spark_hash(candidate) % count, candidate)
        candidate += 1
    return tuple(found[partition] for partition in range(count))


def _spark_hash(value: int, seed: int = 42) -> int:
    """Murmur3 of a 32-bit integer, as Spark partitions by it."""
    word = 2**32 - 1

    def turned(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & word

    mixed = turned(value * 0xCC9E2D51 & word, 15) * 0x1B873593 & word
    hashed = (turned(seed ^ mixed, 13) * 5 + 0xE6546B64) & word
    hashed ^= 4  # the length in bytes
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashed = (hashed ^ (hashed >> shift)) * factor & word
    return hashed - 2**32 if hashed >= 2**31 else hashed
