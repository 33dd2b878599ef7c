"""Records of benchmarks in, PERFORMANCE.md, its pictures and the README's speed table out: nothing that no run gave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness.experiment import Side
from benchmarks.harness.measure import Measured, Times
from benchmarks.harness.record import ROOT, load_all
from benchmarks.report.figures import draw, exponent, growth_curves
from benchmarks.report.paper_sections import others, papers

PAGE = ROOT / "PERFORMANCE.md"
FIGURES = ROOT / "docs" / "images" / "performance"
README = ROOT / "README.md"
MARKS = re.compile(r"(?<=<!-- speed -->\n).*(?=<!-- end of speed -->)", re.DOTALL)
FAMILIES = ("Flink CEP", "Flink SQL", "DuckDB", "Spark SQL", "plain Python")


def write(results: Path) -> Iterator[Path]:
    records = load_all(results)
    measured = {name: found for name, (_, found) in records.items()}
    pictures = {path.stem: path.relative_to(ROOT) for path in draw(measured, FIGURES)}
    parts = [_opening(), *_runs(records)]
    several = [(name, _on_several) for name in measured if name.startswith("rivals on")]
    shown = dict([("rivals", _rivals), *several, ("growth", _growth), ("micro", _stages)])
    for name, section in shown.items():
        if measured.get(name):
            parts += section(measured[name])
            parts += [f"![{name}]({pictures[name]})", ""] if name in pictures else []
    parts += papers(measured, pictures)
    rest = list(others({name: found for name, found in measured.items() if name not in shown}))
    parts += ["## The other experiments\n", *rest] if rest else []
    PAGE.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    yield PAGE
    if measured.get("rivals"):
        table = "\n".join(_speed(measured["rivals"]))
        text = README.read_text(encoding="utf-8")
        README.write_text(MARKS.sub(lambda _: f"\n{table}\n\n", text), encoding="utf-8")
        yield README


def _opening() -> str:
    return """# Performance

This page is written from the records of `make bench` or `make bench-full`. Where contenders are compared, they gave
the same rows before a time was taken; rivals by the number of their rows and a hash of all values. All run in turns,
several times each once they are warm. Times are medians, and ± is half the distance of the slowest from the fastest
run; of ten runs or more a tenth at either end is left out of it.
[How to measure it yourself](docs/performance.md).
"""


def _runs(records: dict[str, tuple[dict[str, Any], list[Measured]]]) -> list[str]:
    lines = [
        "| benchmark | run at | commit | scale | repetitions | cores | clock | load of the machine |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    machines, versions = dict[str, None](), dict[str, None]()
    for name, (content, _) in records.items():
        run, settings = content["run"], content["settings"]
        commit = run["commit"] + (" and changes" if run["changed_files"] else "")
        machine = run["machine"]
        how = (f"{settings['scale']:g}", settings["repetitions"], settings["cores"], settings["clock"])
        cells = (name, run["at"], commit, *how, f"{machine['load']:.1f}")
        lines.append(f"| {' | '.join(map(str, cells))} |")
        machines[
            f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}"
        ] = None
        versions[", ".join(f"{package} {version}" for package, version in run["versions"].items())] = None
    return [*lines, "", f"Machine: {'; '.join(machines)}. Versions: {'; '.join(versions)}.", ""]


def _ours(measured: Measured, name: str = "streamsift") -> Times:
    return next(times for times in measured.times if times.name == name)


def _best(measured: Measured, family: str) -> Times | None:
    """The fastest of a family's formulations."""
    found = [times for times in measured.times if times.name.startswith(family)]
    return min(found, key=lambda times: times.median) if found else None


def _rivals(measured: list[Measured]) -> Iterator[str]:
    yield "## Against rivals, on the same events in the same run\n"
    yield "Each on one core. `n×`: it takes n times as long as Streamsift in one process; of DuckDB and Spark SQL the"
    yield "fastest of several formulations. The plain Python automaton is our own, in the manner of SASE.\n"
    yield from _comparison(measured)


def _on_several(measured: list[Measured]) -> Iterator[str]:
    yield "### The same on several cores\n"
    yield "DuckDB has as many threads, Flink as much parallelism, Spark as many cores as the run's line above says."
    yield "Streamsift in one process has one thread, and so has the plain Python automaton.\n"
    yield from _comparison(measured)


