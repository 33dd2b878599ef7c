"""Run many queries on a streaming DataFrame: one pass over the stream for all of them, or a stream for each.

Spark runs each streaming DataFrame that is started on its own, so results that share a pass share one DataFrame:
messages of rows beside the name of their query, which foreachBatch splits again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamsift.physical.share import SharingPlan
from streamsift.spark.columns import result_schema
from streamsift.spark.stream import messages_of, run_combined, run_stream, unpack

ForEach = Callable[[dict[str, DataFrame], int], Any]


class SharedStream(dict[str, DataFrame]):
    """A streaming DataFrame for each query by its name; and `together`, one streaming DataFrame for all of them.

    `together` has columns `query` and `message`. `shared.together.writeStream.foreachBatch(shared.each(write))` calls
    `write(results, batch_id)` for every micro-batch, with a batch DataFrame for each query.
    """

    def __init__(self, alone: Mapping[str, DataFrame], together: DataFrame, schemas: Mapping[str, StructType]) -> None:
        super().__init__(alone)
        self.together = together
        self._schemas = dict(schemas)

    def each(self, write: ForEach) -> Callable[[DataFrame, int], None]:
        """Return what foreachBatch takes on `together`: it splits a micro-batch by query, for `write`."""
        schemas = self._schemas  # not self: on Spark Connect this function travels to the server

        def split(batch: DataFrame, batch_id: int) -> None:
            batch.persist()  # one pass over the state, whatever `write` does with the parts
            try:
                write({n: messages_of(batch, n).mapInArrow(unpack, schema) for n, schema in schemas.items()}, batch_id)
            finally:
                batch.unpersist()

        return split


def run_stream_many(df: DataFrame, plan: SharingPlan, *, lateness: Any, bad_rows: str) -> SharedStream:
    options = {"lateness": lateness, "bad_rows": bad_rows}
    alone = {name: run_stream(df, one, **options) for name, one in plan.plans.items()}
    schemas = {name: result_schema(df.schema, one.query) for name, one in plan.plans.items()}
    return SharedStream(alone, run_combined(df, plan.plans, **options), schemas)
