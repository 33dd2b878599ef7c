"""Best paths agree with the thesis's algorithms and with all matches, on streams that are too large for the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.runtime.paths import best
from streamsift.runtime.paths.enumerate import Roots, Rule, best_paths
from streamsift.runtime.paths.graph import build_graph
from streamsift.runtime.paths.thesis import k_best_by_window
from streamsift.runtime.paths.top_k_buffer import Owners, buffered_paths


def events(count: int, values: str, seed: int = 5) -> pa.Table:
    random = np.random.default_rng(seed)
    x = {
        "whole": random.integers(0, 6, count).astype(float),  # many ties
        "cents": random.integers(0, 5, count) / 100,  # many ties that rounding breaks
        "real": random.random(count),
    }[values]
    kinds = pa.array(["A", "B", "C", "D"]).take(pa.array(random.integers(0, 4, count)))
    times = np.sort(random.integers(0, count, count))
    return pa.table({"t": times, "kind": kinds, "id": random.integers(0, 5, count), "x": x, "seq": np.arange(count)})


TWO_DEFINITIONS = (
    "SEQ S1 = A a; B b WITHIN 9 PREF MAX[a.x + b.x]\nSEQ S2 = C c; D d PREF MAX[c.x] AND MAX[d.x] MERGE AVG\n"
    "PATTERN S1 & S2 WHERE S1.a.id = S2.c.id WITHIN 30 UPDATE 15 RETURN 5"
)
QUERIES = [
    "A a; B b; C c PREF MAX[a.x + b.x + c.x] WITHIN 30 UPDATE 7 RETURN 5",
    "A a; B b; C c PREF MIN[a.x - b.x + 2 * c.x] WITHIN 30 RETURN 9",
    "A a; B b; C c WHERE [id] PREF MAX[a.x + b.x + c.x] WITHIN 80 UPDATE 20 RETURN 5",
    "A a; B b; C c WHERE [id] GROUP BY id PREF MIN[c.t - a.t] AND MAX[b.x] MERGE SUM RETURN 3",
    "A a; B b WHERE a.x < b.x AND a.id = b.id PREF MAX[b.x - a.x] WITHIN 25 EVENTS UPDATE 10 EVENTS RETURN 4",
    "A a; B b; C c WHERE [id] PREF MAX[a.x + b.x + c.x] WITHIN 90 UPDATE 3 RETURN 5",
    "A a; B b WHERE [id] AND a.x <= b.x GROUP BY id PREF MIN[b.x - a.x] WITHIN 60 EVENTS UPDATE 4 EVENTS RETURN 2",
    "SEQ S1 = A a; B b WITHIN 9\nPATTERN S1; C c PREF MAX[S1.a.x + S1.b.x + c.x] WITHIN 40 UPDATE 10 RETURN 5",
    "A a; B b; C c PREF MAX[a.x + c.x] AND MAX[b.x] WITHIN 30 UPDATE 10 RETURN 5",
    "A a & (B b; C c) WHERE a.id = b.id AND a.x + b.x > c.x PREF MAX[a.x] AND MIN[c.t - b.t] MERGE MAX RETURN 5",
    TWO_DEFINITIONS,
    "A a | B b; C c PREF MAX[a.x] RETURN 3",
    "A a; B b; C c PREF MAX[SQRT(a.x^2 + b.x^2 + c.x^2)] WITHIN 30 UPDATE 10 RETURN 5",
    "A a & B b & C c PREF MAX[LEAST(a.x, b.x)] AND MAX[c.x - a.x] WITHIN 20 UPDATE 10 RETURN 5",
]


PAPER = (
    "SEQ S1 = A a; B b WHERE [id] PREF MAX[exp = a.x + b.x] AND MIN[span = b.t - a.t]\n"
    "SEQ S2 = C c; D d WHERE [id] PREF MAX[exp = c.x + d.x]\n"
    "PATTERN S1 & S2 WHERE S1.a.id = S2.c.id PREF MAX[S1.exp + S2.exp] AND MIN[S1.span] WITHIN 60 UPDATE 20 RETURN 4"
)
THREE = (
    "SEQ S1 = A a; B b PREF MAX[a.x + b.x]\nSEQ S2 = C c PREF MIN[c.x]\nSEQ S3 = D d PREF MAX[d.x]\n"
    "PATTERN (S1 & S2); S3 WHERE S1.a.id = S2.c.id AND S2.c.id = S3.d.id WITHIN 48 UPDATE 4 RETURN 6"
)
NONLINEAR = (
    "SEQ S1 = A a; B b PREF MAX[e = a.x + b.x]\nSEQ S2 = C c; D d PREF MAX[e = SQRT(c.x^2 + d.x^2)]\n"
    "PATTERN S1; S2 PREF MAX[S1.e] AND MAX[S2.e] MERGE AVG WITHIN 60 UPDATE 5 RETURN 3"
)
MERGED = [
    "A a; B b; C c PREF MAX[a.x + c.x] AND MAX[b.x] WITHIN 60 UPDATE 5 RETURN 5",
    "A a & (B b; C c) WHERE a.id = b.id PREF MAX[a.x] AND MIN[c.t - b.t] MERGE MAX WITHIN 40 RETURN 5",
    TWO_DEFINITIONS,
    PAPER,
    THREE,
    NONLINEAR,
]


@pytest.mark.parametrize("query", MERGED)
@pytest.mark.parametrize("values", ["whole", "cents", "real"])
@pytest.mark.parametrize("strategy", ["nra", "ta"])
@pytest.mark.parametrize("schedule", ["wabs", "round-robin", "gradient", "statistics"])
def test_merges_agree(query: str, values: str, strategy: Any, schedule: Any) -> None:
    table = events(300, values)
    wanted = ss.query(query).run_local(table, time="t", type="kind", rank="enumerate")
    found = ss.query(query).run_local(table, time="t", type="kind", rank=strategy, schedule=schedule)
    assert f"schedule {schedule}" in ss.query(query).explain(
        table, time="t", type="kind", rank=strategy, schedule=schedule
    )
    assert wanted.num_rows > 0
    assert found.equals(wanted)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("values", ["whole", "cents", "real"])
@pytest.mark.parametrize("order", [None, "seq"])
def test_strategies_agree(query: str, values: str, order: str | None) -> None:
    table = events(300, values)
    wanted, found = (
        ss.query(query).run_local(table, time="t", type="kind", order=order, rank=strategy)
        for strategy in ("enumerate", "auto")
    )
    assert wanted.num_rows > 0
    assert found.equals(wanted)


@pytest.mark.parametrize("query", [query for query in QUERIES[:9] if "AND MAX" not in query])
@pytest.mark.parametrize("values", ["whole", "cents", "real"])
@pytest.mark.parametrize("order", [None, "seq"])
def test_kinds_agree(query: str, values: str, order: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equivalence classes of paths find the same, as if sums did not distinguish any paths."""
    table = events(300, values)
    wanted = ss.query(query).run_local(table, time="t", type="kind", order=order, rank="enumerate")
    monkeypatch.setattr(best, "FEW_PATHS", 0)
    monkeypatch.setattr(best, "_by_buffers", lambda *_: None)
    found = ss.query(query).run_local(table, time="t", type="kind", order=order)
    assert wanted.num_rows > 0
    assert found.equals(wanted)


