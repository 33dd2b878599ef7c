"""The first matches of equivalence classes of paths agree with all matches, sorted: with ties, `order` and windows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from streamsift.runtime.paths.equivalence import EntryClasses, first_matches, first_of_classes
from streamsift.runtime.paths.graph import Graph, build_graph
from streamsift.runtime.paths.strata import in_reach

STEPS, KINDS, COUNT = 3, 2, 24


def graph_of(seed: int, *, levels: int) -> Graph:
    """A graph of events at few times, with ties broken by time and place, or by time, `order` and place."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 9, COUNT)).astype(np.int32)
    finer = np.sort(times * 4 + random.integers(0, 4, COUNT)) if levels == 3 else times
    times, rank = (finer // 4 if levels == 3 else times), finer.astype(np.int32)
    step_of = random.integers(0, STEPS, COUNT)
    places = [np.flatnonzero(step_of == step).astype(np.int32) for step in range(STEPS)]
    ends, place = np.cumsum([0, *map(len, places)]).astype(np.int64), np.concatenate(places)
    told = [times, rank, np.arange(COUNT)] if levels == 3 else [rank, np.arange(COUNT)]
    ties = np.stack([level[place] for level in told]).astype(np.int32)
    offsets, window = np.stack([ends[:-1], ends[1:]], axis=1), np.array([2, COUNT - 1], np.int32)
    return build_graph(offsets, place, rank[place], ties, np.zeros(COUNT), window[:1], window[1:], COUNT)


def matches_of(graph: Graph, path: tuple[int, ...], kind: np.ndarray, low: int, high: int) -> list[tuple[int, ...]]:
    """Return all matches of a path's classes in a window, in the order of the ranking."""
    of_step = [np.flatnonzero((kind == kind[entry]) & (graph.place >= low) & (graph.place < high)) for entry in path]
    found = [m for m in product(*of_step) if (np.diff(graph.rank[list(m)]) > 0).all()]
    return sorted(found, key=lambda m: [int(code) for level in graph.ties for code in level[list(m)]])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("levels", [2, 3])
def test_the_first_matches_of_a_kind_come_in_the_order_of_the_ranking(seed: int, levels: int) -> None:
    graph = graph_of(seed, levels=levels)
    random = np.random.default_rng(seed)
    step_of = np.repeat(np.arange(STEPS), np.diff(graph.offsets, axis=1)[:, 0])
    kind = (step_of * KINDS + random.integers(0, KINDS, COUNT)).astype(np.int32)
    members = np.argsort(kind, kind="stable").astype(np.int32)
    kinds = EntryClasses(kind, np.searchsorted(kind[members], np.arange(STEPS * KINDS + 1)), members)
    first = [int(np.flatnonzero(step_of == step)[0]) for step in range(STEPS)]
    paths, windows = np.array([first], np.int32), np.zeros(1, np.int64)
    expected = matches_of(graph, tuple(first), kind, 2, COUNT - 1)
    found, bucket = first_matches(graph, kinds, paths, False, windows, np.array([0, 1]), np.array([7]), 1000)
    assert [tuple(match) for match in found.tolist()] == expected
    assert (bucket == 7).all()
    some, _ = first_matches(graph, kinds, paths, False, windows, np.array([0, 1]), np.array([7]), 3)
    assert [tuple(match) for match in some.tolist()] == expected[:3]


def test_of_many_paths_the_first_of_each_kind_are_kept() -> None:
    random = np.random.default_rng(2)
    kind = random.integers(0, 3, 50).astype(np.int32)
    paths = random.integers(0, 50, (400, 2)).astype(np.int32)
    seen: dict[tuple[int, ...], int] = {}
    expected = []
    for path in paths:
        key = tuple(kind[path].tolist())
        seen[key] = seen.get(key, 0) + 1
        expected += [path.tolist()] if seen[key] <= 5 else []
    assert first_of_classes(kind, paths, 5).tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_what_is_out_of_reach_is_in_no_match(seed: int) -> None:
    graph = graph_of(seed, levels=2)
    low = np.arange(0, COUNT, 4, dtype=np.int32)
    high = np.minimum(low + 9, COUNT).astype(np.int32)
    kept = in_reach(graph.offsets, graph.place, graph.rank, low, high)
    in_match = np.zeros(COUNT, np.bool_)
    for match in product(*(np.arange(begin, end) for begin, end in graph.offsets)):
        places = graph.place[list(match)]
        in_window = ((low <= places.min()) & (places.max() < high)).any()
        if in_window and (np.diff(graph.rank[list(match)]) > 0).all():
            in_match[list(match)] = True
    assert (kept | ~in_match).all()
