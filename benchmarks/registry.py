"""List the benchmarks by name: experiments with workloads, and modules that create, check and print their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType

from benchmarks.harness.experiment import Experiment, Settings, Side, Skipped
from benchmarks.harness.measure import Measured, Times, format_times, measure, pin, unpin
from benchmarks.report.measurement import Measurement

# The module of each benchmark, by its name in records.
QUICK = {
    "rivals": "comparison",
    "growth": "detect.growth",
    "micro": "detect.micro",
    "applications": "detect.applications",
    "throughput": "detect.throughput",
    "flat_sequence": "detect.flat_sequence",
    "nested": "negation.nested",
    "condensed": "detect.condensed",
    "shapes": "detect.shapes",
    "kleene": "groups.kleene",
    "aggregation": "count.aggregation",
    "ranking": "rank.ranking",
    "window_moves": "rank.window_moves",
    "stream_engine": "stream.stream_engine",
}
SLOW = {  # only with --full
    "drift": "detect.drift",
    "merging": "rank.merging",
    "schedules": "rank.schedules",
    "streaming": "stream.streaming",
    "micro_batch": "stream.micro_batch",
    "aggregation_spark": "count.aggregation_spark",
    "scale": "scale.scale",
    "scale_many": "scale.scale_many",
    "scale_memory": "scale.scale_memory",
}
RIVALS = ("DuckDB", "Spark SQL", "Flink")  # name prefixes of other engines


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A name, a description and a function that runs the benchmark."""

    name: str
    about: str
    run: Callable[[Settings], list[Measured]]


def module_of(name: str) -> ModuleType:
    """Import the module of a benchmark only now, because some have heavy imports."""
    return import_module(f"benchmarks.{(QUICK | SLOW)[name]}")


def benchmark(name: str) -> Benchmark:
    module = module_of(name)
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
        print(format_times(found[-1]), flush=True)
    return found


def _own(module: ModuleType, settings: Settings) -> list[Measured]:
    unpin()
    return [as_measured(each) for each in module.main(settings)]


def as_measured(measurement: Measurement) -> Measured:
    """Convert a measurement; most of these modules compare strategies of Streamsift."""
    times = tuple(
        Times(name, Side.RIVAL if name.startswith(RIVALS) else Side.OURS, seconds)
        for name, seconds in measurement.samples.items()
    )
    skipped = tuple(Skipped(name, f"stopped after {after_s:.0f} s") for name, after_s in measurement.stopped.items())
    found = Measured(measurement.workload, measurement.rows, measurement.rows, times, skipped)
    return replace(found, headline=measurement.headline, unit=measurement.unit)
