"""Events with keys in, the same events out with a mark on those whose key has far more of them than others.

One row in 64 is counted, by a scan of its own in the same job, and only the most frequent keys: no exchange has more
than a row for each task. Which keys are marked does not change a result, only how evenly tasks are loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

HOT = "$streamsift_hot"  # a column beside the events: true, or null
SAMPLED = 64  # one row in so many is counted
FEWEST = 256  # rows of a key that must be counted: with fewer events a key is no burden to a task
SHARE_OF_A_TASK = 0.5  # of the events that a task has on average: with more, its key is hot
MOST_OF_A_TASK = 2  # keys that can have such a share, for each task
TRACKED_OF_A_TASK, MOST_TRACKED = 64, 1_000_000  # keys whose counts are kept: the more, the smaller is their error
_KEY, _ALL, _TOP = "$streamsift_key", "$streamsift_all", "$streamsift_top"


def with_hot_keys(events: DataFrame, seen: DataFrame, keys: Sequence[SparkColumn], tasks: int) -> DataFrame:
    """`events` with HOT; `seen` are the same events, read once more."""
    key = F.xxhash64(*keys)
    most, tracked = MOST_OF_A_TASK * tasks, min(TRACKED_OF_A_TASK * tasks, MOST_TRACKED)
    top = F.call_function("approx_top_k", key, F.lit(min(most, tracked)), F.lit(tracked))
    counted = seen.where(F.rand(seed=1) < 1 / SAMPLED).agg(top.alias(_TOP), F.count(F.lit(1)).alias(_ALL))
    found = counted.select(F.inline(_TOP), _ALL)
    is_hot = (F.col("count") >= FEWEST) & (F.col("count") > F.col(_ALL) * SHARE_OF_A_TASK / tasks)
    hot = found.where(is_hot).select(F.col("item").alias(_KEY), F.lit(True).alias(HOT))
    return events.withColumn(_KEY, key).join(F.broadcast(hot), on=_KEY, how="left").drop(_KEY)
