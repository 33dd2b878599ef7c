"""Run plans on a streaming DataFrame, with state per hash bucket of keys.

    events ─ pack ─ watermark ─ shuffle by bucket ─ BucketProcessor ─ observe ─ unpack ─ rows

The watermark is set on messages, not on rows: it needs only the maximum time of a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.errors import QueryError
from streamsift.logical.bound import BoundQuery
from streamsift.physical import Plan
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
from streamsift.spark.distribute import can_matter_to, key_hash, task_count
from streamsift.spark.stream.buckets import BucketCount, buckets_of, set_buckets
from streamsift.spark.stream.deferred import deferred
from streamsift.spark.stream.merging import merged
from streamsift.spark.stream.metrics import METRICS
from streamsift.spark.stream.packing import PACKED, Packer, unpack
from streamsift.spark.stream.placing import (
    PlacedBuckets,
    describe_merge,
    is_merged,
    stream_keys,
    stream_placements,
    why_one_bucket,
)
from streamsift.spark.stream.stateful import RESULTS, BucketProcessor, FrameBucketProcessor
from streamsift.spark.workers import for_workers

WATERMARK = "spark.watermarkDelayMs"  # key in the column's metadata under which Spark stores withWatermark
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

# Lines of explain.
ONE_BUCKET = "cost: one task processes every event and holds the whole state, so one core is the limit"
EACH_ALONE = "aggregates: computed per query; common prefixes of queries are shared only in batch"
STORE = "store: RocksDB; a micro-batch writes its new events and removes expired ones"


def run_stream(df: DataFrame, plan: Plan, *, lateness: Any, bad_rows: str, buckets: Any) -> DataFrame:
    """Run a plan on a stream. A row is appended once the watermark has made it final."""
    results = run_combined(df, {"": plan}, lateness=lateness, bad_rows=bad_rows, buckets=buckets)
    return results.select("message").mapInArrow(for_workers(unpack), result_schema(df.schema, plan.query))


def run_combined(df: DataFrame, plans: Mapping[str, Plan], *, lateness: Any, bad_rows: str, buckets: Any) -> DataFrame:
    """Run several plans in one pass over a stream. Return messages of result rows, with the names of queries."""
    for plan in plans.values():
        stream_plan(plan)  # raises UnsupportedQuery for plans that cannot run on a stream
    query = query_of_all(plans)
    has_watermark = _check_watermark(df, query, lateness)
    time = event_time(query, lateness_of(lateness, query.binding))
    use_rocksdb(df.sparkSession)
    set_buckets(df.sparkSession, buckets)
    placements = stream_placements(plans)
    columns = [column(name).alias(f"c{i}") for i, name in enumerate(query.schema.names)]
    for place, placement in enumerate(placements):
        # Spark evaluates the condition, and the packer applies it: all rows advance the watermark.
        condition = can_matter_to(placement.plans.values())
        matters = F.lit(True) if condition is None else F.coalesce(condition, F.lit(False))
        hashed = key_hash(placement.keys, query, below=None)
        columns += [matters.alias(f"matters{place}"), hashed.alias(f"hash{place}")]
    # The number of buckets is not known before the stream starts.
    count = PlacedBuckets(tuple(BucketCount(bool(each.keys), task_count(df)) for each in placements))
    messages = df.select(*columns).mapInArrow(for_workers(Packer(query, time, count)), PACKED)
    if not has_watermark:
        messages = messages.withWatermark("seen", f"{time.delay_milliseconds} milliseconds")
    # Without `seen`: Spark would drop late messages before their events are counted.
    by_bucket = messages.select("bucket", "bad", "message").groupBy("bucket")
    if hasattr(by_bucket, "transformWithState"):
        processor = BucketProcessor(placements, time, count, bad_rows)
        results = by_bucket.transformWithState(deferred(processor), RESULTS, "append", "eventTime")
    else:  # PySpark 4.0
        processor = FrameBucketProcessor(placements, time, count, bad_rows)
        results = by_bucket.transformWithStateInPandas(deferred(processor), RESULTS, "append", "eventTime")
    to_merge = {name: plan for placement in placements for name, plan in placement.merged.items()}
    results = merged(results, to_merge, len(to_merge) == len(plans), buckets_of(df), RESULTS)
    return _observed(results).select("query", "message")


def _observed(results: DataFrame) -> DataFrame:
    names = [name for name in results.columns if name not in ("query", "message", "all_buckets")]
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names]
    # Without data and timers, no bucket reports how many there are.
    return results.observe(METRICS, *sums, F.coalesce(F.max("all_buckets"), F.lit(-1)).alias("all_buckets"))


def _check_watermark(df: DataFrame, query: BoundQuery, lateness: Any) -> bool:
    """Return True if the caller has set a watermark. It must be on the time column."""
    marked = marked_columns(df)
    if not marked:
        return False
    if query.binding.time not in marked:
        raise QueryError(
            f"the watermark is on `{marked[0]}`, but the time column is `{query.binding.time}`",
            hint=f'use time="{marked[0]}", or replace withWatermark with lateness=….',
        )
    if lateness is not None:
        raise QueryError(
            f"lateness={lateness!r} cannot be combined with withWatermark",
            hint="remove one of them: both set how late events may be.",
        )
    return True


def marked_columns(df: DataFrame) -> list[str]:
    """Return the columns on which the caller has set a watermark."""
    return [field.name for field in df.schema.fields if WATERMARK in (field.metadata or {})]


def use_rocksdb(spark: SparkSession) -> None:
    """Make a session keep state in RocksDB, which transformWithState requires and which is not Spark's default."""
    if "RocksDB" not in (spark.conf.get(PROVIDER) or ""):
        spark.conf.set(PROVIDER, ROCKSDB)
        # A micro-batch uploads its changes instead of whole files.
        spark.conf.set(CHANGELOG, "true")


