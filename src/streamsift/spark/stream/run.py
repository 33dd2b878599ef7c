"""A streaming DataFrame of events in, a streaming DataFrame of result rows out: one shuffle, state by buckets of keys.

    events ─ pack ─ watermark ─ shuffle by bucket ─ BucketProcessor ─ observe ─ unpack ─ rows

The watermark stands on the messages, not on the rows: the greatest time in a message is all that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.errors import QueryError
from streamsift.logical.bound import BoundQuery
from streamsift.physical import Plan, RankPlan
from streamsift.runtime.stream import ManyEngine
from streamsift.spark.batch import can_matter_with_keys, normal_key
from streamsift.spark.columns import EventTime, column, event_time, lateness_of, result_schema
from streamsift.spark.distribute import bucket_numbers, needs_merge, shuffle_keys
from streamsift.spark.stream.identity import describe_state, to_text
from streamsift.spark.stream.metrics import METRICS
from streamsift.spark.stream.packing import PACKED, Packer, unpack
from streamsift.spark.stream.stateful import RESULTS, BucketProcessor

WATERMARK = "spark.watermarkDelayMs"  # where Spark notes a caller's withWatermark, in the column's metadata
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def run_stream(df: DataFrame, plan: Plan, *, lateness: Any, bad_rows: str) -> DataFrame:
    """The result rows of a plan on a stream, appended as the watermark passes what decides them."""
    results = run_together(df, {"": plan}, lateness=lateness, bad_rows=bad_rows)
    return results.select("message").mapInArrow(unpack, result_schema(df.schema, plan.query))


def run_together(df: DataFrame, plans: Mapping[str, Plan], *, lateness: Any, bad_rows: str) -> DataFrame:
    """The results of plans that see the same events once: messages of rows, each beside the name of its query."""
    ManyEngine(plans)  # what a stream cannot have is told now
    query = seen_by_all(plans)
    has_watermark = _check_watermark(df, query, lateness)
    time = event_time(query, lateness_of(lateness, query.binding))
    use_rocksdb(df.sparkSession)
    keys = common_keys(plans)
    buckets = bucket_count(df, keys)
    messages = _packed(df, plans, query, time, keys, buckets)
    if not has_watermark:
        messages = messages.withWatermark("seen", f"{time.delay_milliseconds} milliseconds")
    about = to_text({name: text for each in plans for name, text in _described(each, plans, keys, buckets)})
    # Without `seen`: Spark would drop messages that are late as a whole before anything counts their events.
    results = (
        messages.select("bucket", "bad", "message")
        .groupBy("bucket")
        .transformWithState(BucketProcessor(plans, time, about, bad_rows), RESULTS, "append", "eventTime")
    )
    return _observed(results, buckets).select("query", "message")


def _described(name: str, plans: Mapping[str, Plan], keys: tuple[str, ...], buckets: int) -> Iterator[tuple[str, str]]:
    for part, text in describe_state(plans[name], keys, buckets).items():
        yield (f"{name}: {part}" if len(plans) > 1 else part), text


def seen_by_all(plans: Mapping[str, Plan]) -> BoundQuery:
    """A query with the columns of all: what becomes of a row's time is the same for each."""
    fields = {field.name: field for plan in plans.values() for field in plan.query.schema}
    return replace(next(iter(plans.values())).query, schema=pa.schema(fields.values()))


def stream_keys(plan: Plan) -> tuple[str, ...]:
    """The columns that events are spread by; none where all must meet: a ranking cannot be merged on a stream."""
    keys = shuffle_keys(plan)
    return () if isinstance(plan, RankPlan) and needs_merge(plan, keys) else keys


def common_keys(plans: Mapping[str, Plan]) -> tuple[str, ...]:
    """The columns that every plan could be spread by."""
    first, *others = (stream_keys(plan) for plan in plans.values())
    return tuple(key for key in first if all(key in keys for keys in others))


def bucket_count(df: DataFrame, keys: tuple[str, ...]) -> int:
    return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1) if keys else 1


def _packed(
    df: DataFrame, plans: Mapping[str, Plan], query: BoundQuery, time: EventTime, keys: tuple[str, ...], buckets: int
) -> DataFrame:
    conditions = [can_matter_with_keys(plan) for plan in plans.values()]
    known = [condition for condition in conditions if condition is not None]
    # Evaluated by Spark, applied by the packer: also a row that no step can bind tells the time.
    matters = F.coalesce(reduce(or_, known), F.lit(False)) if len(known) == len(conditions) else F.lit(True)
    hashed = F.pmod(F.xxhash64(*(normal_key(key, query) for key in keys)), F.lit(buckets)) if keys else F.lit(0)
    columns = [column(name).alias(f"c{i}") for i, name in enumerate(query.schema.names)]
    rows = df.select(*columns, matters.alias("matters"), hashed.cast("int").alias("bucket"))
    return rows.mapInArrow(Packer(query, time, bucket_numbers(buckets)), PACKED)


def _observed(results: DataFrame, buckets: int) -> DataFrame:
    names = [field.name for field in results.schema.fields if field.name not in ("query", "message")]
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names]
    return results.observe(METRICS, *sums, F.coalesce(F.max(F.lit(buckets)), F.lit(buckets)).alias("all_buckets"))


def _check_watermark(df: DataFrame, query: BoundQuery, lateness: Any) -> bool:
    """Whether the caller has declared a watermark; it must be on the time column."""
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
    """The columns that the caller has declared a watermark on."""
    return [field.name for field in df.schema.fields if WATERMARK in (field.metadata or {})]


def use_rocksdb(spark: SparkSession) -> None:
    """transformWithState keeps its state in RocksDB only; Spark's default for new queries is another store."""
    if "RocksDB" not in (spark.conf.get(PROVIDER) or ""):
        spark.conf.set(PROVIDER, ROCKSDB)
        # What a micro-batch changed is uploaded, not the files that it touched.
        spark.conf.set(CHANGELOG, "true")
