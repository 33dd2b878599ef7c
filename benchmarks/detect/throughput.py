"""Measure the detection engine on one core: events per second with few matches, matches per second with many."""

from __future__ import annotations

import statistics

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.uniform import REAL, uniform_events
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import Samples, medians, sampled
from benchmarks.report.measurement import Measurement
from streamsift.physical.plan.plan import DetectPlan
from streamsift.runtime.detect.run import detect, match_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare

EVENTS = 8_000_000
MATCHING_EVENTS = 400_000
CLASSES = "ABC"
COLUMNS = {"key": 1_000, "value": REAL}
QUERY = "SEQ(A a, B b, C c) WITHIN {window}"
FEW, MANY = 3, 30  # windows: about one match per 10 events, and about 16 per event
TARGETS = {"events": 10e6, "indices": 20e6, "structs": 5e6}


def planned(table: pa.Table, window: int) -> tuple[DetectPlan, Events]:
    plan = ss.query(QUERY.format(window=window)).plan(table.schema, "t", "kind", None)
    assert isinstance(plan, DetectPlan)
    return plan, prepare(plan.query, table)


def expected_matches(table: pa.Table, window: int) -> int:
    """Count the matches independently: with one event per time, offsets determine order and window."""
    kinds = table["kind"].to_numpy()
    is_a, is_b, is_c = (kinds == name for name in CLASSES)
    total = 0
    for last in range(2, window + 1):
        for middle in range(1, last):
            total += int(np.count_nonzero(is_a[:-last] & is_b[middle : middle - last] & is_c[last:]))
    return total


def count_rows(plan: DetectPlan, events: Events) -> int:
    return sum(rows.shape[1] for rows in match_places(plan.alternatives[0], events, plan.choices))


def count_structs(plan: DetectPlan, events: Events) -> int:
    return sum(batch.num_rows for batch in detect(plan, events))


def _reported(name: str, count: int, unit: str, samples: Samples, target: float) -> Measurement:
    taken = statistics.median(samples)
    rate = count / taken
    headline = f"{rate / 1e6:.1f} M {unit}/s on one core, {rate / target:.1f} × the target"
    print(f"  {name:48} {taken * 1000:8.1f} ms  {headline}")
    return Measurement(name, count, {"streamsift": samples}, headline=headline)


def events_a_second(settings: Settings) -> list[Measurement]:
    table = uniform_events(settings.scaled(EVENTS), len(CLASSES), seed=settings.seed, **COLUMNS)
    plan, events = planned(table, FEW)
    found = count_rows(plan, events)
    assert found == expected_matches(table, FEW), "other matches"
    print(f"{table.num_rows:,} events, {found:,} matches, as row indices")
    runs = {
        "whole": lambda: count_rows(plan, prepare(plan.query, table)),
        "read": lambda: prepare(plan.query, table).rank.size,
        "search": lambda: count_rows(plan, events),
        "pick": lambda: len(candidates(plan.alternatives[0], events)),
    }
    samples = sampled(runs, settings)
    taken = medians(samples)
    read, picked = taken["read"] / taken["whole"], taken["pick"] / taken["whole"]
    print(f"  to read the events in order takes {read:.0%}, to pick candidates {picked:.0%}")
    rows, target = table.num_rows, TARGETS["events"]
    return [
        _reported("events, from a table to row indices", rows, "events", samples["whole"], target),
        _reported("events, once they are in order", rows, "events", samples["search"], target),
    ]


def matches_a_second(settings: Settings) -> list[Measurement]:
    table = uniform_events(settings.scaled(MATCHING_EVENTS), len(CLASSES), seed=settings.seed, **COLUMNS)
    plan, events = planned(table, MANY)
    found = count_rows(plan, events)
    assert found == count_structs(plan, events) == expected_matches(table, MANY), "other matches"
    print(f"{table.num_rows:,} events, {found:,} matches")
    runs = {"indices": lambda: count_rows(plan, events), "structs": lambda: count_structs(plan, events)}
    samples = sampled(runs, settings, warm=True)
    taken = medians(samples)
    after = 1 - taken["indices"] / taken["structs"]
    print(f"  {after:.0%} of the time of structs is spent after the search, to gather their columns")
    return [
        _reported("matches, as row indices", found, "matches", samples["indices"], TARGETS["indices"]),
        _reported("matches, as structs of four columns each", found, "matches", samples["structs"], TARGETS["structs"]),
    ]


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    return [*events_a_second(settings), *matches_a_second(settings)]


if __name__ == "__main__":
    main()
