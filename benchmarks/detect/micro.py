"""Measure the time per event in each stage of detection, aggregation and ranking, locally and on Spark."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame

import streamsift as ss
from benchmarks.data.keyed import keyed_events, window_ms
from benchmarks.engines.spark_joins import session
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import Samples, medians, sampled, spark_cpu_s
from benchmarks.report.measurement import Measurement
from streamsift.physical.plan.plan import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.runtime import Events, match_places
from streamsift.runtime.count.run import aggregate
from streamsift.runtime.detect.run import detect
from streamsift.runtime.events.prepare import prepare_relevant
from streamsift.runtime.rank.run import rank

EVENTS = 1_000_000
KEYS, CLASSES, EVENTS_PER_KEY = 100, 3, 12
COPIED_BYTES = 1 << 28
CORES = 1
STEPS = "SEQ(A a, B b, C c)"
QUERIES = {
    "detect": f"{STEPS} WHERE [key] WITHIN {{window}}",
    "aggregate": f"{STEPS} GROUP BY key AGG COUNT WITHIN {{window}}",
    "rank": f"{STEPS} GROUP BY key WITHIN {{window}} PREF MAX[a.n + c.n] RETURN 10",
}


@dataclass(frozen=True, slots=True)
class Stages:
    """The times of each stage, in order; together they are the whole run."""

    samples: dict[str, Samples]
    bound_s: float  # lower bound of any run
    bound: str

    @property
    def summary(self) -> str:
        whole = sum(medians(self.samples).values())
        return f"{whole / self.bound_s:.1f} times {self.bound}"


def more(whole: Samples, part: Samples) -> Samples:
    """Return the time that a run takes in addition to one of its parts, from rounds in which both ran."""
    return tuple(max(0.0, one - other) for one, other in zip(whole, part, strict=False))


def kernels(plan: Plan, events: Events) -> int:
    """Measure from sorted events to the result: rows for matches, batches for aggregations and rankings."""
    match plan:
        case DetectPlan():
            return sum(rows.shape[1] for rows in match_places(plan.alternatives[0], events, plan.choices))
        case AggregatePlan():
            return sum(batch.num_rows for batch in aggregate(plan, events))
        case RankPlan():
            return sum(batch.num_rows for batch in rank(plan, events))
    raise AssertionError(plan)


def in_process(text: str, table: pa.Table, settings: Settings) -> Stages:
    plan = ss.query(text).plan(table.schema, "t", "kind", None)
    events = prepare_relevant(plan, table)
    runs = {
        "text to plan": lambda: ss.query(text).plan(table.schema, "t", "kind", None),
        "events in order": lambda: prepare_relevant(plan, table),
        "kernels": lambda: kernels(plan, events),
    }
    structs = "events of matches as structs"
    if isinstance(plan, DetectPlan):
        runs[structs] = lambda: sum(batch.num_rows for batch in detect(plan, events))
    samples = sampled(runs, settings)
    if structs in samples:
        samples[structs] = more(samples[structs], samples["kernels"])
    result = ss.query(text).run_local(table, time="t", type="kind")
    bound_s = (table.nbytes + result.nbytes) / copied_bytes_per_s(settings)
    return Stages(samples, bound_s, "the time to copy its input and output")


def copied_bytes_per_s(settings: Settings) -> float:
    """Measure how fast one core copies memory."""
    source = np.ones(COPIED_BYTES, np.uint8)
    target = np.empty_like(source)
    (taken,) = sampled({"copy": lambda: np.copyto(target, source)}, settings).values()
    return COPIED_BYTES / statistics.median(taken)


def on_spark(text: str, events: DataFrame, settings: Settings) -> Stages:
    """Measure stages by difference: each run includes one more stage than the previous one."""
    arrow = events.mapInArrow(lambda batches: batches, events.schema)
    shuffled = events.repartition("key").mapInArrow(lambda batches: batches, events.schema)
    runs = {
        "read Parquet": events,
        "Arrow to Python and back": arrow,
        "shuffle": shuffled,
        "engine": ss.query(text).run(events, time="t", type="kind"),
    }
    until = sampled({name: partial(noop, run) for name, run in runs.items()}, settings, cpu=spark_cpu_s)
    samples = {"read Parquet": until["read Parquet"]}
    samples |= {name: more(until[name], until[before]) for before, name in pairwise(until)}
    return Stages(samples, medians(until)["shuffle"], "a shuffle with transfer to Python and back")


def noop(result: DataFrame) -> None:
    result.write.format("noop").mode("overwrite").save()


def measured(name: str, events: int, stages: Stages) -> Measurement:
    print(f"  {name} ({events:,} events): {stages.summary}")
    for stage, taken in medians(stages.samples).items():
        print(f"    {taken * 1e9 / events:8.1f} ns per event  {stage}")
    return Measurement(name, events, stages.samples, headline=stages.summary)


def both(settings: Settings) -> Iterator[Measurement]:
    window = window_ms(KEYS, EVENTS_PER_KEY)
    table = keyed_events(settings.scaled(EVENTS), CLASSES, KEYS, settings.seed)
    for name, text in QUERIES.items():
        stages = in_process(text.format(window=window), table, settings)
        yield measured(f"{name}, in this process", table.num_rows, stages)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        pyarrow.parquet.write_table(table, path)
        spark = session(CORES)
        try:
            events = spark.read.parquet(str(path))
            for name, text in QUERIES.items():
                stages = on_spark(text.format(window=window), events, settings)
                yield measured(f"{name}, on Spark", table.num_rows, stages)
        finally:
            spark.stop()


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    return list(both(settings))


if __name__ == "__main__":
    main()
