"""A number of panels in, an empty picture out; a picture that is drawn in, an SVG file out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

OURS, OTHERS = "#1b7f5c", "#999999"
COLOURS = ("#1b7f5c", "#e6aa68", "#ca3c25", "#1d1a31", "#7fb069", "#5b8e9e")


def is_there() -> bool:
    """Whether anything can be drawn: without matplotlib there are no pictures."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("No pictures: matplotlib is not installed.")
        return False
    mpl.use("Agg")
    mpl.rcParams["svg.fonttype"] = "none"  # letters, not their outlines
    mpl.rcParams["svg.hashsalt"] = "streamsift"  # the same numbers give the same file
    return True


def panels(count: int, columns: int, height: float) -> tuple[Any, Any]:
    """A figure, and its axes one after the other."""
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
