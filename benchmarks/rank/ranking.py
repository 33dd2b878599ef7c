"""Compare best paths with the algorithms of the CPR thesis and with enumeration, as the window moves.

These are figures 4.1 to 4.3 of the thesis, on readings like those of the Intel lab (54 motes, classes of temperature
changes with the thesis's frequencies), scaled up; `window_moves` measures windows of up to a million events. All
algorithms get the same weighted candidates in memory. Sums are compared before a ratio is printed. A larger scale makes
only the stream longer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.sensors import busiest, from_file, generated
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import medians, sampled
from benchmarks.report.measurement import Measurement
from streamsift.runtime.paths.enumerate import Roots, Rule, best_paths
from streamsift.runtime.paths.graph import build_graph
from streamsift.runtime.paths.strata import in_reach
from streamsift.runtime.paths.thesis import k_best_by_window

LENGTHS = {2: ("EG", "EH"), 3: ("EG", "EH", "EJ"), 4: ("EG", "EH", "EJ", "EI")}
FREQUENCIES = {"1x": ("EG", "EH", "EN"), "10x": ("EG", "EH", "EO"), "89x": ("EG", "EH", "EJ")}
RAREST = "EG"  # the rarest of the classes that nearly all cells need


@dataclass(frozen=True, slots=True)
class Workload:
    events: int
    window: int
    step: int
    limit: int
    pattern: tuple[str, ...] = LENGTHS[3]


@dataclass(frozen=True, slots=True)
class Strata:
    """The candidates of each step, and the windows of all ticks, as input of all algorithms."""

    offsets: np.ndarray
    place: np.ndarray
    weight: np.ndarray
    low: np.ndarray
    high: np.ndarray
    events: int


def readings(events: int, settings: Settings, table: pa.Table | None = None) -> pa.Table:
    """Return generated readings, or as many from a file; an event's score is its mote's distance from (0, 0)."""
    wanted = settings.scaled(events)
    return generated(wanted, settings.seed) if table is None else busiest(table, wanted, RAREST)


def strata(table: pa.Table, work: Workload) -> Strata:
    kind, weight = table.column("kind").to_numpy(), table.column("distance").to_numpy()
    places = [np.flatnonzero(kind == name).astype(np.int32) for name in work.pattern]
    ends = np.arange(work.step, work.events + work.window, work.step)
    return Strata(
        _offsets(places),
        np.concatenate(places),
        weight[np.concatenate(places)],
        np.clip(ends - work.window, 0, work.events).astype(np.int32),
        np.minimum(ends, work.events).astype(np.int32),
        work.events,
    )


def _offsets(places: list[np.ndarray]) -> np.ndarray:
    ends = np.cumsum([part.size for part in places]).astype(np.int64)
    return np.stack([np.append(0, ends[:-1]), ends], axis=1)


def lazy(data: Strata, limit: int) -> np.ndarray:
    """Run the engine's kernels and return the sums [windows, limit] of the best paths."""
    kept = in_reach(data.offsets, data.place, data.place, data.low, data.high)
    offsets, place, weight = np.append(0, np.cumsum(kept))[data.offsets], data.place[kept], data.weight[kept]
    if not place.size:
        return np.full((data.low.size, limit), -np.inf)
    graph = build_graph(offsets, place, place, place[np.newaxis], weight, data.low, data.high, data.events)
    count = data.low.size
    anywhere = np.full(count, -1, np.int32)
    roots = Roots(np.zeros(count, np.int32), np.arange(count), anywhere, anywhere)
    rule = Rule(limit, -1.0, 1 << 40, -np.inf, np.empty((1, 0), np.int32), True)
    paths, counts, _ = best_paths(graph, roots, np.arange(count + 1), rule)
    found = np.full((count, limit), -np.inf)
    which = np.repeat(np.arange(count), counts)
    nth = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
    found[which, nth] = weight[paths].sum(axis=1)
    return found


def published(dynamic: bool, plain: bool) -> Callable[[Strata, int], np.ndarray]:
    def run(data: Strata, limit: int) -> np.ndarray:
        return k_best_by_window(
            data.place, data.place, data.weight, data.offsets, data.low, data.high, limit, dynamic, plain
        )[0]

    return run


