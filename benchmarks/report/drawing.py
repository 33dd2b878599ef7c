"""Create figures with panels, and save them as SVG files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

OURS, OTHERS = "#1b7f5c", "#999999"
COLOURS = ("#1b7f5c", "#e6aa68", "#ca3c25", "#1d1a31", "#7fb069", "#5b8e9e")


def is_there() -> bool:
    """Return True if matplotlib is installed, and set it up for SVG files."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("No charts: matplotlib is not installed.")
        return False
    mpl.use("Agg")
    mpl.rcParams["svg.fonttype"] = "none"  # text, not outlines
    mpl.rcParams["svg.hashsalt"] = "streamsift"  # the same data gives the same file
    return True


def panels(count: int, columns: int, height: float) -> tuple[Any, Any]:
    """Return a figure and its axes in reading order."""
    from matplotlib import pyplot as plt

    rows = math.ceil(count / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(5 * columns, height * rows), squeeze=False, layout="tight")
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    return figure, axes.flat


def save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
