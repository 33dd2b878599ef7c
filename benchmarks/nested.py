"""Nested sequences with negation on stock trades: sub-queries, their length and depth, caching, growth, Spark SQL.

The experiments of "Processing Nested Complex Sequence Pattern Queries over Event Streams", sections 4.2 to 4.4 and 5.1,
its queries q1 to q10, on generated trades: 100 a second, of twenty stocks, a third of them at the time of another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks import nested_spark
from benchmarks.nested_sql import Bucket, bucketed, sequence_of
from benchmarks.report import Measurement
from streamsift.physical.shapes import Join, Leaf, Tree
from streamsift.runtime import prepare
from streamsift.runtime.adaptive import SLICE_PLACES
from streamsift.runtime.candidates import candidates
from streamsift.runtime.detect import CHUNK_MATCHES
from streamsift.runtime.relations import Relations
from streamsift.runtime.trees import TreeSearch
from streamsift.view.demo_data import ticks

QUERIES = {
    "q1": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, IPIX, INTC)",
    "q2": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, !SEQ(YHOO, DELL), IPIX, INTC)",
    "q3": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, !SEQ(YHOO, DELL), IPIX, !SEQ(CSCO, QQQ), INTC)",
    "q4": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, INTC)",
    "q5": "SEQ(MSFT, !SEQ(RIMM, AMAT, YHOO), ORCL, INTC)",
    "q6": "SEQ(MSFT, !SEQ(RIMM, AMAT, YHOO, DELL), ORCL, INTC)",
    "q7": "SEQ(MSFT, !SEQ(IPIX, QQQ), ORCL, INTC)",
    "q8": "SEQ(MSFT, !SEQ(IPIX, SEQ(RIMM, AMAT), QQQ), ORCL, INTC)",
    "q9": "SEQ(MSFT, !SEQ(IPIX, SEQ(RIMM, SEQ(YHOO, DELL), AMAT), QQQ), ORCL, INTC)",
    "q10": "SEQ(YHOO, SEQ(QQQ, AMAT, DELL), ORCL, IPIX)",
}
EXPERIMENTS = {
    "number of sub-queries": ("q1", "q2", "q3"),
    "length of the sub-query": ("q4", "q5", "q6"),
    "nesting level": ("q7", "q8", "q9"),
}
FEW_EVENTS, MANY_EVENTS = 10_000, 1_000_000
WINDOW_MS = 1_000
CACHE_WINDOWS_MS = (500, 1_000, 1_500, 2_000)
GROWTH = (100_000, 200_000, 400_000, 800_000)
ON_SPARK = (("q4", 1_000), ("q6", 1_000), ("q2", 3_000), ("q6", 3_000))
OUTER = Join(Join(Leaf(0), Leaf(4)), Leaf(5))  # YHOO, ORCL, IPIX
Q10_TREES = {
    "inner cached": Join(OUTER, Join(Join(Leaf(1), Leaf(2)), Leaf(3))),
    "inner again each time": Join(Join(Join(OUTER, Leaf(1)), Leaf(2)), Leaf(3)),
}
ROUNDS, MOST_ROUNDS, LEAST_S = 3, 40, 0.5


def make_trades(events: int, seed: int = 1) -> pa.Table:
    """The first trades of the same stream, so that rates are equal whatever their number; each has a number."""
    trades = ticks(MANY_EVENTS, seed).slice(0, events)
    return trades.append_column("trade", pa.array(np.arange(events)))


def query_text(name: str, window_ms: int = WINDOW_MS, numbers_only: bool = False) -> str:
    """The query; with `numbers_only` it returns just the numbers of a match's trades, as the SQL does."""
    numbers = ", ".join(f"{s}.trade AS trade_{i}" for i, s in enumerate(sequence_of(QUERIES[name]).events))
    return f"{QUERIES[name]} WITHIN {window_ms} ms" + f" RETURN {numbers}" * numbers_only


def find(text: str, trades: pa.Table, cache: str) -> pa.Table:
    return ss.query(text).run_local(trades, time="ts", type="symbol", cache=cache)


