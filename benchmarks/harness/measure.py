"""Measure the engines of a workload in turns after checking that they return equal results."""

from __future__ import annotations

import os
import statistics
from dataclasses import asdict, dataclass, field

from benchmarks.harness.answers import Answer
from benchmarks.harness.experiment import Settings, Side, Skipped, Workload
from benchmarks.harness.turns import by_clock, in_turns

ALLOWED = sorted(os.sched_getaffinity(0))  # before anything is pinned


class WrongAnswer(Exception):
    """The rows of an engine differ from those of the first one, so no time is reported."""


@dataclass(frozen=True, slots=True)
class Times:
    """All times of one engine or strategy on one workload."""

    name: str
    side: Side
    seconds: tuple[float, ...]  # by the clock of the settings
    cpu_seconds: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def band(self) -> tuple[float, float]:
        """Return the fastest and the slowest run. With ten runs or more, a tenth at either end is excluded, so that one
        disturbed run does not determine the band.
        """
        left_out = len(self.seconds) // 10
        kept = sorted(self.seconds)[left_out : len(self.seconds) - left_out]
        return kept[0], kept[-1]

    @property
    def spread(self) -> float:
        """Return the width of the band as a share of the median."""
        fastest, slowest = self.band
        return (slowest - fastest) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of a workload; the first times are those of Streamsift."""

    workload: str
    events: int
    rows: int
    times: tuple[Times, ...]
    skipped: tuple[Skipped, ...] = ()
    query: str = ""
    headline: str = ""
    unit: str = "seconds"
    parameters: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        content = asdict(self)
        for each, times in zip(content["times"], self.times, strict=True):
            each |= {"median": times.median, "spread": times.spread}
        return content


def pin(cores: int) -> None:
    """Pin this process and its children to the last cores; threads that already run are not affected."""
    os.sched_setaffinity(0, ALLOWED[-cores:])


def unpin() -> None:
    os.sched_setaffinity(0, ALLOWED)


def measure(workload: Workload, settings: Settings) -> Measured:
    """Run every engine once to warm up and compare answers; then run them in turns, each within its budget."""
    expected: Answer | None = None
    for contender in workload.contenders:
        answer = contender.answer()
        expected = expected or answer
        if answer != expected:
            raise WrongAnswer(f"{workload.name}: {contender.name} returned {answer}, expected {expected}")
    assert expected is not None, f"{workload.name} has no engine to measure"
    taken_of = in_turns({each.name: each.run for each in workload.contenders}, settings)
    times = tuple(
        Times(
            each.name,
            each.side,
            by_clock(taken_of[each.name], settings),
            tuple(taken.cpu_s for taken in taken_of[each.name]),
        )
        for each in workload.contenders
    )
    return Measured(
        workload.name,
        workload.events,
        expected.rows,
        times,
        workload.skipped,
        workload.query,
        parameters=workload.parameters,
    )


def format_times(measured: Measured) -> str:
    """Return a few lines for the terminal: the time of each engine, also relative to Streamsift."""
    ours = measured.times[0].median
    equal = ", equal answers" if len(measured.times) > 1 else ""
    lines = [f"{measured.workload} ({measured.events:,} events, {measured.rows:,} rows{equal})"]
    for times in sorted(measured.times, key=lambda each: each.median):
        rate = measured.events / times.median
        lines.append(
            f"  {times.median * 1000:10.1f} ms ±{times.spread / 2:4.0%}  {times.median / ours:8.1f}x"
            f"  {rate:12,.0f} events/s  {times.name}"
        )
    lines += [f"  {each.name} skipped: {each.reason}" for each in measured.skipped]
    return "\n".join(lines)
