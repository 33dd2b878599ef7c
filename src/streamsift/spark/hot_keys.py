"""Events with keys in, the same events out with a mark on those whose key has far more of them than others.

One row in 64 is counted, by a scan of its own in the same job. Which keys are marked does not change a result, only
how evenly tasks are loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

HOT = "$streamsift_hot"  # a column beside the events: true, or null
SAMPLED = 64  # one row in so many is counted
FEWEST = 256  # rows of a key that must be counted: with fewer events a key is no burden to a task
SHARE_OF_A_TASK = 0.5  # of the events that a task has on average: with more, its key is hot
_KEY, _ROWS, _ALL = "$streamsift_key", "$streamsift_rows", "$streamsift_all"


def with_hot_keys(events: DataFrame, seen: DataFrame, keys: Sequence[SparkColumn], tasks: int) -> DataFrame:
    """`events` with HOT; `seen` are the same events, read once more."""
    key = F.xxhash64(*keys)
    counted = seen.where(F.rand(seed=1) < 1 / SAMPLED).groupBy(key.alias(_KEY)).agg(F.count(F.lit(1)).alias(_ROWS))
    total = counted.withColumn(_ALL, F.sum(_ROWS).over(Window.partitionBy(F.lit(0))))
    is_hot = (F.col(_ROWS) >= FEWEST) & (F.col(_ROWS) > F.col(_ALL) * SHARE_OF_A_TASK / tasks)
    hot = total.where(is_hot).select(_KEY, F.lit(True).alias(HOT))
    return events.withColumn(_KEY, key).join(F.broadcast(hot), on=_KEY, how="left").drop(_KEY)
