"""The benchmarks by name: experiments of workloads, and modules that make, check and print theirs by themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType

from benchmarks.harness.experiment import Experiment, Settings, Side, Skipped
from benchmarks.harness.measure import Measured, Times, measure, pin, told, unpin
from benchmarks.report import Measurement

QUICK = (
    "rivals",
    "growth",
    "micro",
    "applications",
    "throughput",
    "flat_sequence",
    "nested",
    "condensed",
    "shapes",
    "kleene",
)
QUICK += ("aggregation", "ranking", "window_moves", "stream_engine")
RIVALS = ("DuckDB", "Spark SQL", "Flink")  # how the names of other engines begin
SLOW = ("drift", "merging", "schedules", "streaming", "aggregation_spark", "scale", "scale_many", "scale_memory")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A name, what it is about, and how it is run."""

    name: str
    about: str
    run: Callable[[Settings], list[Measured]]


def benchmark(name: str) -> Benchmark:
    """Modules are imported when they are wanted: some start with heavy imports."""
    module = import_module(f"benchmarks.{name}")
    experiment = getattr(module, "EXPERIMENT", None)
    if isinstance(experiment, Experiment):
        return Benchmark(name, experiment.about, lambda settings: _run(experiment, settings))
    return Benchmark(name, (module.__doc__ or "").splitlines()[0], lambda settings: _own(module, settings))


def _run(experiment: Experiment, settings: Settings) -> list[Measured]:
    pin(settings.cores)
    found = []
    for workload in experiment.workloads(settings):
        if settings.only not in workload.name:
            continue
        found.append(measure(workload, settings))
        print(told(found[-1]), flush=True)
    return found


def _own(module: ModuleType, settings: Settings) -> list[Measured]:
    unpin()
    return [as_measured(each) for each in module.main(settings)]


def as_measured(measurement: Measurement) -> Measured:
    """Most of these modules compare ours with ours."""
    times = tuple(
        Times(name, Side.RIVAL if name.startswith(RIVALS) else Side.OURS, seconds)
        for name, seconds in measurement.samples.items()
    )
    skipped = tuple(Skipped(name, f"stopped after {after_s:.0f} s") for name, after_s in measurement.stopped.items())
    found = Measured(measurement.workload, measurement.rows, measurement.rows, times, skipped)
    return replace(found, headline=measurement.headline, unit=measurement.unit)
