"""Measure condensed composition on, off and automatic: random-walk prices, and quotes that rarely move.

These are the experiments of "Accelerating Sequence Event Detection through Condensed Composition", section V: Query 2
by number of classes and window, Query 3 by window. The stock data of the paper is not public. The generated quotes have
the relevant property: most prices do not move from one quote to the next. Times end with row indices, because attaching
the events takes the same time in all three cases. A larger scale makes the walks longer; the quotes are one day.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.prices import quotes, walks
from benchmarks.detect.intermediate import format_rows, peak_mb, rows_built, searched
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import medians, sampled
from benchmarks.report.measurement import Measurement
from streamsift.physical.plan.options import Condense, PlannerOptions
from streamsift.physical.plan.plan import DetectPlan
from streamsift.runtime.detect.run import match_places
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare

WALK_TIMES = 20_000
CLASS_WINDOW = 8
CLASSES, WINDOWS = (2, 3, 4, 5, 6), (5, 10, 20, 40)
STOCK = 210
QUOTE_WINDOWS_S = (15, 30, 60, 90, 180)
WAYS = (Condense.AUTO, Condense.ON, Condense.OFF)


def query_2(classes: int, window: int) -> str:
    variables = [f"T{number + 1}" for number in range(classes)]
    lower = [f"T1.price > {variable}.price" for variable in variables[1:]]
    named = [f"{variable}.name = 'name{number + 1}'" for number, variable in enumerate(variables)]
    steps, where = "; ".join(variables), " AND ".join(lower + named)
    return f"PATTERN {steps} WHERE {where} WITHIN {window} RETURN {', '.join(variables)}"


def query_3(window_s: int) -> str:
    return (
        f"PATTERN T1; T2; T3; T4 WHERE T1.code = T3.code AND T2.code = T4.code AND T2.code = '{600_000 + STOCK}' "
        f"AND T1.price < T2.price - 0.02 AND T3.price > T4.price + 0.02 WITHIN {window_s} RETURN T1, T2, T3, T4"
    )


def rows_of(plan: DetectPlan, events: Events, condense: Condense) -> np.ndarray:
    """Return all matches as sorted table rows [steps, matches]."""
    chunks = list(match_places(plan.alternatives[0], events, PlannerOptions(condense=condense)))
    rows = np.concatenate(chunks, axis=1) if chunks else np.empty((len(plan.alternatives[0].steps), 0), np.int32)
    return rows[:, np.lexsort(rows[::-1])]


def search(plan: DetectPlan, events: Events, condense: Condense) -> None:
    for _ in match_places(plan.alternatives[0], events, PlannerOptions(condense=condense)):
        pass


def compare(workload: str, text: str, table: pa.Table, settings: Settings) -> Measurement:
    plan = ss.query(text).plan(table.schema, "t", None, None)
    assert isinstance(plan, DetectPlan)
    events = prepare(plan.query, table)
    expected = rows_of(plan, events, Condense.OFF)
    for way in WAYS:
        assert np.array_equal(rows_of(plan, events, way), expected), f"condense={way} returns different matches"
    samples = sampled({f"condense={way}": partial(search, plan, events, way) for way in WAYS}, settings, warm=True)
    report(workload, expected.shape[1], list(medians(samples).values()), plan, events)
    return Measurement(workload, expected.shape[1], samples)


def report(workload: str, matches: int, taken: list[float], plan: DetectPlan, events: Events) -> None:
    auto, on, off = taken
    searches = {way: searched(plan.alternatives[0], events, PlannerOptions(condense=way)) for way in WAYS}
    condensed = float(np.mean([chosen.condensed for chosen in searches[Condense.AUTO].log]))
    print(
        f"  {workload:24} {matches:>11,} matches;  auto {auto * 1000:7.1f} ms ({condensed:.0%} condensed),"
        f" {auto / min(on, off):.2f} of the better;  off / on {off / on:.2f}"
    )
    for way, searching in searches.items():
        memory = peak_mb(partial(search, plan, events, way))
        print(f"      {way:6} {memory:5.0f} MB at most;  built {format_rows(rows_built(searching))}")


def queries_2(settings: Settings) -> Iterator[Measurement]:
    times = settings.scaled(WALK_TIMES)
    print("Query 2, by the number of classes")
    for count in CLASSES:
        table = walks(count, times, settings.seed)
        yield compare(f"classes: {count}", query_2(count, CLASS_WINDOW), table, settings)
    print("Query 2, four classes, by the window")
    table, few = walks(4, times, settings.seed), walks(4, max(1, times // 10), settings.seed)
    for window in WINDOWS:
        yield compare(f"window {window}", query_2(4, window), table if window <= 10 else few, settings)


def queries_3(settings: Settings) -> Iterator[Measurement]:
    print("Query 3, by the window")
    table = quotes(settings.seed)
    for window in QUOTE_WINDOWS_S:
        yield compare(f"Query 3, {window} s", query_3(window), table, settings)


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    return [*queries_2(settings), *queries_3(settings)]


if __name__ == "__main__":
    main()