def best_seconds(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The best time of each, taken in turns: what disturbs the machine disturbs all of them. Short runs get more."""
    best = dict.fromkeys(runs, np.inf)
    begin, rounds = time.perf_counter(), 0
    while rounds < ROUNDS or (rounds < MOST_ROUNDS and time.perf_counter() - begin < LEAST_S):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
        rounds += 1
    return best


def sorted_rows(result: pa.Table) -> pa.Table:
    return result.cast(pa.schema([(name, pa.int64()) for name in result.column_names])).sort_by(
        [(name, "ascending") for name in result.column_names]
    )


def check_against_sql(trades: pa.Table) -> None:
    """Every query, with and without cache, finds what DuckDB finds by SQL."""
    connection = duckdb.connect()
    connection.register("trades", trades)
    for name, text in QUERIES.items():
        expected = sorted_rows(connection.sql(bucketed(sequence_of(text), WINDOW_MS, Bucket.DUCKDB)).to_arrow_table())
        for cache in ("auto", "on", "off"):
            found = find(query_text(name, numbers_only=True), trades, cache)
            assert sorted_rows(found).equals(expected), f"{name}, cache={cache}: other matches than DuckDB"
    print(f"  q1 to q10 find what DuckDB finds by self-joins with NOT EXISTS in {trades.num_rows:,} events")


def compare_caches(name: str, window_ms: int, trades: pa.Table, numbers_only: bool) -> tuple[int, dict[str, float]]:
    """How many matches there are, and the best seconds with each setting of the cache; results are equal."""
    numbers = query_text(name, window_ms, numbers_only=True)
    expected = sorted_rows(find(numbers, trades, "off"))
    for cache in ("auto", "on"):
        assert sorted_rows(find(numbers, trades, cache)).equals(expected), f"{name}: other matches with cache={cache}"
    text = query_text(name, window_ms, numbers_only)
    runs = {cache: (lambda cache=cache: find(text, trades, cache)) for cache in ("auto", "on", "off")}
    return expected.num_rows, best_seconds(runs)


def experiments(trades: pa.Table) -> Iterator[Measurement]:
    for title, names in EXPERIMENTS.items():
        print(f"  {title}, {trades.num_rows:,} events, window {WINDOW_MS} ms")
        seconds, total = {}, 0
        for name in names:
            rows, taken = compare_caches(name, WINDOW_MS, trades, numbers_only=False)
            seconds[name], seconds[f"{name}, no cache"] = taken["auto"], taken["off"]
            total += rows
            ratio, uncached = taken["auto"] / seconds[names[0]], taken["off"] / taken["auto"]
            print(
                f"    {name:4} {taken['auto'] * 1000:8.1f} ms  {ratio:5.2f}x {names[0]}  {rows:9,} matches"
                f"  without cache {uncached:5.2f}x"
            )
        headline = f"{names[-1]} takes {seconds[names[-1]] / seconds[names[0]]:.2f}x as long as {names[0]}"
        yield Measurement(f"{title}, {trades.num_rows:,} events", total, seconds, headline=headline)


def outer_first(trades: pa.Table, window_ms: int, tree: Tree) -> Callable[[], np.ndarray]:
    """q10 as the paper evaluates it: the outer events first, then the inner sub-query in the interval between them."""
    plan = ss.query(query_text("q10", window_ms))._plan(trades.schema, "ts", "symbol", None, {}).plan
    events = prepare(plan.query, trades)
    (alternative,) = plan.alternatives
    places = candidates(alternative, events)

    def run() -> np.ndarray:
        search = TreeSearch(alternative, events, places, Relations(alternative), CHUNK_MATCHES)
        size = max(SLICE_PLACES, 2 * window_ms)
        slices = ((low, min(low + size, trades.num_rows)) for low in range(0, trades.num_rows, size))
        found = [rows for low, high in slices for rows in search.matches(tree, low, high)]
        return np.concatenate([np.empty((6, 0), np.int32), *found], axis=1)

    return run


def caching(trades: pa.Table) -> Iterator[Measurement]:
    """Section 5.1. The paper's two contenders share our kernels; `auto` is what a user of Streamsift gets."""
    print(f"  q10 with and without caching of the inner sub-query, {trades.num_rows:,} events")
    for window_ms in CACHE_WINDOWS_MS:
        text = query_text("q10", window_ms, numbers_only=True)
        expected = sorted_rows(find(text, trades, "auto"))
        runs: dict[str, Callable[[], object]] = {"auto": lambda text=text: find(text, trades, "auto")}
        for name, tree in Q10_TREES.items():
            runs[name] = run = outer_first(trades, window_ms, tree)
            columns = dict(zip(expected.column_names, run(), strict=True))
            assert sorted_rows(pa.table(columns)).equals(expected), f"q10, {name}: other matches"
        taken = best_seconds(runs)
        ratio = taken["inner again each time"] / taken["inner cached"]
        print(
            f"    window {window_ms:5} ms  {taken['inner cached'] * 1000:8.1f} ms  {expected.num_rows:10,} matches"
            f"  without cache {ratio:5.2f}x  auto {taken['auto'] / taken['inner cached']:5.2f}x"
        )
        headline = f"without cache {ratio:.2f}x as long"
        yield Measurement(
            f"q10, window {window_ms} ms, {trades.num_rows:,} events", expected.num_rows, taken, headline=headline
        )


def growth() -> Iterator[Measurement]:
    print(f"  growth at a fixed rate, window {WINDOW_MS} ms")
    for name in ("q3", "q6", "q9"):
        seconds, work = {}, {}
        for events in GROWTH:
            trades = make_trades(events)
            text = query_text(name)
            work[events] = events + find(text, trades, "auto").num_rows
            seconds[events] = best_seconds({name: lambda text=text, trades=trades: find(text, trades, "auto")})[name]
        per_row = {events: seconds[events] / work[events] for events in GROWTH}
        ratio = per_row[GROWTH[-1]] / per_row[GROWTH[0]]
        for events in GROWTH:
            print(
                f"    {name} {events:8,} events {seconds[events] * 1000:8.1f} ms  {per_row[events] * 1e9:6.0f} ns for"
                f" each event or match  {per_row[events] / per_row[GROWTH[0]]:5.2f}x"
            )
        headline = f"{ratio:.2f}x the time for each event or match"
        named = {f"{events:,} events": taken for events, taken in seconds.items()}
        yield Measurement(f"{name}, growth", work[GROWTH[-1]] - GROWTH[-1], named, headline=headline)


def main() -> list[Measurement]:
    few, many = make_trades(FEW_EVENTS), make_trades(MANY_EVENTS)
    check_against_sql(few)
    found = [*experiments(few), *experiments(many), *caching(few), *caching(many), *growth()]
    texts = [(name, window_ms, query_text(name, window_ms, numbers_only=True)) for name, window_ms in ON_SPARK]
    return [*found, *nested_spark.compare(many, texts)]


if __name__ == "__main__":
    main()
