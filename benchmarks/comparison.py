"""Compare Streamsift with Flink CEP, Flink SQL, Spark SQL, DuckDB and a plain Python automaton on the same events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.data.keyed import keyed_events, window_ms
from benchmarks.engines import duckdb_joins, flink, ours, python_nfa, spark_joins
from benchmarks.engines.question import Kind, Question
from benchmarks.harness.experiment import Experiment, Settings, Skipped, Workload

KEYS = 100
EVENTS = 200_000  # scaled per case, so that the fastest engine has enough work and the slowest finishes


@dataclass(frozen=True, slots=True)
class Case:
    """A workload with the parameters that determine its cost."""

    name: str
    kind: Kind
    classes: int
    events_per_key: int  # per window
    events: int = EVENTS


CASES = (
    Case("SEQ(A, B, C), 24 events of a key in a window", Kind.SEQUENCE, 12, 24, 5 * EVENTS),
    Case("SEQ(A, B, C), 48 events of a key in a window", Kind.SEQUENCE, 12, 48, 2 * EVENTS),
    Case("SEQ(A, B, C), 96 events of a key in a window", Kind.SEQUENCE, 12, 96),
    Case("SEQ(A, B, C), 24 events, no other classes", Kind.SEQUENCE, 3, 24, EVENTS // 2),
    Case("SEQ(A, !D, B), 24 events", Kind.NEGATION, 12, 24, 5 * EVENTS),
    Case("SEQ(A, B+, C), 24 events", Kind.GROUP, 12, 24, 2 * EVENTS),
    Case("A and the next B, 24 events", Kind.NEXT, 12, 24, 5 * EVENTS),
    Case("count of SEQ(A, B, C, D), 24 events", Kind.COUNT, 12, 24, 5 * EVENTS),
    Case("count of SEQ(A, B, C, D), 96 events", Kind.COUNT, 12, 96, EVENTS // 4),
)


def workloads(settings: Settings) -> Iterator[Workload]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        spark = spark_joins.session(settings.cores)
        stack.callback(spark.stop)
        skipped: tuple[Skipped, ...] = ()
        running = None
        try:
            running = stack.enter_context(flink.Flink(settings.cores, folder))
        except flink.Unavailable as reason:
            skipped = (flink.skipped(reason),)
        for case in (case for case in CASES if settings.only in case.name):
            events = keyed_events(settings.scaled(case.events), case.classes, KEYS, settings.seed)
            question = Question(case.kind, window_ms(KEYS, case.events_per_key), events)
            contenders = [
                ours.contender(question),
                *duckdb_joins.contenders(question, settings.cores),
                python_nfa.contender(question),
                *spark_joins.contenders(question, spark, folder),
                *(running.contenders(question) if running else ()),
            ]
            parameters = {"keys": KEYS, "classes": case.classes, "events_per_key_and_window": case.events_per_key}
            yield Workload(case.name, events.num_rows, tuple(contenders), skipped, question.query, parameters)


EXPERIMENT = Experiment("rivals", (__doc__ or "").strip(), workloads)
