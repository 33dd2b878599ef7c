"""Measure the schedules of the top-k merge on generated queues: accesses weighted by their costs, and time.

These are figures 4.7 and 4.8 of the CPR thesis: queues of 10,000 scored entries, each with one partner in every other
queue, of which a share (rjs) can be joined; TA, because partners can be looked up. Every schedule must find the same
scores. A cell's cost is the sum of its sorted and random accesses, each times its cost in its queue, with one sample
per generated set of queues. A larger scale makes the queues longer.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from benchmarks.harness.clock import Taken, taken_by
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import Samples, by_clock, in_turns, medians
from benchmarks.report.measurement import Measurement
from streamsift.runtime.rank.merge_kernel import DONE, merge
from streamsift.runtime.rank.merge_queues import MergeQueues, link, new_matches, new_queues
from streamsift.runtime.rank.merge_schedules import MergeRules, new_state

SCHEDULES = ("round-robin", "gradient", "statistics", "wabs")
ENTRIES = 10_000
FIRST_SEED = 1_000  # lower seeds were used to develop the schedules
SEEDS_EACH = 5


@dataclass(frozen=True, slots=True)
class Cell:
    limit: int = 50
    queues: int = 2
    function: str = "MIN"
    selectivity: float = 1.0  # rjs
    scores: str = "uniform"
    sorted_costs: tuple[float, ...] = (10, 1)
    random_costs: tuple[float, ...] = (1, 1)

    @property
    def name(self) -> str:
        costs = ":".join(f"{cost:g}" for cost in self.sorted_costs)
        looked_up = ":".join(f"{cost:g}" for cost in self.random_costs)
        shape = f"{self.queues} queues, k {self.limit}, {self.function}, rjs {self.selectivity:g}, {self.scores}"
        return f"{shape}, costs [{costs}, {looked_up}]"


def scores(kind: str, entries: int, random: np.random.Generator) -> np.ndarray:
    match kind:
        case "uniform":
            found = random.random(entries)
        case "normal":
            found = np.clip(random.normal(0.5, 0.15, entries), 0, 1)
        case _:  # Zipf: the i-th best scores 1 / i
            found = 1 / random.permutation(np.arange(1, entries + 1))
    return found


def queues(cell: Cell, entries: int, seed: int) -> MergeQueues:
    """Build queues in which entry `id` joins entry `id` of the others, if the id is one of those that join."""
    random = np.random.default_rng(seed)
    joins = random.random(entries) < cell.selectivity
    found = new_queues(cell.queues, entries, cell.queues, entries * (cell.queues + 1))
    found.rows[:] = -1
    found.loaded[:] = entries
    found.complete[:] = True
    for part in range(cell.queues):
        own = scores(cell.scores, entries, random)
        order = np.argsort(-own)
        found.score[part] = own[order]
        found.rows[part, :, part] = order
        found.key[part] = np.where(joins[order], order, order + entries * (part + 1))
        link(found, part, 0, entries)
    return found


def rules(cell: Cell, schedule: str) -> MergeRules:
    together = cell.function in ("SUM", "AVG")
    sums = 1 if together else cell.queues
    looked_up = np.array(cell.random_costs)
    return MergeRules(
        sum_of=np.zeros(cell.queues, np.int64) if together else np.arange(cell.queues),
        constant=np.zeros(sums),
        group_of=np.zeros(sums, np.int64),
        takes_most=np.array([cell.function == "MAX"]),
        pairs=np.zeros((0, 3), np.int64),
        codes=np.zeros((0, 1), np.int64),
        costs=np.array(cell.sorted_costs) + looked_up.sum() - looked_up,
        limit=cell.limit,
        slack=0.0,
        looks_up=True,
        schedule=SCHEDULES.index(schedule),
    )


@dataclass(frozen=True, slots=True)
class Merged:
    """The best scores, the cost of the accesses and the time of a merge, without building the queues."""

    best: np.ndarray
    cost: float
    taken: Taken


def run(cell: Cell, schedule: str, entries: int, seed: int) -> Merged:
    data = queues(cell, entries, seed)
    room, state = new_matches(cell.queues, cell.limit), new_state(cell.queues, cell.queues)
    ended = []
    taken = taken_by(lambda: ended.append(merge(data, rules(cell, schedule), state, 1 << 40, room)))
    ((found, status),) = ended
    assert status == DONE
    cost = (data.read * np.array(cell.sorted_costs)).sum() + (data.fetches * np.array(cell.random_costs)).sum()
    return Merged(found.best[: found.counts[1]], float(cost), taken)


def costs(name: str, cell: Cell, settings: Settings) -> dict[str, Samples]:
    """Measure each schedule relative to round-robin on the same queues, after checking that scores are equal."""
    entries, ratios = settings.scaled(ENTRIES), dict[str, list[float]]()
    for seed in seeds(settings):
        merged = {schedule: run(cell, schedule, entries, seed) for schedule in SCHEDULES}
        base = merged["round-robin"]
        for schedule, each in merged.items():
            assert np.array_equal(each.best, base.best), f"{schedule} differs on {name}"
            ratios.setdefault(schedule, []).append(each.cost / base.cost)
    return {schedule: tuple(each) for schedule, each in ratios.items()}


def seeds(settings: Settings) -> range:
    first = settings.seeded(FIRST_SEED)
    return range(first, first + max(SEEDS_EACH, settings.repetitions))


def times(cell: Cell, settings: Settings) -> dict[str, Samples]:
    """Measure each schedule on the first set of queues."""
    entries, seed = settings.scaled(ENTRIES), seeds(settings)[0]
    runs = {schedule: partial(run, cell, schedule, entries, seed) for schedule in SCHEDULES}
    taken = in_turns({schedule: lambda run=each: run().taken for schedule, each in runs.items()}, settings)
    return {schedule: by_clock(each, settings) for schedule, each in taken.items()}


def compare(name: str, cell: Cell, settings: Settings) -> Measurement:
    relative = costs(name, cell, settings)
    ratios = medians(relative)
    print(f"  {name}: {', '.join(f'{schedule} {ratio:.2f}' for schedule, ratio in ratios.items())}", flush=True)
    headline = f"WABS costs {ratios['wabs']:.2f} of round-robin"
    return Measurement(name, settings.scaled(ENTRIES), relative, headline=headline, unit="relative to round-robin")


def figures() -> Iterator[tuple[str, Cell]]:
    """Return the cells of the thesis by figure, from easy to hard according to the thesis."""
    default = Cell()
    for cost in (1.0, 2.0, 5.0, 10.0):
        yield f"figure 4.7a: costs {cost:g}:1", replace(default, sorted_costs=(cost, 1.0))
    for costs in ((1.0, 1.0, 1.0), (10.0, 1.0, 1.0), (10.0, 5.0, 1.0)):
        three = replace(default, queues=3, sorted_costs=costs, random_costs=(1.0, 1.0, 1.0))
        yield f"figure 4.7b: costs {':'.join(f'{cost:g}' for cost in costs)}", three
    for k in (10, 20, 50, 100):
        yield f"figure 4.8a: k {k}", replace(default, limit=k)
    for function in ("MAX", "AVG", "MIN"):
        yield f"figure 4.8b: {function}", replace(default, function=function)
    for rjs in (1.0, 0.1, 0.01):
        yield f"figure 4.8c: rjs {rjs:g}", replace(default, selectivity=rjs)
    for kind in ("zipf", "uniform", "normal"):
        yield f"figure 4.8d: {kind}", replace(default, scores=kind)


def others() -> Iterator[tuple[str, Cell]]:
    """Return cells beyond the thesis: every combination of costs, scores and rjs; lookup costs; three queues."""
    default = Cell()
    for cost, kind, rjs in product((1.0, 2.0, 5.0, 10.0), ("uniform", "normal", "zipf"), (1.0, 0.1, 0.01)):
        yield from _named(replace(default, sorted_costs=(cost, 1.0), scores=kind, selectivity=rjs))
    for kind in ("normal", "zipf"):
        yield from _named(replace(default, function="AVG", scores=kind, selectivity=0.1))
    for looked_up in ((10.0, 1.0), (1.0, 10.0)):
        yield from _named(replace(default, random_costs=looked_up))
    for costs, rjs in product(((1.0, 1.0, 1.0), (10.0, 1.0, 1.0), (10.0, 5.0, 1.0)), (1.0, 0.1, 0.01)):
        three = Cell(queues=3, selectivity=rjs, sorted_costs=costs, random_costs=(1.0, 1.0, 1.0))
        yield from (*_named(three), *_named(replace(three, function="AVG")))


def _named(cell: Cell) -> Iterator[tuple[str, Cell]]:
    yield cell.name, cell


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    generated = seeds(settings)
    print(f"the cost of each schedule, relative to round-robin, seeds {generated[0]} to {generated[-1]}:")
    cells = dict([*figures(), *others()])
    found = [compare(name, cell, settings) for name, cell in cells.items()]
    wabs = {each.workload: each.medians["wabs"] for each in found}
    most = max(wabs, key=wabs.__getitem__)
    steep = statistics.median(wabs[name] for name, cell in cells.items() if max(cell.sorted_costs) == 10)
    print(f"  WABS at most {wabs[most]:.2f} of round-robin ({most})")
    print(f"  in the median cell under 10:1, round-robin costs {1 / steep:.2f} times as much")
    print("the time of each schedule, in the thesis's cells:")
    for name, cell in figures():
        found.append(Measurement(f"time of {name}", settings.scaled(ENTRIES), times(cell, settings)))
        listed = (f"{schedule} {taken * 1e3:.2f} ms" for schedule, taken in found[-1].medians.items())
        print(f"  {name}: {', '.join(listed)}", flush=True)
    return found


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, default=FIRST_SEED, help="the first of five")
    main(replace(DEFAULTS, seed=DEFAULTS.seed + arguments.parse_args().seed - FIRST_SEED))
