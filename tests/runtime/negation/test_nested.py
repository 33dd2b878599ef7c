"""Negations on longer streams: caching and chunk sizes do not change the rows, and no unnecessary work is done."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.physical.plan.options import Cache
from streamsift.runtime import prepare
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.negation import kernel, packing
from streamsift.runtime.negation.search import NestedSearch

QUERIES = [
    "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 40",
    "SEQ(A a, !SEQ(B b, C c), D d) WHERE a.k = b.k AND c.x > a.x WITHIN 40",
    "SEQ(A a, !SEQ(B b, C c), D d) WHERE b.x < c.x AND b.k = d.k WITHIN 40",
    "SEQ(A a, !SEQ(B b, !SEQ(C c, A e), C f), D d) WHERE c.k = b.k AND e.x != a.x WITHIN 40",
    "SEQ(A a, !SEQ(B b, !C c), D d, !SEQ(A e, B f)) WHERE e.k = d.k WITHIN 30",
    "SEQ(A a, AND(B b, !SEQ(B e, C c)), D d) WITHIN 20",
    "SEQ(A a, AND(B b, !SEQ(C c, D e)), D d) WITHIN 20",
    "SEQ(A a, !SEQ(B b, C c), D d) WHERE b.x + c.x > a.x WITHIN 30",
    "SEQ(!SEQ(B b, C c), A a, D d) WHERE [k] WITHIN 40",
    "SEQ(A a, !SEQ(B b, C c), D d, !C e) WITHIN 30 EVENTS",
    "SEQ(A a, !SEQ(B b, C c), D d, !SEQ(B e, C f)) PARTITION BY k WITHIN 12 EVENTS",
]
# Every lookup has a different start.
NO_REUSE = "SEQ(A a, !B b) WITHIN 3"


def events(rows: int) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "t": np.cumsum(random.integers(0, 3, rows)),
            "kind": pa.array(list("ABCD")).take(pa.array(random.integers(0, 4, rows))),
            "k": random.integers(0, 4, rows),
            "x": random.integers(0, 5, rows),
        }
    )


def searched(query: str, table: pa.Table, cache: Cache, chunk: int = 1 << 12) -> tuple[Int32, NestedSearch]:
    plan: Any = ss.query(query).plan(table.schema, "t", "kind", None)
    search = NestedSearch(plan.alternatives[0], prepare(plan.query, table), chunk, cache)
    chunks = [places.copy() for places in search.matches()]
    return np.concatenate([np.empty((len(plan.alternatives[0].steps), 0), np.int32), *chunks], axis=1), search


@pytest.mark.parametrize("query", QUERIES)
def test_cached_or_not_the_rows_are_the_same(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = events(1_500)
    expected, _ = searched(query, table, Cache.OFF)
    assert expected.shape[1] > 20
    for cache, chunk in ((Cache.ON, 1 << 12), (Cache.AUTO, 7), (Cache.OFF, 1)):
        assert np.array_equal(searched(query, table, cache, chunk)[0], expected)
    # In such a small ring, most entries are evicted.
    monkeypatch.setattr(packing, "MIN_ENTRIES", 2)
    monkeypatch.setattr(packing, "MAX_ENTRIES", 2)
    assert np.array_equal(searched(query, table, Cache.ON)[0], expected)


def test_a_cache_entry_serves_every_end_and_every_equal_value() -> None:
    for query in QUERIES[:2]:
        _, search = searched(query, events(1_500), Cache.ON)
        assert search.packed is not None
        lookups, cache_hits = search.packed.ring.lookups[1], search.packed.ring.cache_hits[1]
        assert cache_hits > lookups / 2 > 100


def test_a_cache_with_few_hits_is_abandoned() -> None:
    table = events(6 * kernel.TRIAL)
    for cache, is_abandoned in ((Cache.AUTO, True), (Cache.ON, False)):
        _, search = searched(NO_REUSE, table, cache)
        assert search.packed is not None
        assert (search.packed.ring.lookups[1] == kernel.TRIAL) == is_abandoned


def test_rings_hold_a_window() -> None:
    sizes = []
    for rows in (1_000, 4_000):
        _, search = searched(QUERIES[0], events(rows), Cache.ON)
        assert search.packed is not None
        sizes.append(search.packed.ring.keys.shape[0])
    assert sizes[0] == sizes[1] < 200


@pytest.mark.parametrize("cache", ["on", "off"])
def test_the_first_hit_ends_the_search(cache: Literal["on", "off"]) -> None:
    """With 30 events per class, the negated sequence and the one nested in it have 30^5 occurrences each."""
    kinds = [*"A", *("B" * 30), *("C" * 30), *("D" * 30), *("E" * 30), *("F" * 30), "G"]
    table = pa.table({"t": range(len(kinds)), "kind": kinds, "x": [number % 30 for number in range(len(kinds))]})
    inner = "SEQ(B b, C c, D d, E e, F f)"
    for negated, where, rows in (
        (inner, "", 0),
        (inner, "WHERE b.x + f.x >= 0", 0),
        (inner, "WHERE f.x < 0", 1),
        (inner, "WHERE b.x > 100", 1),
        (f"SEQ(A z, {inner})", "", 1),
        ("SEQ(B b, !SEQ(C c, D d, E e), F f)", "", 1),
    ):
        query = ss.query(f"SEQ(A a, !{negated}, G g) {where}")
        assert query.run_local(table, time="t", type="kind", cache=cache).num_rows == rows


def test_arrow_checks_only_the_candidates_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of hundreds of candidates is a hit, so each partial match needs one check."""
    checked: list[int] = []
    passes = NestedSearch._passes

    def counted(self: NestedSearch, chain: Any, partials: Int32) -> Any:
        if chain[-1].filters:
            checked.append(partials.shape[1])
        return passes(self, chain, partials)

    monkeypatch.setattr(NestedSearch, "_passes", counted)
    table = pa.table({"t": range(402), "kind": ["A", *["B", "C"] * 200, "D"], "x": [1] * 402})
    query = ss.query("SEQ(A a, !SEQ(B b, C c), D d) WHERE a.x + b.x + c.x > 0")
    assert query.run_local(table, time="t", type="kind").num_rows == 0
    assert checked == [1]
