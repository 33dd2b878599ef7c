"""Say how the work and state of a stream are distributed over Spark tasks, for explain."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamsift.logical.bound import TimeKind
from streamsift.physical import Plan, RankPlan
from streamsift.physical.explain import describe_stream
from streamsift.physical.share import SharingPlan
from streamsift.physical.stream import stream_plan
from streamsift.spark.columns import describe_filter
from streamsift.spark.distribute import shuffle_keys, why_one_task
from streamsift.spark.stream.run import bucket_count, common_keys, marked_columns, stream_keys

ONE_BUCKET = "cost: every event goes through one task, so one core is the limit, and its memory holds the whole state"

EACH_ALONE = "each is counted on its own: prefixes that queries have in common are shared in batch only"

WRITTEN = "it is kept in RocksDB; a micro-batch writes its own events and drops what has expired"


def stream_placement(df: DataFrame, plan: Plan) -> list[str]:
    """Say how events are distributed, what state there is, when rows are emitted, and what that costs."""
    return [
        *_buckets(df, plan, stream_keys(plan)),
        *describe_stream(plan),
        WRITTEN,
        *_time(df, plan),
        describe_filter(plan),
    ]


def many_placement(df: DataFrame, plan: SharingPlan) -> list[str]:
    """Say how several queries run on one stream."""
    for one in plan.plans.values():
        stream_plan(one)  # raises what a stream cannot have
    keys = common_keys(plan.plans)
    together = f"{len(plan.plans)} queries over one pass and one state of events"
    if keys:
        where = f"in {bucket_count(df, keys)} buckets by {', '.join(keys)}, which all of them have"
        return [f"Spark: {together}, {where}", EACH_ALONE]
    return [
        f"Spark: {together}, in one bucket: they have no key in common by which events could be spread",
        EACH_ALONE,
        ONE_BUCKET,
        *(f"{name}: alone, by {', '.join(stream_keys(one)) or 'no key'}" for name, one in plan.plans.items()),
    ]


def _buckets(df: DataFrame, plan: Plan, keys: tuple[str, ...]) -> list[str]:
    if keys:
        count = bucket_count(df, keys)
        return [
            f"Spark: a stream with state, in {count} buckets by {', '.join(keys)}: a task and a Python call per bucket"
        ]
    why, lost = why_one_task(plan), shuffle_keys(plan)
    if lost and isinstance(plan, RankPlan):
        why = f"the best of all are ranked where all matches are, not by {', '.join(lost)}"
    return [f"Spark: a stream with state, in one bucket: {why}", ONE_BUCKET]


def _time(df: DataFrame, plan: Plan) -> list[str]:
    binding = plan.query.binding
    if binding.time in marked_columns(df):
        lines = [f"watermark: the caller's, on `{binding.time}`"]
    else:
        lines = [f"watermark: the greatest `{binding.time}` of earlier micro-batches, less `lateness`"]
    if binding.time_kind not in (TimeKind.TIMESTAMP, TimeKind.DATE, TimeKind.TEXT):
        lines.append(f"Spark shows a timestamp that stands for a number in `{binding.time}`: it is a code, not a time")
    return lines
