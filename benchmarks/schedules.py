"""The schedules of the top-k merge on generated queues: accesses, weighted by their costs, and time.

Figures 4.7 and 4.8 of the CPR thesis: queues of 10,000 scored entries, each entry with one partner in every other
queue, of which a share (rjs) can be joined; TA, since partners can be looked up. Every schedule must find the same
scores. A cell's cost is its sorted and random accesses, each times what it costs in its queue.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from benchmarks.report import Measurement
from streamsift.runtime.merge_bounds import Queues, Rules
from streamsift.runtime.merge_queues import link_from
from streamsift.runtime.merge_schedules import new_steering
from streamsift.runtime.merge_search import DONE, Found, merge

SCHEDULES = ("round-robin", "gradient", "statistics", "wabs")
ENTRIES = 10_000
FIRST_SEED = 1_000  # those from 0 on were looked at while the schedules were made
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


def scores(kind: str, random: np.random.Generator) -> np.ndarray:
    match kind:
        case "uniform":
            found = random.random(ENTRIES)
        case "normal":
            found = np.clip(random.normal(0.5, 0.15, ENTRIES), 0, 1)
        case _:  # Zipf: the i-th best scores 1 / i
            found = 1 / random.permutation(np.arange(1, ENTRIES + 1))
    return found


def queues(cell: Cell, seed: int) -> Queues:
    """Entry `id` of a queue joins entry `id` of the others, if the id is one of those that join."""
    random = np.random.default_rng(seed)
    joins = random.random(ENTRIES) < cell.selectivity
    shape = cell.queues, ENTRIES
    score, key = np.empty(shape), np.empty(shape, np.int32)
    rows = np.full((*shape, cell.queues), -1, np.int32)
    for part in range(cell.queues):
        own = scores(cell.scores, random)
        order = np.argsort(-own)
        score[part] = own[order]
        rows[part, :, part] = order
        key[part] = np.where(joins[order], order, order + ENTRIES * (part + 1))
    keys = ENTRIES * (cell.queues + 1)
    links = (np.full((cell.queues, 2, count), -1, np.int32) for count in (ENTRIES, keys, keys))
    counts = (np.zeros(cell.queues, np.int64) for _ in range(2))
    found = Queues(
        score,
        rows,
        key,
        np.zeros(shape, np.bool_),
        *links,
        np.full((cell.queues, keys), -1, np.int32),
        np.full(cell.queues, ENTRIES),
        *counts,
        np.ones(cell.queues, np.bool_),
    )
    for part in range(cell.queues):
        link_from(found, part, 0)
    return found


def rules(cell: Cell, schedule: str) -> Rules:
    together = cell.function in ("SUM", "AVG")
    sums = 1 if together else cell.queues
    looked_up = np.array(cell.random_costs)
    return Rules(
        np.zeros(cell.queues, np.int64) if together else np.arange(cell.queues),
        np.zeros(sums),
        np.zeros(sums, np.int64),
        np.array([cell.function == "MAX"]),
        np.zeros((0, 3), np.int64),
        np.zeros((0, 1), np.int64),
        np.zeros(1, np.int32),
        np.array(cell.sorted_costs) + looked_up.sum() - looked_up,
        cell.limit,
        cell.limit,
        0.0,
        True,
        SCHEDULES.index(schedule),
    )


def run(cell: Cell, schedule: str, seed: int) -> tuple[np.ndarray, float, float]:
    """The best scores, what the accesses cost, and the seconds it took."""
    data = queues(cell, seed)
    found = Found(np.empty((1024, cell.queues), np.int32), np.empty(1024), np.empty(cell.limit), np.zeros(2, np.int64))
    begin = time.thread_time()
    found, status = merge(data, rules(cell, schedule), new_steering(cell.queues), 1 << 40, found)
    seconds = time.thread_time() - begin
    assert status == DONE
    cost = (data.read * np.array(cell.sorted_costs)).sum() + (data.fetches * np.array(cell.random_costs)).sum()
    return found.best[: found.counts[1]], float(cost), seconds


def measure(name: str, cell: Cell, seeds: range) -> dict[str, float]:
    """The cost of each schedule, relative to round robin; the mean over the generated queues."""
    costs: dict[str, float] = dict.fromkeys(SCHEDULES, 0.0)
    seconds: dict[str, float] = dict.fromkeys(SCHEDULES, 0.0)
    for seed in seeds:
        expected, *_ = run(cell, "round-robin", seed)
        for schedule in SCHEDULES:
            best, cost, taken = run(cell, schedule, seed)
            assert np.array_equal(best, expected), f"{schedule} differs on {name}"
            costs[schedule] += cost
            seconds[schedule] += taken
    ratios = {schedule: cost / costs["round-robin"] for schedule, cost in costs.items()}
    told = ", ".join(
        f"{schedule} {ratio:.2f} ({seconds[schedule] / len(seeds) * 1e3:.1f} ms)" for schedule, ratio in ratios.items()
    )
    print(f"  {name}: {told}", flush=True)
    return ratios


def figures() -> Iterator[tuple[str, Cell]]:
    """The thesis's cells, by figure, from what it finds easy to what it finds hard."""
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
    """Past the thesis: every combination of costs, scores and rjs; costs of looking up; three queues."""
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


def main(first_seed: int = FIRST_SEED) -> list[Measurement]:
    """Costs in accesses where others have seconds."""
    seeds = range(first_seed, first_seed + SEEDS_EACH)
    print(f"the cost of each schedule, relative to round robin, seeds {seeds[0]} to {seeds[-1]}:")
    found = [(name, cell, measure(name, cell, seeds)) for name, cell in (*figures(), *others())]
    name, _, most = max(found, key=lambda each: each[2]["wabs"])
    steep = [ratios["wabs"] for _, cell, ratios in found if max(cell.sorted_costs) == 10]
    print(f"  WABS at most {most['wabs']:.2f} of round robin ({name})")
    print(f"  in the median cell under 10:1 round robin costs {1 / float(np.median(steep)):.2f} times as much")
    return [
        Measurement(
            name,
            ENTRIES,
            ratios,
            headline=f"WABS costs {ratios['wabs']:.2f} of round robin",
            unit="of what round robin costs",
        )
        for name, _, ratios in found
    ]


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, default=FIRST_SEED, help="the first of five")
    main(arguments.parse_args().seed)
