"""Run plans on a streaming DataFrame, with state by hash buckets of keys, and say how for explain.

    events ─ pack ─ watermark ─ shuffle by bucket ─ BucketProcessor ─ observe ─ unpack ─ rows

The watermark stands on the messages, not on the rows: the greatest time in a message is all that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.errors import QueryError
from streamsift.logical.bound import BoundQuery
from streamsift.physical import Plan, RankPlan
from streamsift.physical.explain import describe_stream
from streamsift.physical.share import SharingPlan
from streamsift.physical.stream import stream_plan
from streamsift.spark.columns import (
    CALENDAR,
    column,
    describe_filter,
    event_time,
    lateness_of,
    query_of_all,
    result_schema,
)
from streamsift.spark.distribute import (
    Distribution,
    bucket_numbers,
    can_matter_to,
    key_hash,
    needs_merge,
    shuffle_keys,
    task_count,
    why_one_task,
)
from streamsift.spark.stream.identity import describe_state, to_text
from streamsift.spark.stream.metrics import METRICS
from streamsift.spark.stream.packing import PACKED, Packer, unpack
from streamsift.spark.stream.stateful import RESULTS, BucketProcessor

WATERMARK = "spark.watermarkDelayMs"  # where Spark notes a caller's withWatermark, in the column's metadata
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

# Lines of explain.
ONE_BUCKET = "cost: every event goes through one task, so one core is the limit, and its memory holds the whole state"
EACH_ALONE = "each is counted on its own: prefixes that queries have in common are shared in batch only"
WRITTEN = "it is kept in RocksDB; a micro-batch writes its own events and drops what has expired"


def run_stream(df: DataFrame, plan: Plan, *, lateness: Any, bad_rows: str) -> DataFrame:
    """Return the result of a plan on a stream: rows are appended when the watermark has made them final."""
    results = run_combined(df, {"": plan}, lateness=lateness, bad_rows=bad_rows)
    return results.select("message").mapInArrow(unpack, result_schema(df.schema, plan.query))


def run_combined(df: DataFrame, plans: Mapping[str, Plan], *, lateness: Any, bad_rows: str) -> DataFrame:
    """Return the results of plans that see the same events once: messages of rows, beside the names of queries."""
    for plan in plans.values():
        stream_plan(plan)  # raises what a stream cannot have
    query = query_of_all(plans)
    has_watermark = _check_watermark(df, query, lateness)
    time = event_time(query, lateness_of(lateness, query.binding))
    use_rocksdb(df.sparkSession)
    keys = common_keys(plans)
    buckets = bucket_count(df, keys)
    # Evaluated by Spark, applied by the packer: a row that no step can bind shows the time, too.
    condition = can_matter_to(plans.values())
    matters = F.lit(True) if condition is None else F.coalesce(condition, F.lit(False))
    columns = [column(name).alias(f"c{i}") for i, name in enumerate(query.schema.names)]
    bucket = key_hash(keys, query, below=buckets).cast("int")
    rows = df.select(*columns, matters.alias("matters"), bucket.alias("bucket"))
    messages = rows.mapInArrow(Packer(query, time, bucket_numbers(buckets)), PACKED)
    if not has_watermark:
        messages = messages.withWatermark("seen", f"{time.delay_milliseconds} milliseconds")
    about = {
        f"{name}: {part}" if len(plans) > 1 else part: text
        for name, plan in plans.items()
        for part, text in describe_state(plan, keys, buckets).items()
    }
    # Without `seen`: Spark would drop messages that are late as a whole before anything counts their events.
    results = (
        messages.select("bucket", "bad", "message")
        .groupBy("bucket")
        .transformWithState(BucketProcessor(plans, time, to_text(about), bad_rows), RESULTS, "append", "eventTime")
    )
    return _observed(results, buckets).select("query", "message")


def stream_keys(plan: Plan) -> tuple[str, ...]:
    """Return the columns that events are distributed by; none for a ranking that a stream would have to merge."""
    keys = shuffle_keys(plan)
    return () if needs_merge(plan, Distribution(keys)) else keys


def common_keys(plans: Mapping[str, Plan]) -> tuple[str, ...]:
    """Return the columns that the events of every plan could be distributed by."""
    first, *others = (stream_keys(plan) for plan in plans.values())
    return tuple(key for key in first if all(key in keys for keys in others))


def bucket_count(df: DataFrame, keys: tuple[str, ...]) -> int:
    return task_count(df) if keys else 1


def _observed(results: DataFrame, buckets: int) -> DataFrame:
    names = [field.name for field in results.schema.fields if field.name not in ("query", "message")]
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names]
    return results.observe(METRICS, *sums, F.coalesce(F.max(F.lit(buckets)), F.lit(buckets)).alias("all_buckets"))


def _check_watermark(df: DataFrame, query: BoundQuery, lateness: Any) -> bool:
    """Return True if the caller has declared a watermark; it must be on the time column."""
    marked = marked_columns(df)
    if not marked:
        return False
    if query.binding.time not in marked:
        raise QueryError(
            f"the watermark is on `{marked[0]}`, but the time is `{query.binding.time}`",
            hint=f'bind time="{marked[0]}", or leave withWatermark out and say lateness=….',
        )
    if lateness is not None:
        raise QueryError(
            f"lateness={lateness!r} beside withWatermark",
            hint="the watermark says how late events may be: leave one out.",
        )
    return True


def marked_columns(df: DataFrame) -> list[str]:
    """Return the columns that the caller has declared a watermark on."""
    return [field.name for field in df.schema.fields if WATERMARK in (field.metadata or {})]


def use_rocksdb(spark: SparkSession) -> None:
    """Make a session keep state in RocksDB, as transformWithState needs; Spark's default is another store."""
    if "RocksDB" not in (spark.conf.get(PROVIDER) or ""):
        spark.conf.set(PROVIDER, ROCKSDB)
        # What a micro-batch changed is uploaded, not the files that it touched.
        spark.conf.set(CHANGELOG, "true")


