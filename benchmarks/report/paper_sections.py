"""Write the sections about the papers, each finding next to the result of the run, and the other workloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.harness.measure import Measured, Times
from benchmarks.report.findings import Cases, Finding
from benchmarks.report.papers import FINDINGS, PICTURES


def papers(measured: Mapping[str, list[Measured]], pictures: Mapping[str, Path]) -> Iterator[str]:
    """Yield a section for each paper with records."""
    found = [(finding, cases) for finding in FINDINGS if (cases := finding.cases(measured.get(finding.benchmark, [])))]
    if not found:
        return
    yield "## Experiments of the papers\n"
    yield "A rule next to each finding in `benchmarks/report/papers.py` decides from the record whether the run agrees."
    yield "Charts have a line, bar or point per engine or strategy; the shaded area, or a thin line, is the spread.\n"
    for paper, picture in PICTURES.items():
        of_paper = [(finding, cases) for finding, cases in found if finding.paper == paper]
        if of_paper:
            yield f"### {paper}\n"
            yield from [f"![{picture}]({pictures[picture]})", ""] if picture in pictures else []
            yield from _table(of_paper)


def others(measured: Mapping[str, list[Measured]]) -> Iterator[str]:
    """Yield a table for each benchmark that has workloads outside the papers."""
    for name, workloads in measured.items():
        known = [finding for finding in FINDINGS if finding.benchmark == name]
        left = [case for case in workloads if not any(finding.cases([case]) for finding in known)]
        if left:
            yield f"### {name}\n"
            yield "| workload | measured | summary |"
            yield "| --- | --- | --- |"
            times_named = Counter(case.workload for case in left)
            for case in left:
                rows = f"; {case.events:,} rows" if times_named[case.workload] > 1 else ""
                yield f"| {case.workload}{rows} | {_times(case)} | {case.headline} |"
            yield ""


def _table(found: list[tuple[Finding, Cases]]) -> Iterator[str]:
    yield "| figure | finding of the paper | this run | result | measured |"
    yield "| --- | --- | --- | --- | --- |"
    for finding, cases in found:
        verdict = finding.rule(cases)
        agrees = "agrees" if verdict.agrees else "**differs**"
        measured_here = "<br>".join(_here(finding, case) for case in cases)
        yield f"| {finding.figure} | {finding.finds} | {agrees} | {verdict.sentence} | {measured_here} |"
    yield ""


def _here(finding: Finding, case: Measured) -> str:
    return f"{finding.name_of(case)}: {_times(case)}"


def _times(case: Measured) -> str:
    first, *rest = case.times
    base = max(first.median, 1e-9)  # memory, and stages by difference, can be 0
    listed = [f"; {times.name} {times.median / base:.2f}×{_spread(times)}" for times in rest]
    listed += [f"; {each.name} {each.reason}" for each in case.skipped]
    return f"{first.name} {_amount(first, case.unit)}{_spread(first)}{''.join(listed)}"


def _amount(times: Times, unit: str) -> str:
    if unit != "seconds":
        return f"{times.median:.3g} {unit}"
    return f"{times.median:.3g} s" if times.median >= 1 else f"{times.median * 1000:.3g} ms"


def _spread(times: Times) -> str:
    """Return the spread of the times; a single sample has none."""
    return f" ±{times.spread / 2:.0%}" if len(times.seconds) > 1 else ""