CONTENDERS: dict[str, Callable[[Strata, int], np.ndarray]] = {
    "best paths": lazy,
    "k-DSSP": published(dynamic=True, plain=False),
    "k-SSP": published(dynamic=False, plain=False),
    "D-Yen": published(dynamic=True, plain=True),
    "Yen": published(dynamic=False, plain=True),
}


def measure(
    name: str, work: Workload, contenders: list[str], settings: Settings, given: pa.Table | None = None
) -> Measurement:
    table = readings(work.events, settings, given)
    data = strata(table, replace(work, events=table.num_rows))
    expected = lazy(data, work.limit)
    runs = {algorithm: partial(CONTENDERS[algorithm], data, work.limit) for algorithm in contenders}
    for algorithm, run in runs.items():
        assert np.allclose(run(), expected, rtol=1e-12), f"{algorithm} differs on {name}"
    samples = sampled(runs, settings, warm=True)
    ours, *others = medians(samples).items()
    ratios = ", ".join(f"{other} {taken / ours[1]:.1f}x" for other, taken in others)
    print(f"  {name}: {ours[0]} {ours[1] * 1e3:.1f} ms{', ' * bool(ratios)}{ratios}")
    return Measurement(name, table.num_rows, samples)


def cells() -> Iterator[tuple[str, Workload]]:
    """Vary one parameter at a time around the defaults of the thesis."""
    default = Workload(5_000, 50, 20, 10)
    yield "figure 4.2: k 10, window 50, step 20", default
    for k in (10, 20, 40):
        yield f"figure 4.3a: k {k}", replace(default, limit=k)
    for window in (50, 100, 200):
        yield f"figure 4.3b: window {window}", replace(default, window=window)
    for length, pattern in LENGTHS.items():
        yield f"figure 4.3c: length {length}", replace(default, pattern=pattern)
    for step in (10, 20, 50):
        yield f"figure 4.3d: step {step}", replace(default, step=step)
    for frequency, pattern in FREQUENCIES.items():
        yield f"figure 4.3e: frequency {frequency}", replace(default, pattern=pattern)


def figures(settings: Settings, given: pa.Table | None = None) -> list[Measurement]:
    """Measure figures 4.1 to 4.3, then windows larger than those of the thesis."""
    everyone = list(CONTENDERS)
    found = [measure(name, work, everyone, settings, given) for name, work in cells()]
    for window, step, limit in ((500, 100, 10), (500, 500, 100), (2_000, 500, 10), (5_000, 1_000, 100)):
        work = Workload(20_000, window, step, limit)
        name = f"window {window:,}, step {step:,}, k {limit}"
        found.append(measure(name, work, everyone[:3], settings, given))
    return found


def enumeration(settings: Settings) -> Measurement:
    """Compare the whole engine with finding and scoring all matches: window 5,000 events, k = 100."""
    work = Workload(10_000, 5_000, 5_000, 100)
    table = readings(work.events, settings)
    names = ", ".join(f"{name} v{n}" for n, name in enumerate(work.pattern))
    score = " + ".join(f"v{n}.distance" for n in range(len(work.pattern)))
    query = ss.query(f"SEQ({names}) PREF MAX[{score}] WITHIN {work.window} UPDATE {work.step} RETURN {work.limit}")
    runs = {each: partial(query.run_local, table, time="t", type="kind", rank=each) for each in ("auto", "enumerate")}
    best, all_of_them = (run() for run in runs.values())
    assert best.equals(all_of_them), "the strategies differ"
    samples = sampled(runs, settings, warm=True)
    ours, enumerated = medians(samples).values()
    name = "window 5,000, k 100, whole engine"
    print(f"  {name}: {ours * 1e3:.0f} ms, enumerate all {enumerated / ours:.0f}x")
    return Measurement(name, table.num_rows, samples)


def main(settings: Settings = DEFAULTS, given: pa.Table | None = None) -> list[Measurement]:
    return [*figures(settings, given), enumeration(settings)]


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, help="a Parquet file of readings, with moteid and temperature")
    arguments.add_argument("--degrees", type=float, help="the width of a class; 20 in the thesis")
    chosen = arguments.parse_args()
    main(DEFAULTS, None if chosen.data is None else from_file(chosen.data, degrees=chosen.degrees))
