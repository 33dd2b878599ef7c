"""Draw the charts of PERFORMANCE.md: throughput by engine, growth, stages, and the papers' figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.experiment import Side
from benchmarks.harness.measure import Measured
from benchmarks.report import drawing
from benchmarks.report.drawing import COLOURS, OTHERS, OURS, panels
from benchmarks.report.paper_figures import paper_pictures


def growth_curves(measured: list[Measured]) -> dict[str, list[tuple[float, float]]]:
    """Return the points of each curve: the value of the parameter and the median seconds."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for each in measured:
        (value,) = each.parameters.values()
        curves.setdefault(each.workload.split(" = ")[0], []).append((value, each.times[0].median))
    return curves


def exponent(points: list[tuple[float, float]]) -> float:
    """Return the slope of log seconds over log value, by least squares."""
    values, seconds = np.log(np.array(points)).T
    return float(np.polyfit(values, seconds, 1)[0])


def draw(records: dict[str, list[Measured]], folder: Path) -> Iterator[Path]:
    """Draw the charts of the benchmarks that have records; none if matplotlib is missing."""
    if not drawing.is_there():
        return
    drawings = {"rivals": _rivals, "growth": _growth, "micro": _stages}
    for name, draw_one in drawings.items():
        if records.get(name):
            yield drawing.save(draw_one(records[name]), folder / f"{name}.svg")
    for name, figure in paper_pictures(records):
        yield drawing.save(figure, folder / f"{name}.svg")


def _rivals(measured: list[Measured]) -> Any:
    figure, axes = panels(len(measured), 2, 3.4)
    for axis, each in zip(axes, measured, strict=False):
        times = sorted(each.times, key=lambda times: -times.median)
        colours = [OURS if times.side is Side.OURS else OTHERS for times in times]
        rates = [each.events / times.median for times in times]
        axis.scatter(rates, [times.name for times in times], color=colours, s=60)  # no bars: a log axis has no zero
        axis.set_xscale("log")
        axis.grid(axis="both", color="#e5e5e5", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.set_title(each.workload, fontsize=9)
        axis.set_xlabel("events per second")
        axis.tick_params(labelsize=7)
    return figure


def _growth(measured: list[Measured]) -> Any:
    curves = growth_curves(measured)
    figure, axes = panels(len(curves), 3, 3.0)
    for axis, (name, points) in zip(axes, curves.items(), strict=False):
        values, seconds = zip(*points, strict=True)
        axis.loglog(values, seconds, "o-", color=OURS)
        axis.set_title(f"{name}: exponent {exponent(points):.2f}", fontsize=9)
        axis.set_xlabel(name.split(", ")[1])
        axis.set_ylabel("seconds")
    return figure


def _stages(measured: list[Measured]) -> Any:
    figure, axes = panels(1, 1, 4.0)
    figure.set_size_inches(10, 0.7 * len(measured) + 2)
    axis = axes[0]
    stages = list(dict.fromkeys(times.name for each in measured for times in each.times))
    shades = dict(zip(stages, [*COLOURS, *COLOURS], strict=False))
    labelled: set[str] = set()
    for each in measured:
        whole, start = sum(times.median for times in each.times), 0.0
        for times in each.times:
            share = times.median / whole
            label = None if times.name in labelled else times.name
            axis.barh(each.workload, share, left=start, color=shades[times.name], label=label, edgecolor="white")
            labelled.add(times.name)
            start += share
    axis.invert_yaxis()
    axis.set_xlabel("share of the time")
    axis.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return figure
