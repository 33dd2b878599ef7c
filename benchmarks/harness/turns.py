"""Time functions in turns. No other module reads a benchmark's clock."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.harness.clock import Taken, taken_by, tree_cpu_s
from benchmarks.harness.experiment import Settings

FILL_S = 0.5  # short runs are repeated until they have taken this in total
MOST_ROUNDS = 40
QUIET_S, QUIET_SHARE, MOST_WAITS = 0.05, 0.4, 40

Samples = tuple[float, ...]  # seconds by the clock of the settings, in the order measured


def in_turns(runs: Mapping[str, Callable[[], Taken]], settings: Settings) -> dict[str, list[Taken]]:
    """Run functions in turns, so that a disturbance affects all of them; stop each one when its budget is spent.

    Each round starts with a different function, so that none benefits from its predecessor.
    """
    names = list(runs)
    found: dict[str, list[Taken]] = {name: [] for name in names}
    number = 0
    while number < settings.repetitions or (number < MOST_ROUNDS and sum(map(_spent_s, found.values())) < FILL_S):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            if _spent_s(found[name]) < settings.budget_s:
                wait_for_quiet()
                found[name].append(runs[name]())
        number += 1
    return found


def wait_for_quiet() -> None:
    """Wait until child processes are idle: a JVM that cleans up would slow down the next run."""
    if not any(path.read_text() for path in Path("/proc/self/task").glob("*/children")):
        return
    used = spark_cpu_s()
    for _ in range(MOST_WAITS):
        time.sleep(QUIET_S)
        before, used = used, spark_cpu_s()
        if used - before <= QUIET_SHARE * QUIET_S:
            return


def _spent_s(taken: list[Taken]) -> float:
    return sum(each.wall_s for each in taken)


def sampled(
    runs: Mapping[str, Callable[[], object]],
    settings: Settings,
    *,
    warm: bool = False,
    cpu: Callable[[], float] = time.process_time,
) -> dict[str, Samples]:
    """Return the times of functions from call to return; `warm` means that all have run before."""
    if not warm:
        for run in runs.values():
            run()
    taken = in_turns({name: partial(taken_by, run, cpu) for name, run in runs.items()}, settings)
    return {name: by_clock(each, settings) for name, each in taken.items()}


def by_clock(taken: Sequence[Taken], settings: Settings) -> Samples:
    return tuple(each.by(settings.clock) for each in taken)


def medians(samples: Mapping[str, Samples]) -> dict[str, float]:
    return {name: statistics.median(each) for name, each in samples.items()}


def spark_cpu_s() -> float:
    """Return the CPU time of this process, its JVM and their workers."""
    return tree_cpu_s(os.getpid())