@pytest.mark.parametrize(
    ("steps", "window", "move"),
    [(1, 10, 5), (2, 50, 20), (3, 50, 20), (4, 30, 7), (3, 10, 25), (3, 60, 3), (1, 40, 2)],
)
def test_the_algorithms_of_the_thesis_find_the_same_sums(steps: int, window: int, move: int) -> None:
    count, limit = 300, 6
    random = np.random.default_rng(steps)
    step_of_place = random.integers(0, steps, count)
    places = [np.flatnonzero(step_of_place == step).astype(np.int32) for step in range(steps)]
    ends, place = np.cumsum([0, *map(len, places)]).astype(np.int64), np.concatenate(places)
    offsets = np.stack([ends[:-1], ends[1:]], axis=1)
    weight = random.random(count)
    ends = np.arange(move, count + window, move)
    low, high = (np.clip(bound, 0, count).astype(np.int32) for bound in (ends - window, ends))
    graph = build_graph(offsets, place, place, place[np.newaxis], weight, low, high, count)
    any_first, one_group, visits = np.full(low.size, -1, np.int32), np.zeros(low.size, np.int32), np.arange(low.size)
    roots = Roots(one_group, visits, any_first, any_first)
    rule = Rule(limit, 0.0, 1 << 30, -np.inf, np.empty((1, 0), np.int32), True)
    paths, counts, gave_up = best_paths(graph, roots, np.arange(low.size + 1), rule)
    assert not gave_up.any()
    entries = [np.arange(*part, dtype=np.int32) for part in offsets[[0, -1]]]
    owners = Owners(*(side for part in entries for side in (np.array([0, part.size]), part)))
    no_classes = np.empty(0, np.int32)
    kept, kept_counts, given_up = buffered_paths(graph, owners, np.array([0, low.size]), visits, rule, no_classes)
    assert not given_up
    np.testing.assert_array_equal(kept, paths)
    np.testing.assert_array_equal(kept_counts, counts)
    found = np.full((low.size, limit), -np.inf)
    for bucket, part in enumerate(np.split(weight[paths].sum(axis=1), np.cumsum(counts)[:-1])):
        found[bucket, : part.size] = part
    for dynamic in (False, True):
        for plain in (False, True):
            sums, paths = k_best_by_window(place, place, weight, offsets, low, high, limit, dynamic, plain)
            np.testing.assert_allclose(weight[paths].sum(axis=2)[sums > -np.inf], sums[sums > -np.inf], rtol=1e-12)
            np.testing.assert_allclose(sums, found, rtol=1e-12)
