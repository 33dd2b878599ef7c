"""Measured seconds in, a JSON file and a bar chart out."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The best time of each contender on one workload. The first is ours."""

    workload: str
    rows: int
    seconds: dict[str, float]
    compiled_share: float  # of our time, as a profiler sees it

    @property
    def ratio(self) -> float:
        """How many times as long the fastest rival takes."""
        ours, *rivals = self.seconds.values()
        return min(rivals) / ours


def save(name: str, measurements: list[Measurement]) -> None:
    RESULTS.mkdir(exist_ok=True)
    content = {"machine": platform.processor() or platform.machine(), "runs": [asdict(m) for m in measurements]}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    try:
        import matplotlib as mpl
    except ImportError:
        print("No picture: matplotlib is not installed.")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(measurements), figsize=(5 * len(measurements), 3.5), squeeze=False)
    for axis, measurement in zip(axes[0], measurements, strict=True):
        names, seconds = list(measurement.seconds), list(measurement.seconds.values())
        axis.barh(names[::-1], seconds[::-1], color=["#999999"] * (len(names) - 1) + ["#1b7f5c"])
        axis.set_title(f"{measurement.workload}\n{measurement.ratio:.1f}x the fastest rival", fontsize=9)
        axis.set_xlabel("seconds, best run")
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=120)
    plt.close(figure)