# --- explain ---------------------------------------------------------------------------------------------------------


def stream_placement(df: DataFrame, plan: Plan) -> list[str]:
    """Return the lines of explain on buckets, emission, state and watermark."""
    keys, time = stream_keys(plan), plan.query.binding.time
    where = f"one bucket: {why_one_bucket(plan)}"
    if keys:
        where = f"{buckets_of(df)} hash buckets by {', '.join(keys)}; one task and one Python call per bucket"
    lines = [f"Spark: stateful stream in {where}", *([] if keys else [ONE_BUCKET])]
    lines += [describe_merge(plan)] if is_merged(plan, keys) else []
    lines += [*describe_stream(plan), STORE]
    maximum = f"maximum `{time}` of earlier micro-batches minus `lateness`"
    watermark = f"set with withWatermark on `{time}`" if time in marked_columns(df) else maximum
    lines.append(f"watermark: {watermark}")
    if plan.query.binding.time_kind not in CALENDAR:
        lines.append(
            f"progress: Spark's progress shows the watermark as a code for a number in `{time}`, not as a time"
        )
    return [*lines, describe_filter(plan)]


def many_placement(df: DataFrame, plan: SharingPlan) -> list[str]:
    """Return the lines of explain on several queries over one stream."""
    for one in plan.plans.values():
        stream_plan(one)  # raises UnsupportedQuery for plans that cannot run on a stream
    placements = stream_placements(plan.plans)
    copies = "one copy of the events" if len(placements) == 1 else "a copy of the events for each key"
    lines = [f"Spark: {len(plan.plans)} queries share one pass; {copies}"]
    for placement in placements:
        names = ", ".join(placement.plans)
        if placement.keys:
            lines.append(f"{buckets_of(df)} hash buckets by {', '.join(placement.keys)}: {names}")
            lines += [f"{name}: {describe_merge(one)}" for name, one in placement.merged.items()]
        else:
            lines += [f"one bucket: {names}", ONE_BUCKET]
            lines += [f"{name}: {why_one_bucket(one)}" for name, one in placement.plans.items() if not stream_keys(one)]
    if len(placements) > 1:
        lines.append(f"copies: up to {len(placements)} per event, one for each of these placements that can use it")
    return [*lines, EACH_ALONE]
