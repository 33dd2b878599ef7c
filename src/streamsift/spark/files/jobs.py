"""A running session in, how many tasks are done and how many there are out."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession


def task_counter(spark: SparkSession) -> Callable[[], tuple[int, int]]:
    """Counts the tasks of the stages that are active now. Classic sessions only: the command line starts such a one."""
    tracker = spark.sparkContext.statusTracker()

    def count() -> tuple[int, int]:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)

    return count
