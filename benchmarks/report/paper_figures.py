"""Draw a chart per paper, with a panel for each of its figures that was measured, on the axes of the figure.

The names of the workloads determine the x axis: the number in which they differ, or else the names themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.measure import Measured, Times
from benchmarks.report.drawing import COLOURS, panels
from benchmarks.report.findings import Cases, Finding
from benchmarks.report.papers import FINDINGS, PICTURES

FIGURE = re.compile(r"^(?:\w+ of )?figures? [^:]*: ")
# Not part of a name, of costs such as 10:1, or of a quantifier. Frequencies such as 10x are numbers.
NUMBER = re.compile(r"(?<![\w.:\[])\d+(?:,\d{3})*(?:\.\d+)?(?=x?(?![\w.:\]]))")
WIDE = 20.0  # an axis that spans more than this factor is logarithmic
VARIES = "…"
LETTERS = 60  # that fit side by side below a panel


@dataclass(frozen=True, slots=True)
class Panel:
    """The points of the x axis, and the values of each series at these points."""

    title: str
    along: str
    unit: str
    points: tuple[float, ...] | tuple[str, ...]
    series: dict[str, dict[float | str, Times]]

    @property
    def is_line(self) -> bool:
        return len(self.points) > 1 and not isinstance(self.points[0], str)


def paper_pictures(records: dict[str, list[Measured]]) -> Iterator[tuple[str, Any]]:
    """Yield the file name and the figure of each paper."""
    for paper, name in PICTURES.items():
        found = [panel for finding in FINDINGS if finding.paper == paper for panel in panels_of(finding, records)]
        if found:
            figure, axes = panels(len(found), 3, 3.4)
            for axis, panel in zip(axes, found, strict=False):
                draw_panel(axis, panel)
            yield name, figure


def panels_of(finding: Finding, records: dict[str, list[Measured]]) -> Iterator[Panel]:
    cases = finding.cases(records.get(finding.benchmark, []))
    if finding.queries_are_contenders:
        yield from (_by_query(finding, case) for case in cases)
    elif groups := _by_number(cases):
        yield from (_line(finding, along, numbered) for along, numbered in groups.items())
    elif cases:
        yield _bars(finding, cases)


def _by_number(cases: Cases) -> dict[str, dict[float, Measured]]:
    """Group cases by the constant part of their names, then by the number that varies; empty if one has no number."""
    texts = [FIGURE.sub("", case.workload) for case in cases]
    found: dict[str, dict[float, Measured]] = {}
    for case, text in zip(cases, texts, strict=True):
        alike = [NUMBER.findall(other) for other in texts if NUMBER.sub(VARIES, other) == NUMBER.sub(VARIES, text)]
        varying = next((at for at, values in enumerate(zip(*alike, strict=True)) if len(set(values)) > 1), None)
        if varying is None:
            return {}
        number = list(NUMBER.finditer(text))[varying]
        along = text[: number.start()] + VARIES + text[number.end() :]
        found.setdefault(along, {})[float(number[0].replace(",", ""))] = case
    return found


def _line(finding: Finding, along: str, numbered: dict[float, Measured]) -> Panel:
    series: dict[str, dict[float | str, Times]] = {}
    for value, case in sorted(numbered.items(), key=lambda item: item[0]):
        for times in case.times:
            series.setdefault(times.name, {})[value] = times
    unit = next(iter(numbered.values())).unit
    return Panel(finding.figure, along.strip(f" :{VARIES}"), unit, tuple(sorted(numbered)), series)


def _bars(finding: Finding, cases: Cases) -> Panel:
    names, along = _labels(finding, cases)
    series: dict[str, dict[float | str, Times]] = {}
    for name, case in zip(names, cases, strict=True):
        for times in case.times:
            series.setdefault(times.name, {})[name] = times
    return Panel(finding.figure, along, cases[0].unit, names, series)


def _labels(finding: Finding, cases: Cases) -> tuple[tuple[str, ...], str]:
    """Return the names of cases without the figure, if that keeps them distinct, and a common number at their end."""
    names = [FIGURE.sub("", case.workload) for case in cases]
    if len(set(names)) < len(names):
        names = [finding.name_of(case) for case in cases]
    (last, *others) = {name.rpartition(", ")[2] for name in names}
    if others or len(names) == 1 or not NUMBER.search(last):
        return tuple(names), ""
    return tuple(name.removesuffix(f", {last}") for name in names), last


def _by_query(finding: Finding, case: Measured) -> Panel:
    """Split names such as `q1, no cache`: the query is a point of the x axis, the rest is the series."""
    series: dict[str, dict[float | str, Times]] = {}
    for times in case.times:
        query, _, how = times.name.partition(", ")
        series.setdefault(how or "auto", {})[query] = times
    points = tuple(dict.fromkeys(times.name.partition(", ")[0] for times in case.times))
    return Panel(finding.figure, case.workload, case.unit, points, series)


def draw_panel(axis: Any, panel: Panel) -> None:
    """Draw lines over numbers, and otherwise bars, or points if the values need a logarithmic axis."""
    is_log = _is_wide([times.median for values in panel.series.values() for times in values.values()])
    for number, (name, values) in enumerate(panel.series.items()):
        colour = COLOURS[number % len(COLOURS)]
        taken = list(values.values())
        medians, least, most = zip(*((times.median, *times.band) for times in taken), strict=True)
        if panel.is_line:
            axis.plot(list(values), medians, "o-", color=colour, label=name, markersize=3)
            axis.fill_between(list(values), least, most, color=colour, alpha=0.15, linewidth=0)
        else:
            width = 0.8 / len(panel.series)
            places = [panel.points.index(point) + (number + 0.5) * width - 0.4 for point in values]
            around = [[m - low for m, low in zip(medians, least, strict=True)]]
            around.append([high - m for m, high in zip(medians, most, strict=True)])
            if is_log:  # no bars: a log axis has no zero
                axis.errorbar(places, medians, yerr=around, fmt="o", color=colour, label=name, elinewidth=0.6)
            else:
                axis.bar(places, medians, width, color=colour, label=name, yerr=around, error_kw={"linewidth": 0.6})
    if panel.is_line:
        axis.set_xticks(panel.points, [f"{point:g}" for point in panel.points])
        if _is_wide(panel.points):
            axis.set_xscale("log")
            axis.set_xticks(panel.points, [f"{point:g}" for point in panel.points], minor=False)
            axis.set_xticks([], minor=True)
    else:
        slanted = {"rotation": 30, "ha": "right"} if len(" ".join(map(str, panel.points))) > LETTERS else {}
        axis.set_xticks(range(len(panel.points)), panel.points, **slanted)
    if is_log:
        axis.set_yscale("log")
        axis.grid(axis="y", color="#e5e5e5", linewidth=0.6)
    else:
        axis.set_ylim(bottom=0)
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel(panel.along, fontsize=8)
    axis.set_ylabel(panel.unit, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.legend(fontsize=6)


def _is_wide(values: list[float] | tuple[Any, ...]) -> bool:
    return min(values) > 0 and max(values) / min(values) > WIDE
