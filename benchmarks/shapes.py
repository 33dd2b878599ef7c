"""Left, right, bushy and inner trees against the tree that the cost model chooses, with and without Kleene groups.

The experiments of "Optimizing Expressibility and Performance of Kleene Operators on Binary Tree-based Directed Graph in
Complex Event Processing", figures 7 to 11: order of joins, population, selectivity, window, position of the group.
Its music ratings are not at hand: events are generated with the populations of its table 1. Most of its records are of
other classes, which no query names; they are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import streamsift as ss
from benchmarks.data.ratings import POPULATION, ratings
from benchmarks.intermediate import peak_mb, rows_built, searched, told
from benchmarks.report import Measurement
from streamsift.physical.choices import Choices, PlanShape
from streamsift.physical.plan import Alternative, DetectPlan
from streamsift.runtime.detect import group_matches, match_rows
from streamsift.runtime.events import Events, prepare

SKEWED = {"A": 9000, "B": 3000, "C": 1000, "D": 300}
RECORDS, FEW_RECORDS = 10_000_000, 500_000
SHAPES = (PlanShape.AUTO, PlanShape.LEFT, PlanShape.RIGHT, PlanShape.BUSHY, PlanShape.INNER)
ROUNDS, MOST_ROUNDS, LEAST_S = 4, 40, 0.4


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
        for factor in (1, 0.25, 0.0625):  # of two uniform values x < f * y holds for a share of f / 2
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
    """Numbers [.., matches] that tell each match: its events; size, ends and sum of each group; in one order."""
    parts = []
    if plan.groups is None:
        parts = [rows.astype(np.int64) for rows in match_rows(plan, events, Choices(plan=shape))]
    else:
        for found in group_matches(plan, events, Choices(plan=shape)):
            sums = np.concatenate([[0], np.cumsum(found.places, dtype=np.int64)])
            parts.append(np.vstack([found.events(), found.sizes, sums[found.stop] - sums[found.first]]))
    rows = np.concatenate(parts, axis=1)
    return rows[:, np.lexsort(rows[::-1])]


def seconds(plan: Alternative, events: Events, shape: PlanShape) -> float:
    """The time of one core, whatever else the machine does."""
    start = time.process_time()
    search = match_rows if plan.groups is None else group_matches
    for _ in search(plan, events, Choices(plan=shape)):  # type: ignore[operator]
        pass
    return time.process_time() - start


def compare(cell: Cell) -> Iterator[Measurement]:
    """The time of each shape, and its memory."""
    table = ratings(SKEWED if cell.skewed else POPULATION, cell.records)
    plan = ss.query(cell.text).plan(table.schema, "t", "kind", None)
    assert isinstance(plan, DetectPlan)
    alternative, events = plan.alternatives[0], prepare(plan.query, table)
    expected = found_rows(alternative, events, PlanShape.AUTO)
    best = dict.fromkeys(SHAPES, np.inf)
    for shape in SHAPES[1:]:
        assert np.array_equal(found_rows(alternative, events, shape), expected), f"plan={shape} finds other matches"
    begin = time.process_time()
    for number in range(MOST_ROUNDS):
        if number >= ROUNDS and time.process_time() - begin > LEAST_S:
            break
        for shape in (*SHAPES[number % 5 :], *SHAPES[: number % 5]):  # none has an advantage from what ran before it
            best[shape] = min(best[shape], seconds(alternative, events, shape))
    report(cell, expected.shape[1], best)
    yield Measurement(cell.name, expected.shape[1], {f"plan={shape}": taken for shape, taken in best.items()})
    memory_mb = {shape: peak_mb(lambda shape=shape: seconds(alternative, events, shape)) for shape in SHAPES}
    for shape, most in memory_mb.items():
        rows = rows_built(searched(alternative, events, Choices(plan=shape)))
        print(f"      {shape:6} {most:5.0f} MB at most;  built {told(rows)}")
    by_plan = {f"plan={shape}": most for shape, most in memory_mb.items()}
    yield Measurement(f"memory of {cell.name}", expected.shape[1], by_plan, unit="MB")


def report(cell: Cell, matches: int, best: dict[PlanShape, float]) -> None:
    auto, *others = best.values()
    ratios = "  ".join(f"{shape} {taken / auto:.2f}" for shape, taken in best.items() if shape is not PlanShape.AUTO)
    print(
        f"  {cell.name}: {matches:,} matches, auto {auto * 1000:.1f} ms, {auto / min(others):.2f} of the best; {ratios}"
    )


def main() -> list[Measurement]:
    found = [measurement for cell in cells() for measurement in compare(cell)]
    times = [each for each in found if each.unit == "seconds"]
    worst = min(times, key=lambda each: each.ratio)
    print(f"  auto takes at most {1 / worst.ratio:.2f} of the best shape's time, in {len(times)} cells")
    return found


if __name__ == "__main__":
    main()
