"""Compare left, right, bushy and inner trees with the tree that the cost model chooses, with and without Kleene groups.

These are the experiments of "Optimizing Expressibility and Performance of Kleene Operators on Binary Tree-based
Directed Graph in Complex Event Processing", figures 7 to 11: join order, population, selectivity, window, position of
the group. The music ratings of the paper are not available; events are generated with the populations of its table 1.
Most records belong to classes that no query names; they are omitted. A larger scale makes only the stream longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import streamsift as ss
from benchmarks.data.ratings import POPULATION, ratings
from benchmarks.detect.intermediate import format_rows, peak_mb, rows_built, searched
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import sampled
from benchmarks.report.measurement import Measurement
from streamsift.physical.plan.options import PlannerOptions, PlanShape
from streamsift.physical.plan.plan import Alternative, DetectPlan
from streamsift.runtime.detect.run import group_matches, match_places
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare

SKEWED = {"A": 9000, "B": 3000, "C": 1000, "D": 300}
RECORDS, FEW_RECORDS = 10_000_000, 500_000
SHAPES = (PlanShape.AUTO, PlanShape.LEFT, PlanShape.RIGHT, PlanShape.BUSHY, PlanShape.INNER)


@dataclass(frozen=True, slots=True)
class Cell:
    figure: str
    pattern: str
    window: int = 5_000
    where: str = ""
    records: int = RECORDS
    skewed: bool = False

    @property
    def text(self) -> str:
        return f"PATTERN {self.pattern}" + f" WHERE {self.where}" * bool(self.where) + f" WITHIN {self.window}"

    @property
    def name(self) -> str:
        return f"{self.figure}: {self.pattern}" + f", {self.where}" * bool(self.where) + f", window {self.window}"


def cells() -> Iterator[Cell]:
    for pattern in ("A; B; C; D+", "A+; B; C; D", "A; B; C; D"):
        yield Cell("figure 7", pattern)
    for pattern in ("D; C; B; A+", "D+; C; B; A", "A+; B; C; D", "A; B; C"):
        yield Cell("figure 8", pattern)
    for pattern in ("A; B; C; D", "D; C; B; A", "B; D; A; C"):
        yield Cell("skewed", pattern, 1_000, skewed=True)
    for left, right in (("A", "B"), ("C", "D")):
        for factor in (1, 0.25, 0.0625):  # for two uniform values, x < f * y has a selectivity of f / 2
            yield Cell("figure 9", "A; B; C; D+", where=f"{left}.x < {factor} * {right}.x")
            yield Cell("figure 9", "A; B; C; D", where=f"{left}.x < {factor} * {right}.x")
    for window in (2_500, 7_500, 10_000):
        yield Cell("figure 10", "A; B; C; D+", window)
        yield Cell("figure 10", "A; B; C; D", window)
    for number, name in enumerate("ABCD"):
        for quantifier in ("[3]", "+", "*"):
            steps = [letter + quantifier * (letter == name) for letter in "ABCD"]
            yield Cell(f"figure 11, {number + 1}", "; ".join(steps), 10_000, records=FEW_RECORDS)


def found_rows(plan: Alternative, events: Events, shape: PlanShape) -> np.ndarray:
    """Return sorted numbers [.., matches] that identify each match: its events; size, ends and sum of each group."""
    parts: list[np.ndarray] = []
    if plan.groups is None:
        parts = [rows.astype(np.int64) for rows in match_places(plan, events, PlannerOptions(plan=shape))]
    else:
        for found in group_matches(plan, events, PlannerOptions(plan=shape)):
            sums = np.concatenate([[0], np.cumsum(found.places, dtype=np.int64)])
            parts.append(np.vstack([found.events(), found.sizes, sums[found.stop] - sums[found.first]]))
    rows = np.concatenate(parts, axis=1) if parts else np.empty((1, 0), np.int64)
    return rows[:, np.lexsort(rows[::-1])]


def search(plan: Alternative, events: Events, shape: PlanShape) -> None:
    found = match_places if plan.groups is None else group_matches
    for _ in found(plan, events, PlannerOptions(plan=shape)):  # type: ignore[operator]
        pass


def compare(cell: Cell, settings: Settings) -> Iterator[Measurement]:
    """Measure the time and memory of each shape."""
    table = ratings(SKEWED if cell.skewed else POPULATION, settings.scaled(cell.records), settings.seed)
    plan = ss.query(cell.text).plan(table.schema, "t", "kind", None)
    assert isinstance(plan, DetectPlan)
    alternative, events = plan.alternatives[0], prepare(plan.query, table)
    expected = found_rows(alternative, events, PlanShape.AUTO)
    for shape in SHAPES[1:]:
        assert np.array_equal(found_rows(alternative, events, shape), expected), f"plan={shape}: matches differ"
    runs = {f"plan={shape}": partial(search, alternative, events, shape) for shape in SHAPES}
    times = Measurement(cell.name, expected.shape[1], sampled(runs, settings, warm=True))
    report(times)
    yield times
    memory_mb = {name: peak_mb(run) for name, run in runs.items()}
    for shape, most in zip(SHAPES, memory_mb.values(), strict=True):
        rows = rows_built(searched(alternative, events, PlannerOptions(plan=shape)))
        print(f"      {shape:6} {most:5.0f} MB at most;  built {format_rows(rows)}")
    yield Measurement(f"memory of {cell.name}", expected.shape[1], memory_mb, unit="MB")


def report(times: Measurement) -> None:
    (_, auto), *others = times.medians.items()
    ratios = "  ".join(f"{shape.removeprefix('plan=')} {taken / auto:.2f}" for shape, taken in others)
    print(
        f"  {times.workload}: {times.rows:,} matches, auto {auto * 1000:.1f} ms, {1 / times.ratio:.2f} of the best; "
        f"{ratios}"
    )


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    found = [measurement for cell in cells() for measurement in compare(cell, settings)]
    times = [each for each in found if each.unit == "seconds"]
    worst = min(times, key=lambda each: each.ratio)
    print(f"  auto takes at most {1 / worst.ratio:.2f} of the best shape's time, in {len(times)} cells")
    return found


if __name__ == "__main__":
    main()
