"""Compare two folders of records: a ratio per engine or strategy, and whether it exceeds the noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.experiment import Side
from benchmarks.harness.measure import Times
from benchmarks.harness.record import load_all

NOTHING = 1e-9  # memory and differences of runs can be 0


@dataclass(frozen=True, slots=True)
class Ratio:
    """The time of the second run relative to the first, with the range that the spread of both allows."""

    experiment: str
    workload: str
    name: str
    least: float
    middle: float
    most: float
    samples: int  # of the run with fewer samples

    @property
    def verdict(self) -> str:
        if self.samples == 1:
            return "a single sample"
        if self.least > 1:
            return "slower"
        return "faster" if self.most < 1 else "within the noise"


def ratios(before: Path, after: Path, ours_only: bool = False) -> Iterator[Ratio]:
    """Yield the ratio of each engine or strategy that ran in both folders on the same number of events."""
    first, second = load_all(before), load_all(after)
    for experiment in first.keys() & second.keys():
        known = {(each.workload, each.events): each for each in first[experiment][1]}
        for later in second[experiment][1]:
            earlier = known.get((later.workload, later.events))
            if earlier is None:
                continue
            times = {each.name: each for each in earlier.times}
            for each in later.times:
                if each.name in times and (each.side is Side.OURS or not ours_only):
                    yield _ratio(experiment, later.workload, times[each.name], each)


def _ratio(experiment: str, workload: str, first: Times, second: Times) -> Ratio:
    (first_low, first_high), (low, high) = first.band, second.band
    least, most = low / max(first_high, NOTHING), high / max(first_low, NOTHING)
    samples = min(len(first.seconds), len(second.seconds))
    return Ratio(experiment, workload, second.name, least, second.median / max(first.median, NOTHING), most, samples)


def format_ratios(found: list[Ratio]) -> str:
    lines = [
        f"{each.middle:6.2f}x  [{each.least:5.2f}, {each.most:5.2f}]  {each.verdict:16}"
        f"  {each.experiment}: {each.workload}, {each.name}"
        for each in sorted(found, key=lambda each: (each.experiment, each.workload, each.name))
    ]
    slower = sum(each.verdict == "slower" for each in found)
    faster = sum(each.verdict == "faster" for each in found)
    alone = sum(each.samples == 1 for each in found)
    counts = f"{len(found)} compared: {slower} slower, {faster} faster, {alone} with a single sample"
    return "\n".join([*lines, f"{counts}, the others within the noise"])
