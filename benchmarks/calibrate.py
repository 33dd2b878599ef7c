"""Fit the constants of the cost models to times measured on this machine, and print them next to the current ones.

The models are linear in their constants, so each run gives one equation: the factor of a constant is the model's value
with this constant at 1 and the others at 0. Constants of searches are fitted to the time inside their kernels. Those of
blocks are fitted to the time outside the kernels that a tree with a block takes in addition to a tree without one. The
fit is a non-negative least squares of relative errors. The workloads are generated and belong to no benchmark.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa

import streamsift as ss
from streamsift.physical.detect import cost
from streamsift.physical.detect.cost import CostModel
from streamsift.physical.plan.options import Condense, PlannerOptions, PlanShape
from streamsift.physical.plan.plan import Alternative, DetectPlan
from streamsift.runtime.detect import adaptive, join_kernel, sequences
from streamsift.runtime.detect.adaptive import AdaptiveSearch, SlicePart
from streamsift.runtime.detect.joins import TreeSearch
from streamsift.runtime.detect.run import CHUNK_MATCHES
from streamsift.runtime.detect.sequences import SequencePacking
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare

LEFT = ("LEFT_OPEN_NS", "LEFT_SCAN_NS", "LEFT_BUILD_NS")
ANY_ORDER = ("OPEN_NS", "SCAN_NS", "BUILD_NS")
BLOCKS = ("BLOCK_NS", "BLOCK_OPEN_NS")
CONDENSED = ("CONDENSE_PART_NS", "CONDENSE_EVENT_NS", "CONDENSE_LEFT_NS", "CONDENSED_BUILD_NS")
EVENTS, ROUNDS, SWEEPS = 30_000, 5, 2_000
LEAST_NS = 1e6  # minimum time for weighting errors; shorter times are mostly noise
WINDOWS = (8, 30, 80)
SHARES = ((0.25, 0.25, 0.25, 0.25), (0.6, 0.3, 0.08, 0.02), (0.02, 0.08, 0.3, 0.6))
WHERES = ("", "WHERE a.x < 0.2 * b.x", "WHERE c.x < 0.2 * d.x", "WHERE b.key = d.key")
PARTS, APART = (1 << 13, 1 << 15), (3, 6)
FEW_BETWEEN_MANY = (0.49, 0.01, 0.49, 0.01)
CONDENSED_WORKLOADS = (  # settings of condensed runs: shares, events, windows
    (SHARES[0], 30_000, (50, 100, 200)),
    (FEW_BETWEEN_MANY, 30_000, (200, 500, 1_000)),
    (FEW_BETWEEN_MANY, 120_000, (500, 1_000, 2_000)),
)
CONDENSED_WHERE = "WHERE a.level < b.level - {0} AND c.level > d.level + {0} AND a.key = c.key"


@dataclass(frozen=True, slots=True)
class Run:
    """One equation: the factors of the constants, and the measured time."""

    factors: tuple[float, ...]
    taken_ns: float


@dataclass(slots=True)
class Stopwatch:
    """The time spent inside a function."""

    taken_ns: int = 0


@contextmanager
def watched(owner: object, name: str) -> Iterator[Stopwatch]:
    """Measure a function of a module or class."""
    original, stopwatch = getattr(owner, name), Stopwatch()

    def measured(*arguments: object) -> object:
        start = time.process_time_ns()
        found = original(*arguments)
        stopwatch.taken_ns += time.process_time_ns() - start
        return found

    setattr(owner, name, measured)
    yield stopwatch
    setattr(owner, name, original)


def make_events(shares: Sequence[float], events: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    names = pa.array(list("ABCD"))
    return pa.table(
        {
            "t": np.arange(events),
            "kind": names.take(pa.array(random.choice(4, events, p=shares))),
            "x": random.random(events),
            "key": pa.array([f"key {number}" for number in range(50)]).take(pa.array(random.integers(0, 50, events))),
            "level": random.integers(0, 8, events),
        }
    )


def prepared(where: str, table: pa.Table, window: int) -> tuple[Alternative, Events]:
    text = f"PATTERN A a; B b; C c; D d {where} WITHIN {window}"
    plan = ss.query(text).plan(table.schema, "t", "kind", None)
    assert isinstance(plan, DetectPlan)
    return plan.alternatives[0], prepare(plan.query, table)


def search(alternative: Alternative, events: Events, choices: PlannerOptions) -> AdaptiveSearch:
    """Return a search that has measured and searched the whole stream; plain sequences are searched as in detection."""
    places = candidates(alternative, events)

    found = AdaptiveSearch(alternative, events, places, choices, CHUNK_MATCHES, counts_rows=False)
    for _ in found.matches():
        pass
    return found


def taken_ns(alternative: Alternative, events: Events, choices: PlannerOptions) -> tuple[float, float]:
    """Return the time inside a kernel and outside of it, each the minimum of several rounds."""
    module, kernel = (sequences, "extend") if choices.plan is PlanShape.LEFT else (join_kernel, "join")
    inside, outside = [], []
    for _ in range(ROUNDS):
        with watched(module, kernel) as stopwatch:
            start = time.process_time_ns()
            search(alternative, events, choices)
            inside.append(stopwatch.taken_ns)
            outside.append(time.process_time_ns() - start - stopwatch.taken_ns)
    return float(min(inside)), float(min(outside))


@contextmanager
def replaced(module: object, values: Mapping[str, float]) -> Iterator[None]:
    """Replace constants of a module for the duration of the block."""
    known = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    yield
    for name, value in known.items():
        setattr(module, name, value)


def workloads() -> Iterator[tuple[Alternative, Events]]:
    for number, (shares, where, window) in enumerate((s, w, n) for s in SHARES for w in WHERES for n in WINDOWS):
        yield prepared(where, make_events(shares, EVENTS, number), window)


def factors(names: Sequence[str], log: Sequence[SlicePart]) -> tuple[float, ...]:
    found = []
    for name in names:
        with replaced(cost, {each: float(each == name) for each in (*LEFT, *ANY_ORDER, *BLOCKS)}):
            found.append(sum(CostModel(each.statistics).cost(each.tree) for each in log))
    return tuple(found)


def join_runs(shapes: Sequence[PlanShape], names: Sequence[str]) -> Iterator[Run]:
    for alternative, events in workloads():
        for shape in shapes:
            choices = PlannerOptions(plan=shape, condense=Condense.OFF)
            log = search(alternative, events, choices).log
            yield Run(factors(names, log), taken_ns(alternative, events, choices)[0])


def block_runs() -> Iterator[Run]:
    for alternative, events in workloads():
        with_block, without = (
            PlannerOptions(plan=s, condense=Condense.OFF) for s in (PlanShape.BUSHY, PlanShape.INNER)
        )
        log = search(alternative, events, with_block).log
        more = taken_ns(alternative, events, with_block)[1] - taken_ns(alternative, events, without)[1]
        yield Run(factors(BLOCKS, log), more)


def pack_runs() -> Iterator[Run]:
    for number, (shares, count, windows) in enumerate(CONDENSED_WORKLOADS):
        alternative, events = prepared(CONDENSED_WHERE.format(0), make_events(shares, count, number), windows[0])
        places = candidates(alternative, events)
        taken = []
        for _ in range(ROUNDS):
            start = time.process_time_ns()
            SequencePacking(alternative, events, places).packed()
            taken.append(time.process_time_ns() - start)
        yield Run((sum(part.size for part in places),), min(taken))


def condensed_runs() -> Iterator[Run]:
    """Measure searches whose number of entries and matches after the first part is known to the model."""
    choices = PlannerOptions(plan=PlanShape.LEFT, condense=Condense.ON)
    for number, (shares, count, windows) in enumerate(CONDENSED_WORKLOADS):
        for window, longest, apart in product(windows, PARTS, APART):
            where = CONDENSED_WHERE.format(apart)
            alternative, events = prepared(where, make_events(shares, count, number), window)
            with replaced(adaptive, {"CONDENSED_PLACES": longest}):
                log = search(alternative, events, choices).log
                taken = condensed_ns(alternative, events, choices)
            partial = sum(each.partial_per_match * (each.matches + 1) for each in log)
            found = (
                len(log),
                sum(each.share * sum(each.statistics.counts) for each in log),
                sum(each.left for each in log),
                sum(each.matches for each in log),
            )
            yield Run(found, taken - cost.OPEN_NS * partial)


def condensed_ns(alternative: Alternative, events: Events, choices: PlannerOptions) -> float:
    """Measure building condensed levels and searching them."""
    taken = []
    for _ in range(ROUNDS):
        with watched(TreeSearch, "_condensed") as levels, watched(join_kernel, "join") as kernel:
            search(alternative, events, choices)
            taken.append(levels.taken_ns + kernel.taken_ns)
    return float(min(taken))


def fitted(runs: Sequence[Run]) -> tuple[np.ndarray, float]:
    """Return non-negative constants and the mean relative error, by coordinate descent on relative residuals."""
    taken = np.array([run.taken_ns for run in runs])
    weights = 1.0 / np.maximum(taken, LEAST_NS)
    equations, wanted = np.array([run.factors for run in runs]) * weights[:, None], taken * weights
    found = np.zeros(equations.shape[1])
    squares = (equations**2).sum(axis=0)
    for _ in range(SWEEPS):
        for k in np.flatnonzero(squares):
            rest = wanted - equations @ found + equations[:, k] * found[k]
            found[k] = max(0.0, equations[:, k] @ rest / squares[k])
    return found, float(np.mean(np.abs(equations @ found - wanted)))


def report(title: str, names: Sequence[str], runs: Sequence[Run], module: object) -> None:
    found, error = fitted(runs)
    print(f"{title}: {len(runs)} runs, {error:.0%} off on average")
    for name, value in zip(names, found, strict=False):
        print(f"  {name:20} {value:12,.1f} fitted  {getattr(module, name):12,.1f} in use")


def main() -> None:
    report("the search of plain sequences", LEFT, list(join_runs((PlanShape.LEFT,), LEFT)), cost)
    report("the search in any order", ANY_ORDER, list(join_runs((PlanShape.RIGHT, PlanShape.INNER), ANY_ORDER)), cost)
    report("blocks", BLOCKS, list(block_runs()), cost)
    report("packing", ("PACK_NS",), list(pack_runs()), adaptive)
    report("condensing", CONDENSED, list(condensed_runs()), adaptive)


if __name__ == "__main__":
    main()
