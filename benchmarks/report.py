"""What a benchmark that times by itself gives back: the best seconds of each contender on one workload."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Measurement:
    """The best time of each contender on one workload. The first is ours; all are where a headline compares them."""

    workload: str
    rows: int
    seconds: dict[str, float]
    compiled_share: float | None = None  # of our time, as a profiler sees it
    headline: str = ""
    stopped: dict[str, float] = field(default_factory=dict)  # contenders that did not end, and after how many seconds
    unit: str = "seconds"  # of what is compared

    @property
    def ratio(self) -> float:
        """How many times as long the fastest rival takes."""
        ours, *rivals = self.seconds.values()
        return min(rivals) / ours

    @property
    def told(self) -> str:
        """What the measurement says, in a few words."""
        ended = f"{self.ratio:.1f}x the fastest rival" if len(self.seconds) > 1 else "no rival ended"
        return self.headline or ended
