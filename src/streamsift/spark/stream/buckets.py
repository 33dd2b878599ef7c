"""Choose the number of hash buckets of a stream, and read in a task the number that Spark uses.

A bucket is a partition of Spark's state store. Spark reads the number when a stream starts for the first time, from a
setting of the session, and stores it in the checkpoint. `run` returns before that, so the setting must stay: it applies
to every stateful stream that the session starts afterward. Spark would otherwise use `spark.sql.shuffle.partitions`,
whose default of 200 makes a micro-batch take half a minute on two cores.

Contract: packer and processor use the number of the running stream, never the number of the session that starts it
again. So a restart finds each key in its old bucket, on a machine with other cores too (tests/spark/stream/
test_buckets.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streamsift.errors import QueryError, StreamsiftWarning, warn
from streamsift.spark.distribute import task_count

# Internal in Spark 4.3 and the only setting for this; other settings of the session do not depend on it.
STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
PER_CORE = 2
UNKNOWN_CORES = 8  # buckets if the session does not know its cores, as on Spark Connect


def check_buckets(buckets: Any) -> int | None:
    """Return `buckets=` as an integer, or None for the default; raise QueryError if it is invalid."""
    if buckets is None:
        return None
    if isinstance(buckets, bool) or not isinstance(buckets, Integral) or buckets < 1:
        raise QueryError(f"invalid value for buckets: {buckets!r}", hint="expected a number of buckets, 1 or more.")
    return int(buckets)


def default_buckets(spark: SparkSession) -> int:
    try:
        return PER_CORE * spark.sparkContext.defaultParallelism
    except PySparkException:  # Spark Connect
        return UNKNOWN_CORES


def has_setting(spark: SparkSession) -> bool:
    """Return True if this version of Spark has the setting for the number of state partitions."""
    return spark.conf.isModifiable(STATE_PARTITIONS)


def buckets_of(df: DataFrame) -> int:
    """Return the number of buckets of a stream with a new checkpoint, by default."""
    spark = df.sparkSession
    return default_buckets(spark) if has_setting(spark) else task_count(df)


def set_buckets(spark: SparkSession, buckets: Any) -> None:
    """Set the number of buckets of the streams that the session starts for the first time from now on."""
    given = check_buckets(buckets)
    wanted = default_buckets(spark) if given is None else given
    if has_setting(spark):
        spark.conf.set(STATE_PARTITIONS, str(wanted))
        return
    partitions = int(spark.conf.get(SHUFFLE_PARTITIONS) or 200)
    if partitions != wanted if given is not None else partitions > PER_CORE * wanted:
        warn(
            f"Spark {spark.version} has no setting for the number of buckets; it uses {SHUFFLE_PARTITIONS}, "
            f"which is {partitions}, not {wanted}\n"
            f'Hint: run spark.conf.set("{SHUFFLE_PARTITIONS}", {wanted}) before you start the stream.',
            StreamsiftWarning,
        )


@dataclass(frozen=True, slots=True)
class BucketCount:
    """The number of buckets of a stream, as its tasks see it."""

    is_keyed: bool  # without keys, there is one bucket
    otherwise: int  # stands in for the number of state partitions outside a task and if no setting has it

    def of_this_stream(self) -> int:
        """Return the number. Spark restores it from the checkpoint and passes it to tasks as a local property."""
        if not self.is_keyed:
            return 1
        task = TaskContext.get()
        if task is None:
            return self.otherwise
        number = task.getLocalProperty(STATE_PARTITIONS) or task.getLocalProperty(SHUFFLE_PARTITIONS)
        return self.otherwise if number is None else int(number)
