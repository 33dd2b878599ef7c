"""Run a plan and report what was measured: rates, selectivities, rows and time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import combinations

import pyarrow as pa

from streamsift.physical.plan import AggregatePlan, Alternative, DetectPlan, Plan, RankPlan, Strategy
from streamsift.runtime.detect import Measure, Relations, analyze
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.execute import execute
from streamsift.runtime.rank import merge_accesses


def analyze_run(plan: Plan, table: pa.Table) -> Iterator[str]:
    """Yield lines with the statistics that the planner relies on, the rows that joins built, and the run time."""
    events = prepare(plan.query, table)
    yield f"{events.rank.size:,} events"
    for number, alternative in enumerate(plan.alternatives, start=1):
        if len(plan.alternatives) > 1:
            yield f"alternative {number}"
        yield from _rates(alternative, events)
    if isinstance(plan, DetectPlan):
        yield from analyze(plan, events)
    elif isinstance(plan, AggregatePlan) and any(branch.strategy is Strategy.DETECT for branch in plan.branches):
        yield from analyze(plan.detection, events)
    elif isinstance(plan, RankPlan) and events.rank.size:
        yield from merge_accesses(plan, events)
    started = time.perf_counter()
    rows = sum(batch.num_rows for batch in execute(plan, table))
    seconds = time.perf_counter() - started
    yield f"result  {rows:,} row{'' if rows == 1 else 's'} in {seconds:.3g} s, {table.num_rows / seconds:,.0f} events/s"


def _rates(alternative: Alternative, events: Events) -> Iterator[str]:
    """Yield the candidates of each step, and the selectivity of the comparisons between each pair of steps."""
    positive = Alternative(alternative.query, alternative.steps, ())
    places = candidates(positive, events)
    if not events.rank.size or not places:
        return
    names = [alternative.query.variables[step.variable].name for step in alternative.steps]
    has_matches = events.width >= 0 and all(part.size for part in places)
    measure = Measure(positive, events, places, Relations(positive)) if has_matches else None
    measured = None if measure is None else measure.slice(0, events.rank.size)
    for number, (name, part) in enumerate(zip(names, places, strict=True)):
        share = f"{name}  {part.size:,} candidates, {part.size / events.rank.size:.2%} of the events"
        yield share + (f", {measured.in_window[number]:,.1f} in a window" if measured and events.window else "")
    if measured is None:
        return
    for pair in combinations(range(len(names)), 2):
        passing = [kind[pair] for kind in (*measured.equal, measured.other) if pair in kind]
        passing += [share for steps, share in measured.limits if steps.issuperset(pair)]
        if passing:
            yield f"{names[pair[0]]}, {names[pair[1]]}  {math.prod(passing):.2%} of the pairs pass their comparisons"
