"""Records in, the sections on the papers out, a finding beside what the run gives; and on all other workloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.harness.measure import Measured, Times
from benchmarks.report.findings import Cases, Finding
from benchmarks.report.papers import FINDINGS, PICTURES


def papers(measured: Mapping[str, list[Measured]], pictures: Mapping[str, Path]) -> Iterator[str]:
    """A section for each paper that something was measured of."""
    found = [(finding, cases) for finding in FINDINGS if (cases := finding.cases(measured.get(finding.benchmark, [])))]
    if not found:
        return
    yield "## The papers' experiments\n"
    yield "Whether a run agrees is computed from it, by the rule beside the finding in `benchmarks/report/papers.py`."
    yield "Pictures have a line or bars for each contender; what is shaded, or a thin line on a bar, is the spread.\n"
    for paper, picture in PICTURES.items():
        of_paper = [(finding, cases) for finding, cases in found if finding.paper == paper]
        if of_paper:
            yield f"### {paper}\n"
            yield from [f"![{picture}]({pictures[picture]})", ""] if picture in pictures else []
            yield from _table(of_paper)


def others(measured: Mapping[str, list[Measured]]) -> Iterator[str]:
    """A table for each benchmark of the workloads that are no paper's."""
    for name, workloads in measured.items():
        known = [finding for finding in FINDINGS if finding.benchmark == name]
        left = [case for case in workloads if not any(finding.cases([case]) for finding in known)]
        if left:
            yield f"### {name}\n"
            yield "| workload | measured here | in a few words |"
            yield "| --- | --- | --- |"
            times_named = Counter(case.workload for case in left)
            for case in left:
                rows = f"; {case.events:,} rows" if times_named[case.workload] > 1 else ""
                yield f"| {case.workload}{rows} | {_times(case)} | {case.headline} |"
            yield ""


def _table(found: list[tuple[Finding, Cases]]) -> Iterator[str]:
    yield "| figure | it finds | this run | in a sentence | measured here |"
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
    base = max(first.median, 1e-9)  # of memory and of stages by difference there may be none
    listed = [f"; {times.name} {times.median / base:.2f}×{_spread(times)}" for times in rest]
    listed += [f"; {each.name} {each.reason}" for each in case.skipped]
    return f"{first.name} {_amount(first, case.unit)}{_spread(first)}{''.join(listed)}"


def _amount(times: Times, unit: str) -> str:
    if unit != "seconds":
        return f"{times.median:.3g} {unit}"
    return f"{times.median:.3g} s" if times.median >= 1 else f"{times.median * 1000:.3g} ms"


def _spread(times: Times) -> str:
    """A single sample has none."""
    return f" ±{times.spread / 2:.0%}" if len(times.seconds) > 1 else ""
