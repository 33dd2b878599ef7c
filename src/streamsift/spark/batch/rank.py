"""Make result rows in tasks, and merge the rankings of tasks into one, in the JVM: nothing is collected.

Contract: a candidate is among the k best of its own partition, so the k best of all are among the candidates
(tests/spark/batch/test_ranking_on_spark.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.types import StructType

from streamsift.logical.bound import BoundQuery
from streamsift.physical import Plan
from streamsift.runtime.rank import tie_names
from streamsift.spark.columns import column, result_schema
from streamsift.spark.distribute import Distribution, needs_merge

Batches = Iterator[pa.RecordBatch]


def result_rows(
    df: DataFrame, make: Callable[[Batches], Batches], events: StructType, plan: Plan, distribution: Distribution
) -> DataFrame:
    """Return the rows that `make` makes of batches: the result, or candidates that are merged to it."""
    schema = result_schema(events, plan.query)
    if not needs_merge(plan, distribution):
        return df.mapInArrow(make, schema)
    candidates = df.mapInArrow(make, result_schema(events, plan.query, ties=True))
    return _merged(candidates, plan.query, schema)


def _merged(candidates: DataFrame, query: BoundQuery, schema: StructType) -> DataFrame:
    """Return the k best per tick and group of all candidates, with their ranks."""
    assert query.ranking is not None
    limit = query.ranking.limit
    # `+ 0.0` makes -0.0 and 0.0 one value, as they are to the engine. An absent event comes first: nulls do.
    best_first = [(column("score") + F.lit(0.0)).desc(), *(column(name).asc_nulls_first() for name in tie_names(query))]
    together = [column(name) for name in (*(["window_end"] if query.update else []), *query.group_names)]
    if not together:
        candidates = candidates.orderBy(*best_first).limit(limit)
    window = Window.partitionBy(*(together or [F.lit(0)])).orderBy(*best_first)
    ranked = candidates.withColumn("rank", F.row_number().over(window).cast("bigint"))
    return ranked.where(column("rank") <= limit).select(*(column(field.name) for field in schema))
