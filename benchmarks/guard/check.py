"""Compare the guarded cases with their frozen loops, and the ratios with the recorded ones.

A case and its loop run in turns in one process and are timed by its CPU time, so that neither the machine nor other
work affects the ratio. A case that is too slow is measured up to two more times, because noise only adds time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.guard.cases import CASES, Case, make_events, runner
from benchmarks.guard.frozen import Frozen

THRESHOLDS = Path(__file__).with_name("thresholds.json")
ALLOWED = 1.3  # times the recorded ratio
ROUNDS = 7
CHANCES = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """A ratio to the frozen loop and the recorded ratio, which is None for a new case."""

    name: str
    ratio: float
    recorded: float | None

    @property
    def slower(self) -> bool:
        return self.recorded is not None and self.ratio > self.recorded * ALLOWED

    def __str__(self) -> str:
        if self.recorded is None:
            return f"  {self.name:24} {self.ratio:8.3f}  no threshold: record it"
        change = f"{self.ratio / self.recorded:5.2f}x of the recorded {self.recorded:.3f}"
        return f"  {self.name:24} {self.ratio:8.3f}  {change}{'  SLOWER' if self.slower else ''}"


def ratio(run: Callable[[], object], frozen: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the best time of one function relative to the best of the other."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for number, each in enumerate((run, frozen)):
            start = time.process_time()
            each()
            best[number] = min(best[number], time.process_time() - start)
    return best[0] / best[1]


def judged(name: str, measured: Callable[[], float], recorded: float | None, chances: int = CHANCES) -> Verdict:
    verdict = Verdict(name, measured(), recorded)
    for _ in range(chances - 1):
        if not verdict.slower:
            break
        verdict = min(verdict, Verdict(name, measured(), recorded), key=lambda each: each.ratio)
    return verdict


def check(cases: Sequence[Case] = CASES) -> list[Verdict]:
    table, frozen, found = make_events(), Frozen(), []
    recorded = json.loads(THRESHOLDS.read_text()) if THRESHOLDS.exists() else {}
    for case in cases:
        run = runner(case, table)
        rows = run()
        assert rows, f"{case.name} returns no rows"
        frozen.run(case.frozen)
        loop = case.frozen
        found.append(
            judged(case.name, lambda run=run, loop=loop: ratio(run, lambda: frozen.run(loop)), recorded.get(case.name))
        )
        print(found[-1], flush=True)
    return found


def record(verdicts: Sequence[Verdict]) -> None:
    THRESHOLDS.write_text(json.dumps({each.name: round(each.ratio, 4) for each in verdicts}, indent=2) + "\n")