# --- explain ---------------------------------------------------------------------------------------------------------


def stream_placement(df: DataFrame, plan: Plan) -> list[str]:
    """Say how events are distributed, what state there is, when rows are emitted, and what that costs."""
    keys, time = stream_keys(plan), plan.query.binding.time
    if keys:
        where = f"{bucket_count(df, keys)} buckets by {', '.join(keys)}: a task and a Python call per bucket"
    elif isinstance(plan, RankPlan) and (merged := shuffle_keys(plan)):
        where = f"one bucket: the best of all are ranked where all matches are, not by {', '.join(merged)}"
    else:
        where = f"one bucket: {why_one_task(plan)}"
    lines = [f"Spark: a stream with state, in {where}", *([] if keys else [ONE_BUCKET])]
    lines += [*describe_stream(plan), WRITTEN]
    greatest = f"the greatest `{time}` of earlier micro-batches, less `lateness`"
    watermark = f"the caller's, on `{time}`" if time in marked_columns(df) else greatest
    lines.append(f"watermark: {watermark}")
    if plan.query.binding.time_kind not in CALENDAR:
        lines.append(f"Spark shows a timestamp that stands for a number in `{time}`: it is a code, not a time")
    return [*lines, describe_filter(plan)]


def many_placement(df: DataFrame, plan: SharingPlan) -> list[str]:
    """Say how several queries run on one stream."""
    for one in plan.plans.values():
        stream_plan(one)  # raises what a stream cannot have
    keys = common_keys(plan.plans)
    queries = f"Spark: {len(plan.plans)} queries over one pass and one state of events"
    if keys:
        buckets = f"{bucket_count(df, keys)} buckets by {', '.join(keys)}"
        return [f"{queries}, in {buckets}, which all of them have", EACH_ALONE]
    return [
        f"{queries}, in one bucket: they have no key in common by which events could be spread",
        EACH_ALONE,
        ONE_BUCKET,
        *(f"{name}: alone, by {', '.join(stream_keys(one)) or 'no key'}" for name, one in plan.plans.items()),
    ]
