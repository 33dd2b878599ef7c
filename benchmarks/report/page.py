"""Write PERFORMANCE.md, its charts and the speed figures of the README from the records of benchmarks.

Every number and every verdict comes from a record; none is written by hand.
"""

from __future__ import annotations

import re
import textwrap
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
TABLE = re.compile(r"(?<=<!-- speed -->\n).*(?=<!-- end of speed -->)", re.DOTALL)
SUMMARY = re.compile(r"(?<=<!-- speed summary -->).*?(?=<!-- end of speed summary -->)", re.DOTALL)
FAMILIES = ("Flink CEP", "Flink SQL", "DuckDB", "Spark SQL", "plain Python")


def write(results: Path) -> Iterator[Path]:
    records = load_all(results)
    measured = {name: workloads for name, (_, workloads) in records.items()}
    pictures = {path.stem: path.relative_to(ROOT) for path in draw(measured, FIGURES)}
    parts = [_opening()]
    several = [(name, _on_several) for name in measured if name.startswith("rivals on")]
    shown = dict([("rivals", _rivals), *several, ("growth", _growth), ("micro", _stages)])
    for name, section in shown.items():
        if measured.get(name):
            parts += section(measured[name])
            parts += [f"![{name}]({pictures[name]})", ""] if name in pictures else []
    parts += papers(measured, pictures)
    rest = list(others({name: workloads for name, workloads in measured.items() if name not in shown}))
    parts += ["## Other experiments\n", *rest] if rest else []
    parts += _runs(records)
    PAGE.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    yield PAGE
    if measured.get("rivals"):
        table = "\n".join(_speed(measured["rivals"]))
        text = README.read_text(encoding="utf-8")
        text = SUMMARY.sub(lambda _: _summary(measured["rivals"]), text)
        README.write_text(TABLE.sub(lambda _: f"\n{table}\n\n", text), encoding="utf-8")
        yield README


def _opening() -> str:
    return """# Benchmark results

This page is generated from the records of `make bench` and `make bench-full`. Before measuring, each benchmark checks
that all engines and strategies return the same rows; other engines are compared by row count and a hash of all values.
All are warmed up and then run in turns, several times each. Times are medians. ± is half the difference between the
slowest and the fastest run; with ten runs or more, the slowest and the fastest tenth are excluded.
[Method](docs/performance.md) describes how to run the benchmarks yourself.
"""


def _runs(records: dict[str, tuple[dict[str, Any], list[Measured]]]) -> list[str]:
    lines = [
        "## Runs\n",
        "| benchmark | date | commit | scale | repetitions | cores | clock | system load |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    machines, versions = dict[str, None](), dict[str, None]()
    for name, (content, _) in records.items():
        run, settings = content["run"], content["settings"]
        commit = run["commit"] + (" with changes" if run["changed_files"] else "")
        machine = run["machine"]
        how = (f"{settings['scale']:g}", settings["repetitions"], settings["cores"], settings["clock"])
        cells = (name, run["at"][:10], commit, *how, f"{machine['load']:.1f}")
        lines.append(f"| {' | '.join(map(str, cells))} |")
        machines[
            f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}"
        ] = None
        versions[", ".join(f"{package} {version}" for package, version in run["versions"].items())] = None
    return [*lines, "", f"Machine: {'; '.join(machines)}. Versions: {'; '.join(versions)}.", ""]


def _ours(measured: Measured, name: str = "streamsift") -> Times:
    return next(times for times in measured.times if times.name == name)


def _best(measured: Measured, family: str) -> Times | None:
    """Return the fastest formulation of an engine."""
    formulations = [times for times in measured.times if times.name.startswith(family)]
    return min(formulations, key=lambda times: times.median) if formulations else None


def _rivals(measured: list[Measured]) -> Iterator[str]:
    yield "## Comparison with other engines\n"
    yield "All engines run on one core and on the same events, in the same run. `n×` means n times the time of"
    yield "Streamsift in one process. For DuckDB and Spark SQL, the table shows the fastest of several formulations."
    yield "The plain Python automaton is our own implementation of the SASE approach.\n"
    yield from _comparison(measured)


def _on_several(measured: list[Measured]) -> Iterator[str]:
    yield "### Several cores\n"
    yield "DuckDB's threads, Flink's parallelism and Spark's cores equal the number of cores in the table of"
    yield "[runs](#runs). Streamsift in one process and the plain Python automaton use one thread.\n"
    yield from _comparison(measured)


