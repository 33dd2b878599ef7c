"""What a benchmark with workloads of its own gives back: all seconds of each contender on one workload."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Measurement:
    """The times of each contender on one workload. The first is ours; all are where a headline compares them."""

    workload: str
    rows: int
    seconds: Mapping[str, float | Sequence[float]]  # a number alone is a single sample
    headline: str = ""
    stopped: Mapping[str, float] = field(default_factory=dict)  # who did not end, and after how many seconds
    unit: str = "seconds"  # of what is compared

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
        """How many times as long the fastest rival takes."""
        ours, *rivals = self.medians.values()
        return min(rivals) / ours

    @property
    def told(self) -> str:
        """What the measurement says, in a few words."""
        ended = f"{self.ratio:.1f}x the fastest rival" if len(self.seconds) > 1 else "no rival ended"
        return self.headline or ended
