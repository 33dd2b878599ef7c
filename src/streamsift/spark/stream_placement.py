"""A streaming DataFrame and a plan in, how its work and state are spread over Spark out, for explain."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamsift.logical.bound import TimeKind
from streamsift.physical import AggregatePlan, Plan, RankPlan
from streamsift.physical.streaming import check_stream, is_awaited
from streamsift.spark.batch import shuffle_keys, why_one_task
from streamsift.spark.filters import can_matter
from streamsift.spark.streaming import bucket_count, marked_columns, stream_keys


def stream_placement(df: DataFrame, plan: Plan) -> list[str]:
    """How a stream runs: where events meet, what state there is, when rows come out, and what that costs."""
    check_stream(plan)
    keys = stream_keys(plan)
    return [*_spread(df, plan, keys), *_state(plan), *_time(df, plan), _filter(plan)]


def _spread(df: DataFrame, plan: Plan, keys: tuple[str, ...]) -> list[str]:
    if keys:
        count = bucket_count(df, keys)
        return [
            f"Spark: a stream with state, in {count} buckets by {', '.join(keys)}: a task and a Python call per bucket"
        ]
    lost = shuffle_keys(plan)
    why = (
        f"the best of all are ranked where all matches are, not by {', '.join(lost)}"
        if lost and isinstance(plan, RankPlan)
        else why_one_task(plan)
    )
    return [
        f"Spark: a stream with state, in one bucket: {why}",
        "cost: every event goes through one task, so one core is the limit, and its memory holds the whole state",
    ]


def _state(plan: Plan) -> list[str]:
    match plan:
        case AggregatePlan():
            what = "what the aggregates need of past events"
        case RankPlan():
            what = "the events of the windows whose ticks are to come"
        case _:
            what = "the events that a match to come can still reach"
    return [f"state: {what}, in RocksDB; a micro-batch writes its own events and drops what has expired"]


def _time(df: DataFrame, plan: Plan) -> list[str]:
    binding = plan.query.binding
    if binding.time in marked_columns(df):
        lines = [f"watermark: the caller's, on `{binding.time}`"]
    else:
        lines = [f"watermark: the greatest `{binding.time}` of earlier micro-batches, less `lateness`"]
    if binding.time_kind not in (TimeKind.TIMESTAMP, TimeKind.DATE, TimeKind.TEXT):
        lines.append(f"Spark shows a timestamp that stands for a number in `{binding.time}`: it is a code, not a time")
    if plan.query.update is not None:
        lines.append("a tick's rows are released when the watermark has passed it")
    elif is_awaited(plan):
        lines.append("a match is released when the watermark has passed the end of its window")
    else:
        lines.append("a match is released when the watermark has passed its last event")
    return lines


def _filter(plan: Plan) -> str:
    if can_matter(plan) is None:
        return "before the shuffle: every row is kept"
    return "before the shuffle: only rows of the pattern's classes that pass their local predicates"
