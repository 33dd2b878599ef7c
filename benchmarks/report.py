"""Measured seconds in, a JSON file and a bar chart out."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PANELS_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Measurement:
    """The best time of each contender on one workload. The first is ours; all are where a headline compares them."""

    workload: str
    rows: int
    seconds: dict[str, float]
    compiled_share: float | None = None  # of our time, as a profiler sees it
    headline: str = ""
    stopped: dict[str, float] = field(default_factory=dict)  # contenders that did not end, and after how many seconds
    unit: str = "seconds, best run"

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

    columns = min(len(measurements), PANELS_IN_A_ROW)
    rows = -(-len(measurements) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(5 * columns, 3.5 * rows), squeeze=False)
    for axis in axes.flat[len(measurements) :]:
        axis.set_visible(False)
    for axis, measurement in zip(axes.flat, measurements, strict=False):
        names, seconds = list(measurement.seconds), list(measurement.seconds.values())
        others = "#1b7f5c" if measurement.headline else "#999999"
        axis.barh(names[::-1], seconds[::-1], color=[others] * (len(names) - 1) + ["#1b7f5c"])
        axis.set_title(f"{measurement.workload}\n{measurement.told}", fontsize=9)
        axis.set_xlabel(measurement.unit)
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=120)
    plt.close(figure)
