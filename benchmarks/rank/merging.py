"""Measure the best combinations of sequences as the window moves: schedules of the top-k merge, and keeping joins.

These are figures 4.4 to 4.6, 4.9 and 4.10 of the CPR thesis, on readings like those of the Intel lab (or
`--data FILE`), with the patterns of its table 4.3. The thesis merges by the average. For sequences in sequence, that is
one weighted sum here, which needs no merge; these cells therefore merge by MIN, or their sequences are parallel. Best
scores are compared before a ratio is printed. A larger scale makes only the stream longer.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.sensors import busiest, from_file, generated
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import medians, sampled
from benchmarks.report.measurement import Measurement
from streamsift.physical.plan.options import Schedule
from streamsift.physical.plan.plan import MergePlan, RankPlan
from streamsift.runtime import prepare
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks, ticks_of
from streamsift.runtime.matches import match_columns, objective_values, scores
from streamsift.runtime.paths import GaveUp, TickMatches
from streamsift.runtime.rank.merge import RankMerge

SEQUENCES = {
    "S7": ("EG", "EH", "EJ"),
    "S8": ("EK", "EL", "EM"),
    "S9": ("EI", "EN", "EO"),
    "S10": ("EG", "EH"),
    "S11": ("EJ", "EK", "EL", "EM"),
}
BINDING = {"time": "t", "type": "kind"}
EVENTS = 2_000
RAREST = "EM"  # the rarest of the classes that all cells need


@dataclass(frozen=True, slots=True)
class Cell:
    pattern: str = "S7; S8"
    function: str = "MIN"
    limit: int = 20
    window: int = 200
    step: int = 100
    is_near: bool = True  # motes at most 1 apart; otherwise equal motes
    is_nonlinear: bool = False  # the second sequence scores the root of a sum of squares

    def query(self) -> str:
        names = re.findall(r"S\d+", self.pattern)
        lines, objectives, linked = [], [], []
        for number, name in enumerate(names):
            classes = SEQUENCES[name]
            variables = [f"{kind} {kind.lower()}{number}" for kind in classes]
            lines.append(f"SEQ {name} = {'; '.join(variables)}")
            terms = [f"{name}.{kind.lower()}{number}.distance" for kind in classes]
            is_bent = self.is_nonlinear and number == 1
            objectives.append(
                f"MAX[SQRT({' + '.join(f'{t}^2' for t in terms)})]" if is_bent else f"MAX[{' + '.join(terms)}]"
            )
            linked.append(f"{name}.{classes[0].lower()}{number}.moteid")
        first, *others = linked
        pairs = [f"{first} <= {o} + 1 AND {first} >= {o} - 1" if self.is_near else f"{first} = {o}" for o in others]
        return (
            "\n".join(lines) + f"\nPATTERN {self.pattern} WHERE {' AND '.join(pairs)} "
            f"PREF {' AND '.join(objectives)} MERGE {self.function} "
            f"WITHIN {self.window} EVENTS UPDATE {self.step} EVENTS RETURN {self.limit}"
        )


class Run:
    """A cell on a table: its plan, events and windows."""

    def __init__(self, cell: Cell, table: pa.Table) -> None:
        plan = ss.query(cell.query()).plan(table.schema, "t", "kind", None, {"rank": "nra"})
        assert isinstance(plan, RankPlan)
        assert isinstance(plan.branches[0], MergePlan), plan.reasons
        self.cell, self.branch = cell, plan.branches[0]
        self.events: Events = prepare(plan.query, table)
        self.ticks: UpdateTicks = ticks_of(plan.query, self.events)

    def merged(self, schedule: Schedule, *, dynamic: bool) -> tuple[TickMatches, RankMerge]:
        """Return the candidates, and the merge that found them."""
        plan = replace(self.branch, schedule=schedule, keeps=dynamic)
        merge = RankMerge(plan, self.events, self.ticks, self.cell.limit)
        found = merge.best()
        assert not isinstance(found, GaveUp)
        return found, merge

    def best(self, found: TickMatches) -> list[tuple[int, float]]:
        """Return the best scores of each window, for comparison."""
        query = self.branch.alternative.query
        assert query.ranking is not None
        seen = match_columns(self.branch.alternative, self.events, found.places)
        score = scores(query.ranking, objective_values(query.ranking, seen))
        order = np.lexsort([-score, found.tick])
        tick, score = found.tick[order], score[order]
        rank = np.arange(tick.size) - np.searchsorted(tick, tick)
        return list(zip(tick[rank < self.cell.limit].tolist(), score[rank < self.cell.limit].tolist(), strict=True))


def schedules(name: str, cell: Cell, table: pa.Table, settings: Settings) -> Iterator[Measurement]:
    """Measure figures 4.4 to 4.6: each window from scratch, as in the thesis; times, and the number of accesses."""
    run = Run(cell, table)
    expected, accesses, runs = None, {}, {}
    for schedule in (Schedule.ROUND_ROBIN, Schedule.GRADIENT, Schedule.STATISTICS, Schedule.WABS):
        runs[schedule.value] = partial(run.merged, schedule, dynamic=False)
        found, merge = runs[schedule.value]()
        accesses[schedule.value] = float(merge.accesses.sorted)
        expected = expected or run.best(found)
        assert run.best(found) == expected, f"{schedule.value} differs on {name}"
    samples = sampled(runs, settings, warm=True)
    seconds = medians(samples)
    base, base_seconds = max(1.0, accesses["round-robin"]), seconds["round-robin"]
    listed = (f"{each} {count / base:.2f} ({seconds[each] / base_seconds:.2f})" for each, count in accesses.items())
    print(f"  {name}: {base:,.0f} accesses by round-robin; accesses (time): {', '.join(listed)}", flush=True)
    headline = f"WABS reads {accesses['wabs'] / base:.2f} of round-robin"
    yield Measurement(name, table.num_rows, samples, headline=headline)
    yield Measurement(f"accesses of {name}", table.num_rows, accesses, unit="accesses")


def moves(name: str, cell: Cell, table: pa.Table, settings: Settings) -> Measurement:
    """Measure figures 4.9 and 4.10: with and without keeping joins when the window moves."""
    run = Run(cell, table)
    runs = {way: partial(run.merged, Schedule.WABS, dynamic=way == "dTMM") for way in ("dTMM", "nTMM")}
    (kept, merge), (rebuilt, _) = (each() for each in runs.values())
    assert run.best(kept) == run.best(rebuilt), f"dTMM differs on {name}"
    samples = sampled(runs, settings, warm=True)
    dynamic, static = medians(samples).values()
    ratio = f"nTMM {static / dynamic:.2f}x"
    reused = merge.accesses.carried / max(1, merge.accesses.sorted)
    details = f"{ratio}; {reused:.0%} of accesses were reused, {merge.accesses.again} windows from scratch"
    print(f"  {name}: dTMM {dynamic * 1e3:.0f} ms, {details}", flush=True)
    chosen = "dTMM" if run.branch.keeps else "nTMM"
    return Measurement(name, table.num_rows, samples, headline=f"{ratio}; the engine takes {chosen}")


def schedule_cells() -> Iterator[tuple[str, Cell]]:
    """Return the cells by figure, from easy to hard according to the thesis."""
    default = Cell()
    for k in (10, 20, 40):
        yield f"figure 4.4: k {k}", replace(default, limit=k)
    for is_near in (True, False):
        yield f"figure 4.5a: {'near motes' if is_near else 'same mote'}", replace(default, is_near=is_near)
    for pattern in ("S7 & S8", "S7; S8"):
        yield f"figure 4.5b: {pattern}", replace(default, pattern=pattern)
    for function in ("MAX", "AVG", "MIN"):
        yield f"figure 4.5c: {function}", replace(default, pattern="S7 & S8", function=function)
    for pattern in ("S7; S8", "S10; S11"):
        yield f"figure 4.5d: {pattern}", replace(default, pattern=pattern)
    for pattern in ("(S7 & S8) & S9", "(S7 & S8); S9"):
        yield f"figure 4.6: {pattern}", replace(default, pattern=pattern, is_near=False)


def move_cells() -> Iterator[tuple[str, Cell]]:
    default = Cell(step=20)
    for step in (100, 40, 20, 10):
        yield f"figure 4.9a: step {step}", replace(default, step=step)
    for window in (100, 200, 400):
        yield f"figure 4.9b: window {window}", replace(default, window=window)
    for k in (10, 20, 40):
        yield f"figure 4.9c: k {k}", replace(default, limit=k)
    for pattern in ("S7 & S8", "S7; S8"):
        yield f"figure 4.9d: {pattern}", replace(default, pattern=pattern)
    for pattern in ("S7 & S8", "S7; S8"):
        yield f"figure 4.10: {pattern}", replace(default, pattern=pattern, is_nonlinear=True)


def main(settings: Settings = DEFAULTS, data: Path | None = None, locations: Path | None = None) -> list[Measurement]:
    events = settings.scaled(EVENTS)
    table = generated(events, settings.seed) if data is None else busiest(from_file(data, locations), events, RAREST)
    print("schedules, relative to round-robin (figures 4.4 to 4.6):")
    found = [each for name, cell in schedule_cells() for each in schedules(name, cell, table, settings)]
    print("dTMM against nTMM (figures 4.9 and 4.10):")
    return [*found, *(moves(name, cell, table, settings) for name, cell in move_cells())]


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, help="a Parquet file of readings, with moteid and temperature")
    arguments.add_argument("--locations", type=Path, help="lines of mote, x, y")
    given = arguments.parse_args()
    main(DEFAULTS, given.data, given.locations)
