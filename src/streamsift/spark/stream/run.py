"""Run plans on a streaming DataFrame, with state per hash bucket of keys.

    events ─ pack ─ watermark ─ shuffle by bucket ─ BucketProcessor ─ observe ─ inline or unpack ─ rows

The processor of one query emits lists of rows, which the JVM unnests (`inline`). That of several queries, and of rows
with types that not every PySpark version converts alike, emits messages, which another Python stage unpacks. The
watermark is set on messages, not on rows: it needs only the maximum time of a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.types import StructType

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
    is_plain,
    lateness_of,
    query_of_all,
    result_schema,
    to_arrow,
)
from streamsift.spark.distribute import (
    Distribution,
    can_matter_to,
    key_hash,
    needs_merge,
    shuffle_keys,
    task_count,
    why_one_task,
)
from streamsift.spark.stream.buckets import BucketCount, buckets_of, set_buckets
from streamsift.spark.stream.metrics import METRICS
from streamsift.spark.stream.packing import PACKED, Packer, unpack
from streamsift.spark.stream.stateful import RESULTS, BucketProcessor, FrameBucketProcessor, results_with
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
    options = {"lateness": lateness, "bad_rows": bad_rows, "buckets": buckets}
    schema = result_schema(df.schema, plan.query)
    if is_plain(schema) and hasattr(df.groupBy(), "transformWithState"):
        # Another Python stage would cost more than the rows of a small micro-batch.
        return _run(df, {"": plan}, row=schema, **options).select(F.inline("rows"))
    results = run_combined(df, {"": plan}, **options)
    return results.select("message").mapInArrow(for_workers(unpack), schema)


def run_combined(df: DataFrame, plans: Mapping[str, Plan], *, lateness: Any, bad_rows: str, buckets: Any) -> DataFrame:
    """Run several plans in one pass over a stream. Return messages of result rows, with the names of queries."""
    results = _run(df, plans, lateness=lateness, bad_rows=bad_rows, buckets=buckets, row=None)
    return results.select("query", "message")


def _run(
    df: DataFrame, plans: Mapping[str, Plan], *, lateness: Any, bad_rows: str, buckets: Any, row: StructType | None
) -> DataFrame:
    """Return messages of result rows, or lists of rows of one query if their schema is given."""
    for plan in plans.values():
        stream_plan(plan)  # raises UnsupportedQuery for plans that cannot run on a stream
    query = query_of_all(plans)
    has_watermark = _check_watermark(df, query, lateness)
    time = event_time(query, lateness_of(lateness, query.binding))
    use_rocksdb(df.sparkSession)
    set_buckets(df.sparkSession, buckets)
    keys = common_keys(plans)
    # Spark evaluates the condition, and the packer applies it: rows that no step can bind also advance the watermark.
    condition = can_matter_to(plans.values())
    matters = F.lit(True) if condition is None else F.coalesce(condition, F.lit(False))
    columns = [column(name).alias(f"c{i}") for i, name in enumerate(query.schema.names)]
    hashed = key_hash(keys, query, below=None)
    rows = df.select(*columns, matters.alias("matters"), hashed.alias("hash"))
    # The number of buckets is not known before the stream starts.
    count = BucketCount(bool(keys), task_count(df))
    messages = rows.mapInArrow(for_workers(Packer(query, time, count)), PACKED)
    if not has_watermark:
        messages = messages.withWatermark("seen", f"{time.delay_milliseconds} milliseconds")
    # Without `seen`: Spark would drop late messages before their events are counted.
    by_bucket = messages.select("bucket", "bad", "message").groupBy("bucket")
    if hasattr(by_bucket, "transformWithState"):
        row_type = None if row is None else to_arrow(row)
        schema = RESULTS if row is None else results_with(row)
        processor = BucketProcessor(plans, keys, time, count, bad_rows, row_type)
        results = by_bucket.transformWithState(processor, schema, "append", "eventTime")
    else:  # PySpark 4.0
        processor = FrameBucketProcessor(plans, keys, time, count, bad_rows)
        results = by_bucket.transformWithStateInPandas(processor, RESULTS, "append", "eventTime")
    return _observed(results)


def stream_keys(plan: Plan) -> tuple[str, ...]:
    """Return the columns that events are distributed by; none for a ranking that would need a merge."""
    keys = shuffle_keys(plan)
    return () if needs_merge(plan, Distribution(keys)) else keys


def common_keys(plans: Mapping[str, Plan]) -> tuple[str, ...]:
    """Return the columns by which the events of all plans can be distributed."""
    first, *others = (stream_keys(plan) for plan in plans.values())
    return tuple(key for key in first if all(key in keys for keys in others))


def _observed(results: DataFrame) -> DataFrame:
    names = [name for name in results.columns if name not in ("query", "message", "rows", "all_buckets")]
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
    if keys:
        where = f"{buckets_of(df)} hash buckets by {', '.join(keys)}; one task and one Python call per bucket"
    elif isinstance(plan, RankPlan) and (merged := shuffle_keys(plan)):
        where = f"one bucket: a stream cannot merge rankings of different {', '.join(merged)}"
    else:
        where = f"one bucket: {why_one_task(plan)}"
    lines = [f"Spark: stateful stream in {where}", *([] if keys else [ONE_BUCKET])]
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
    keys = common_keys(plan.plans)
    queries = f"Spark: {len(plan.plans)} queries share one pass and one state of events"
    if keys:
        return [f"{queries}, in {buckets_of(df)} hash buckets by {', '.join(keys)}", EACH_ALONE]
    return [
        f"{queries}, in one bucket: the queries have no key in common",
        EACH_ALONE,
        ONE_BUCKET,
        *(f"{name}, run alone: by {', '.join(stream_keys(one)) or 'no key'}" for name, one in plan.plans.items()),
    ]
