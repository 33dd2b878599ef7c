"""Run a workload on Spark: formulations in Spark SQL, and Streamsift on the same Parquet file.

Both write the same columns to Spark's noop sink, on a local master with as many threads as allowed cores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss
from benchmarks.engines import sql
from benchmarks.engines.question import Question
from benchmarks.harness.answers import Answer, answer_of_table
from benchmarks.harness.clock import Taken, taken_by, tree_cpu_s
from benchmarks.harness.experiment import Contender, Side

SETTINGS = {
    "spark.driver.memory": "4g",  # enough memory for the self-joins
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
WARMING_RUNS = 3  # the JVM compiles code after several runs
PARTITIONS_PER_CORE = 4  # much faster for small joins than the default of 200


def session(cores: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmarks")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    return builder.config("spark.sql.shuffle.partitions", str(PARTITIONS_PER_CORE * cores)).getOrCreate()


def contenders(question: Question, spark: SparkSession, folder: Path) -> Iterator[Contender]:
    path = folder / f"{question.kind}_{question.window_ms}_{question.events.num_rows}.parquet"
    pyarrow.parquet.write_table(question.events, path)
    events = spark.read.parquet(str(path))
    ours = ss.query(question.query).run(events, time="t", type="kind")
    yield _contender("streamsift on Spark", Side.OURS, ours, question)
    events.createOrReplaceTempView("events")
    for name, text in sql.formulations(question, sql.SPARK).items():
        yield _contender(f"Spark SQL: {name}", Side.RIVAL, spark.sql(text), question)


def _contender(name: str, side: Side, result: DataFrame, question: Question) -> Contender:
    def write() -> None:
        result.write.format("noop").mode("overwrite").save()

    def run() -> Taken:
        write()  # Spark stops Python workers that are idle for a minute; starting a new one is not measured
        return taken_by(write, cpu=lambda: tree_cpu_s(os.getpid()))

    def answer() -> Answer:
        for _ in range(WARMING_RUNS):
            write()
        return answer_of_table(result.toArrow(), question.columns)

    return Contender(name, side, answer, run)
