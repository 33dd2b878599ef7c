"""Run the demo's queries on a cluster with spark-submit, and compare the results with `run_local`.

Arguments: a file to wait for after the first query (spark-submit gives a program no input), the numbers of the queries,
the address for Spark Connect, and a program to run at the end. The last two are optional. Each query that agrees prints
one line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import streamsift as ss
from streamsift.command.demo import DATA, DEMO_QUERIES

ROWS, SEED = 20_000, 7


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import streamsift

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([streamsift.__file__] * batch.num_rows)], ["path"])


def main() -> None:
    builder = SparkSession.builder
    if len(sys.argv) > 3:
        builder = builder.remote(sys.argv[3])
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    (path,) = {row.path for row in spark.range(8).mapInArrow(where, "path STRING").collect()}
    print("workers import", path, flush=True)
    tables = {name: make(ROWS, SEED) for name, make in DATA.items()}
    for demo in (DEMO_QUERIES[int(number)] for number in sys.argv[2].split(",")):
        query, table = ss.query(demo.text), tables[demo.data]
        df = spark.createDataFrame(table).repartition(4)
        found = query.run(df, time="ts", type=demo.type, order="seq" if "seq" in table.column_names else None)
        expected = query.run_local(table, time="ts", type=demo.type)
        # Send the expected rows through Spark, so that both sides have the same Python values.
        here = sorted(map(str, spark.createDataFrame(expected).collect())) if expected.num_rows else []
        there = sorted(map(str, found.collect()))
        assert there == here, f"{demo.title}: {len(there)} rows on the cluster, {len(here)} here"
        print(f"agreed on {len(there)} rows: {demo.title}", flush=True)
        if demo is DEMO_QUERIES[0]:
            while not Path(sys.argv[1]).exists():
                time.sleep(0.1)
    for program in sys.argv[4:]:
        exec(compile(Path(program).read_text(encoding="utf-8"), program, "exec"), {"__name__": "documented"})
    spark.stop()


if __name__ == "__main__":
    main()
