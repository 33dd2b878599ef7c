"""Hold the times of all engines or strategies on one workload."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Measurement:
    """The times of each engine or strategy on one workload. The first is Streamsift, unless a headline compares all."""

    workload: str
    rows: int
    seconds: Mapping[str, float | Sequence[float]]  # a number alone is a single sample
    headline: str = ""
    stopped: Mapping[str, float] = field(
        default_factory=dict
    )  # those that did not finish, and their time limit in seconds
    unit: str = "seconds"  # of the values

    @property
    def samples(self) -> dict[str, tuple[float, ...]]:
        return {
            name: (taken,) if isinstance(taken, int | float) else tuple(taken) for name, taken in self.seconds.items()
        }

    @property
    def medians(self) -> dict[str, float]:
        return {name: statistics.median(taken) for name, taken in self.samples.items()}

    @property
    def ratio(self) -> float:
        """Return the time of the fastest other engine, relative to Streamsift."""
        ours, *others = self.medians.values()
        return min(others) / ours

    @property
    def summary(self) -> str:
        """Return the result in a few words."""
        result = f"{self.ratio:.1f}x the fastest other engine" if len(self.seconds) > 1 else "no other engine finished"
        return self.headline or result
