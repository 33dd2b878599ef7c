"""Measure a stream whose best tree changes halfway: `auto`, which adapts, and every fixed tree.

In the first half, few A and B events have the same x, so the search should start with them. In the second half, few C
and D events have the same y, so it should start at the end. Statistics are measured per slice; the tree changes between
slices.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.detect.intermediate import format_rows, peak_mb, rows_built, searched
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import medians, sampled
from benchmarks.report.measurement import Measurement
from streamsift.physical.explain.joins import names_of, one_line
from streamsift.physical.plan.options import PlannerOptions, PlanShape
from streamsift.physical.plan.plan import Alternative, DetectPlan
from streamsift.runtime.detect.adaptive import AdaptiveSearch
from streamsift.runtime.detect.run import match_places
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare

EVENTS, VALUES, WINDOW, SEED = 600_000, 1_000, 80, 5
QUERY = f"PATTERN SEQ(A a, B b, C c, D d) WHERE a.x = b.x AND c.y = d.y WITHIN {WINDOW}"
SHAPES = (PlanShape.AUTO, PlanShape.LEFT, PlanShape.RIGHT, PlanShape.BUSHY, PlanShape.INNER)


def make_events(events: int, seed: int) -> pa.Table:
    """Return one event per time; x has many values in the first half and is 0 in the second, y the reverse."""
    random = np.random.default_rng(seed)
    names = pa.array(list("ABCD"))
    values = random.integers(1, VALUES, events)
    is_early = np.arange(events) < events // 2
    return pa.table(
        {
            "t": np.arange(events),
            "kind": names.take(pa.array(random.integers(0, 4, events))),
            "x": np.where(is_early, values, 0),
            "y": np.where(is_early, 0, values),
        }
    )


def found_rows(plan: Alternative, events: Events, shape: PlanShape) -> np.ndarray:
    """Return all matches as sorted table rows [steps, matches]."""
    rows = np.concatenate(list(match_places(plan, events, PlannerOptions(plan=shape))), axis=1)
    return rows[:, np.lexsort(rows[::-1])]


def search(plan: Alternative, events: Events, shape: PlanShape) -> None:
    for _ in match_places(plan, events, PlannerOptions(plan=shape)):
        pass


def changes(search: AdaptiveSearch) -> list[str]:
    """Return the trees in the order in which they ran."""
    names, told_trees = names_of(search.alternative), list[str]()
    for chosen in search.log:
        tree = one_line(chosen.tree, names)
        if not told_trees or told_trees[-1] != tree:
            told_trees.append(tree)
    return told_trees


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    table = make_events(settings.scaled(EVENTS), settings.seeded(SEED))
    plan = ss.query(QUERY).plan(table.schema, "t", "kind", None)
    assert isinstance(plan, DetectPlan)
    alternative, events = plan.alternatives[0], prepare(plan.query, table)
    expected = found_rows(alternative, events, PlanShape.AUTO)
    for shape in SHAPES[1:]:
        assert np.array_equal(found_rows(alternative, events, shape), expected), f"plan={shape}: matches differ"
    runs = {f"plan={shape}": partial(search, alternative, events, shape) for shape in SHAPES}
    samples = sampled(runs, settings, warm=True)
    searches = {shape: searched(alternative, events, PlannerOptions(plan=shape)) for shape in SHAPES}
    auto, *others = medians(samples).values()
    print(f"  {table.num_rows:,} events, {expected.shape[1]:,} matches; auto {auto * 1000:.1f} ms")
    print(f"  auto changed its tree: {', then '.join(changes(searches[PlanShape.AUTO]))}")
    print(f"  the best fixed tree takes {min(others) / auto:.2f} times as long")
    for shape, taken in zip(SHAPES, [auto, *others], strict=True):
        memory, rows = peak_mb(runs[f"plan={shape}"]), format_rows(rows_built(searches[shape]))
        print(f"      {shape:6} {taken / auto:5.2f}x  {memory:5.0f} MB at most;  built {rows}")
    headline = f"{min(others) / auto:.2f}x the best fixed tree"
    return [Measurement("best tree changes halfway", expected.shape[1], samples, headline=headline)]


if __name__ == "__main__":
    main()
