"""A streaming DataFrame of events in, a streaming DataFrame of result rows out: one shuffle, state by buckets of keys.

    events ─ pack ─ watermark ─ shuffle by bucket ─ BucketProcessor ─ observe ─ unpack ─ rows

The watermark stands on the messages, not on the rows: the greatest time in a message is all that it needs.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.errors import QueryError
from streamsift.logical.bound import BoundQuery
from streamsift.physical import Plan, RankPlan
from streamsift.runtime.engine import engine_for
from streamsift.spark.batch import can_matter_with_keys, normal_key, shuffle_keys
from streamsift.spark.event_time import EventTime, event_time, lateness_of
from streamsift.spark.filters import column
from streamsift.spark.identity import describe_state, to_text
from streamsift.spark.packing import PACKED, Packer, bucket_numbers, unpack
from streamsift.spark.ranking import needs_merge
from streamsift.spark.schemas import result_schema
from streamsift.spark.stateful import RESULTS, BucketProcessor

METRICS = "streamsift"  # the name of the observed metrics in a query's progress
WATERMARK = "spark.watermarkDelayMs"  # where Spark notes a caller's withWatermark, in the column's metadata
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def run_stream(df: DataFrame, plan: Plan, *, lateness: Any, bad_rows: str) -> DataFrame:
    """The result rows of a plan on a stream, appended as the watermark passes what decides them."""
    query = plan.query
    engine_for(plan)  # what no engine can do on a stream is told now
    has_watermark = _check_watermark(df, query, lateness)
    time = event_time(query, lateness_of(lateness, query.binding))
    _use_rocksdb(df.sparkSession)
    keys = stream_keys(plan)
    buckets = bucket_count(df, keys)
    messages = _packed(df, plan, time, keys, buckets)
    if not has_watermark:
        messages = messages.withWatermark("seen", f"{time.delay_milliseconds} milliseconds")
    about = to_text(describe_state(plan, keys, buckets))
    processor = BucketProcessor(plan, time, about, bad_rows)
    # Without `seen`: Spark would drop messages that are late as a whole before anything counts their events.
    results = (
        messages.select("bucket", "bad", "message")
        .groupBy("bucket")
        .transformWithState(processor, RESULTS, "append", "eventTime")
    )
    return _observed(results).select("message").mapInArrow(unpack, result_schema(df, query))


def stream_keys(plan: Plan) -> tuple[str, ...]:
    """The columns that events are spread by; none where all must meet: a ranking cannot be merged on a stream."""
    keys = shuffle_keys(plan)
    return () if isinstance(plan, RankPlan) and needs_merge(plan, keys) else keys


def bucket_count(df: DataFrame, keys: tuple[str, ...]) -> int:
    return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1) if keys else 1


def _packed(df: DataFrame, plan: Plan, time: EventTime, keys: tuple[str, ...], buckets: int) -> DataFrame:
    query = plan.query
    condition = can_matter_with_keys(plan)
    # Evaluated by Spark, applied by the packer: also a row that no step can bind tells the time.
    matters = F.lit(True) if condition is None else F.coalesce(condition, F.lit(False))
    hashed = F.pmod(F.xxhash64(*(normal_key(key, query) for key in keys)), F.lit(buckets)) if keys else F.lit(0)
    columns = [column(name).alias(f"c{i}") for i, name in enumerate(query.schema.names)]
    rows = df.select(*columns, matters.alias("matters"), hashed.cast("int").alias("bucket"))
    return rows.mapInArrow(Packer(query, time, bucket_numbers(buckets)), PACKED)


def _observed(results: DataFrame) -> DataFrame:
    names = [field.name for field in results.schema.fields if field.name not in ("query", "message")]
    return results.observe(METRICS, *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names))


def _check_watermark(df: DataFrame, query: BoundQuery, lateness: Any) -> bool:
    """Whether the caller has declared a watermark; it must be on the time column."""
    marked = [field.name for field in df.schema.fields if WATERMARK in (field.metadata or {})]
    if not marked:
        return False
    if query.binding.time not in marked:
        raise QueryError(
            f"the watermark is on `{marked[0]}`, but the time is `{query.binding.time}`",
            hint=f'bind time="{marked[0]}", or leave withWatermark out and say lateness=….',
        )
    if lateness is not None:
        raise QueryError(
            f"lateness={lateness!r} beside withWatermark", hint="the watermark says how late events may be: leave one out."
        )
    return True


def _use_rocksdb(spark: SparkSession) -> None:
    """transformWithState keeps its state in RocksDB only; Spark's default for new queries is another store."""
    if "RocksDB" not in (spark.conf.get(PROVIDER) or ""):
        spark.conf.set(PROVIDER, ROCKSDB)
        # What a micro-batch changed is uploaded, not the files that it touched.
        spark.conf.set(CHANGELOG, "true")
