"""Where a second goes: what each stage of detecting, counting and ranking costs for an event, here and on Spark."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame

import streamsift as ss
from benchmarks.data.keyed import keyed_events, window_ms
from benchmarks.engines.spark_joins import session
from benchmarks.harness.clock import Clock, taken_by
from benchmarks.report import Measurement
from streamsift.physical.plan import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.runtime import Events, match_rows, prepare
from streamsift.runtime.aggregate import aggregate
from streamsift.runtime.detect import detect
from streamsift.runtime.ranking import rank
from streamsift.runtime.relevant import relevant

EVENTS, SPARK_EVENTS = 1_000_000, 2_000_000
KEYS, CLASSES, EVENTS_PER_KEY = 100, 3, 12
ROUNDS = 5
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
    """Seconds of each stage, in order; together they are the whole run."""

    seconds: dict[str, float]
    bound_s: float  # what no run could be faster than
    bound: str

    @property
    def told(self) -> str:
        whole = sum(self.seconds.values())
        return f"{whole / self.bound_s:.1f} times {self.bound}"


def median_s(run: Callable[[], object], clock: Clock = Clock.CPU) -> float:
    """Once to warm up, then the median. In this process one thread does all: its own time tells most."""
    run()
    return statistics.median(taken_by(run).by(clock) for _ in range(ROUNDS))


def kernels(plan: Plan, events: Events) -> int:
    """From events in order to the result: of matches, their rows; of the others, batches."""
    match plan:
        case DetectPlan():
            return sum(rows.shape[1] for rows in match_rows(plan.alternatives[0], events, plan.choices))
        case AggregatePlan():
            return sum(batch.num_rows for batch in aggregate(plan, events))
        case RankPlan():
            return sum(batch.num_rows for batch in rank(plan, events))
    raise AssertionError(plan)


def in_process(text: str, table: pa.Table) -> Stages:
    plan = ss.query(text).plan(table.schema, "t", "kind", None)
    events = relevant(plan, prepare(plan.query, table))
    seconds = {
        "text to plan": median_s(lambda: ss.query(text).plan(table.schema, "t", "kind", None)),
        "events in order": median_s(lambda: relevant(plan, prepare(plan.query, table))),
        "kernels": median_s(lambda: kernels(plan, events)),
    }
    result = ss.query(text).run_local(table, time="t", type="kind")
    if isinstance(plan, DetectPlan):
        whole = median_s(lambda: sum(batch.num_rows for batch in detect(plan, events)))
        seconds["events of matches as structs"] = max(0.0, whole - seconds["kernels"])
    bound_s = (table.nbytes + result.nbytes) / copied_bytes_per_s()
    return Stages(seconds, bound_s, "copying its input and its output")


def copied_bytes_per_s() -> float:
    """How fast one core copies memory."""
    source = np.ones(COPIED_BYTES, np.uint8)
    target = np.empty_like(source)
    return COPIED_BYTES / median_s(lambda: np.copyto(target, source))


def on_spark(text: str, events: DataFrame) -> Stages:
    """By difference: each run does what the one before it does, and one thing more."""
    arrow = events.mapInArrow(lambda batches: batches, events.schema)
    shuffled = events.repartition("key").mapInArrow(lambda batches: batches, events.schema)
    runs = {
        "read Parquet": events,
        "Arrow to Python and back": arrow,
        "shuffle": shuffled,
        "engine": ss.query(text).run(events, time="t", type="kind"),
    }
    until = {name: median_s(lambda run=run: noop(run), Clock.WALL) for name, run in runs.items()}
    before = [0.0, *until.values()]
    seconds = {name: max(0.0, taken - start) for (name, taken), start in zip(until.items(), before, strict=False)}
    return Stages(seconds, until["shuffle"], "a shuffle that hands its rows to Python and back")


def noop(result: DataFrame) -> None:
    result.write.format("noop").mode("overwrite").save()


def measured(name: str, events: int, stages: Stages) -> Measurement:
    print(f"  {name} ({events:,} events): {stages.told}")
    for stage, taken in stages.seconds.items():
        print(f"    {taken * 1e9 / events:8.1f} ns for an event  {stage}")
    return Measurement(name, events, stages.seconds, headline=stages.told)


def both() -> Iterator[Measurement]:
    window = window_ms(KEYS, EVENTS_PER_KEY)
    table = keyed_events(EVENTS, CLASSES, KEYS)
    for name, text in QUERIES.items():
        yield measured(f"{name}, in this process", EVENTS, in_process(text.format(window=window), table))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        pyarrow.parquet.write_table(keyed_events(SPARK_EVENTS, CLASSES, KEYS), path)
        spark = session(CORES)
        try:
            events = spark.read.parquet(str(path))
            for name, text in QUERIES.items():
                yield measured(f"{name}, on Spark", SPARK_EVENTS, on_spark(text.format(window=window), events))
        finally:
            spark.stop()


def main() -> list[Measurement]:
    return list(both())


if __name__ == "__main__":
    main()