def _comparison(measured: list[Measured]) -> Iterator[str]:
    yield f"| question, events, rows | Streamsift | {' | '.join(FAMILIES)} |"
    yield f"| --- | --- |{' --- |' * len(FAMILIES)}"
    for each in measured:
        ours = _ours(each)
        cells = [_cell(_best(each, family), ours) for family in FAMILIES]
        rate = f"{each.events / ours.median / 1e6:.1f} M events/s ±{ours.spread / 2:.0%}"
        yield f"| {each.workload}; {each.events:,}; {each.rows:,} | {rate} | {' | '.join(cells)} |"
    yield ""
    yield "On Spark, both with one Parquet file as input:\n"
    yield "| question | Streamsift on Spark | fastest Spark SQL |"
    yield "| --- | --- | --- |"
    for each in measured:
        rival = _best(each, "Spark SQL")
        if rival is not None:
            ours = _ours(each, "streamsift on Spark")
            yield f"| {each.workload} | {ours.median:.2f} s | {_cell(rival, ours)}, {rival.name.split(': ')[1]} |"
    yield ""
    yield from _verdict(measured)
    reasons = dict.fromkeys(f"{each.name}: {each.reason}" for found in measured for each in found.skipped)
    yield from (f"Not run here: {reason}.\n" for reason in reasons)


def _verdict(measured: list[Measured]) -> Iterator[str]:
    """Who is faster than ours; of a lower median with bands that overlap, that the run does not tell."""
    pairs = [(each, rival, ours) for each in measured for rival, ours in _lower(each)]
    faster = [f"{each.workload} ({rival.name})" for each, rival, ours in pairs if rival.band[1] < ours.band[0]]
    close = [f"{each.workload} ({rival.name})" for each, rival, ours in pairs if rival.band[1] >= ours.band[0]]
    yield (
        f"Faster than Streamsift: {'; '.join(faster)}.\n"
        if faster
        else "No rival is faster than Streamsift, here or on Spark.\n"
    )
    if close:
        yield f"With a lower median, but inside the noise of this run: {'; '.join(close)}.\n"


def _lower(measured: Measured) -> Iterator[tuple[Times, Times]]:
    """Rivals with a lower median than ours in one process, or on Spark than ours there; and ours."""
    for times in measured.times:
        ours = _ours(measured, "streamsift on Spark" if times.name.startswith("Spark SQL") else "streamsift")
        if times.side is not Side.OURS and times.median < ours.median:
            yield times, ours


def _cell(rival: Times | None, ours: Times) -> str:
    return "" if rival is None else f"{rival.median / ours.median:,.1f}×"


def _growth(measured: list[Measured]) -> Iterator[str]:
    yield "## Growth\n"
    yield "The exponent is the slope of a line through the logarithms: 1 grows in step, 0 not at all.\n"
    yield "| strategy, axis | from → to | seconds, ± at most | exponent |"
    yield "| --- | --- | --- | --- |"
    for name, points in growth_curves(measured).items():
        (first, first_s), (last, last_s) = points[0], points[-1]
        most = max(each.times[0].spread for each in measured if each.workload.startswith(f"{name} = ")) / 2
        seconds = f"{first_s:.3g} → {last_s:.3g} ±{most:.0%}"
        yield f"| {name} | {first:,.0f} → {last:,.0f} | {seconds} | {exponent(points):.2f} |"
    yield ""


def _stages(measured: list[Measured]) -> Iterator[str]:
    yield "## Where a second goes\n"
    yield "Nanoseconds for an event in each stage; on Spark by the difference of runs that do one thing more each.\n"
    yield "| strategy | stages | whole, against a bound |"
    yield "| --- | --- | --- |"
    for each in measured:
        stages = ", ".join(
            f"{times.name} {times.median * 1e9 / each.events:,.0f} ±{times.spread / 2:.0%}" for times in each.times
        )
        yield f"| {each.workload} | {stages} | {each.headline} |"
    yield ""


def _speed(measured: list[Measured]) -> Iterator[str]:
    """The README's: one line a question, the rivals by ratio."""
    yield "| on one core | Streamsift | Flink CEP takes | DuckDB takes |"
    yield "| --- | --- | --- | --- |"
    for each in measured:
        ours = _ours(each)
        flink, duckdb = (_cell(_best(each, family), ours) for family in ("Flink CEP", "DuckDB"))
        rate = f"{each.events / ours.median / 1e6:.1f} M events/s"
        yield f"| {each.workload} | {rate} | {flink or 'not run'} | {duckdb} |"