def _comparison(measured: list[Measured]) -> Iterator[str]:
    yield f"| workload, events, rows | Streamsift | {' | '.join(FAMILIES)} |"
    yield f"| --- | --- |{' --- |' * len(FAMILIES)}"
    for each in measured:
        ours = _ours(each)
        cells = [_cell(_best(each, family), ours) for family in FAMILIES]
        rate = f"{each.events / ours.median / 1e6:.1f} M events/s ±{ours.spread / 2:.0%}"
        yield f"| {each.workload}; {each.events:,}; {each.rows:,} | {rate} | {' | '.join(cells)} |"
    yield ""
    yield "Streamsift and Spark SQL on Spark, with one Parquet file as input:\n"
    yield "| workload | Streamsift on Spark | fastest Spark SQL, relative time |"
    yield "| --- | --- | --- |"
    for each in measured:
        other = _best(each, "Spark SQL")
        if other is not None:
            ours = _ours(each, "streamsift on Spark")
            yield f"| {each.workload} | {ours.median:.2f} s | {_cell(other, ours)}, {other.name.split(': ')[1]} |"
    yield ""
    yield from _verdict(measured)
    reasons = dict.fromkeys(f"{each.name}: {each.reason}" for workload in measured for each in workload.skipped)
    yield from (f"Not run here: {reason}.\n" for reason in reasons)


def _verdict(measured: list[Measured]) -> Iterator[str]:
    """Name the engines that are faster than Streamsift, and those with a lower median whose spread overlaps."""
    pairs = [(each, other, ours) for each in measured for other, ours in _lower(each)]
    faster = [f"{each.workload} ({other.name})" for each, other, ours in pairs if other.band[1] < ours.band[0]]
    close = [f"{each.workload} ({other.name})" for each, other, ours in pairs if other.band[1] >= ours.band[0]]
    yield (
        f"Faster than Streamsift: {'; '.join(faster)}.\n"
        if faster
        else "No other engine is faster than Streamsift, in one process or on Spark.\n"
    )
    if close:
        yield f"Lower median than Streamsift, but within the spread: {'; '.join(close)}.\n"


def _lower(measured: Measured) -> Iterator[tuple[Times, Times]]:
    """Yield the engines with a lower median than Streamsift, in one process or on Spark, with Streamsift's times."""
    for times in measured.times:
        ours = _ours(measured, "streamsift on Spark" if times.name.startswith("Spark SQL") else "streamsift")
        if times.side is not Side.OURS and times.median < ours.median:
            yield times, ours


def _cell(other: Times | None, ours: Times) -> str:
    return "" if other is None else f"{other.median / ours.median:,.1f}×"


def _growth(measured: list[Measured]) -> Iterator[str]:
    yield "## Growth\n"
    yield "The exponent is the slope of a log-log fit: 1 means linear growth, 0 means no growth.\n"
    yield "| strategy, parameter | from → to | seconds, maximum ± | exponent |"
    yield "| --- | --- | --- | --- |"
    for name, points in growth_curves(measured).items():
        (first, first_s), (last, last_s) = points[0], points[-1]
        most = max(each.times[0].spread for each in measured if each.workload.startswith(f"{name} = ")) / 2
        seconds = f"{first_s:.3g} → {last_s:.3g} ±{most:.0%}"
        yield f"| {name} | {first:,.0f} → {last:,.0f} | {seconds} | {exponent(points):.2f} |"
    yield ""


def _stages(measured: list[Measured]) -> Iterator[str]:
    yield "## Time per stage\n"
    yield "Nanoseconds per event in each stage. On Spark, a stage is the difference between two runs, one of which"
    yield "includes the stage.\n"
    yield "| strategy | stages | total, and its limit |"
    yield "| --- | --- | --- |"
    for each in measured:
        stages = ", ".join(
            f"{times.name} {times.median * 1e9 / each.events:,.0f} ±{times.spread / 2:.0%}" for times in each.times
        )
        yield f"| {each.workload} | {stages} | {each.headline} |"
    yield ""


def _speed(measured: list[Measured]) -> Iterator[str]:
    """Yield the README's table: one row per workload, other engines by relative time."""
    yield "| workload | Streamsift | Flink CEP, relative time | DuckDB, relative time |"
    yield "| --- | --- | --- | --- |"
    for each in measured:
        ours = _ours(each)
        flink, duckdb = (_cell(_best(each, family), ours) for family in ("Flink CEP", "DuckDB"))
        rate = f"{each.events / ours.median / 1e6:.1f} M events/s"
        yield f"| {each.workload} | {rate} | {flink or 'not run'} | {duckdb} |"


def _summary(measured: list[Measured]) -> str:
    """Return the README's sentence on speed, with the ranges of its table; wrapped as a list item."""
    ranges = []
    for family in ("DuckDB", "Flink CEP"):
        pairs = [(_best(each, family), _ours(each)) for each in measured]
        factors = [other.median / ours.median for other, ours in pairs if other is not None]
        if factors:
            ranges.append(f"{_range(min(factors), max(factors))} times as fast as {family}")
    claim = f"on one core, the local engine is {' and '.join(ranges)} ([benchmarks](PERFORMANCE.md))."
    return textwrap.fill(claim, 118, subsequent_indent="  ", break_on_hyphens=False)


def _range(low: float, high: float) -> str:
    digits = 1 if high < 10 else 0
    return f"{low:,.{digits}f} to {high:,.{digits}f}"
