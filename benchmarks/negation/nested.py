"""Measure nested sequences with negation on stock trades: sub-queries, length, depth, caching, growth, Spark SQL.

These are the experiments of "Processing Nested Complex Sequence Pattern Queries over Event Streams", sections 4.2 to
4.4 and 5.1, with its queries q1 to q10, on generated trades: 100 per second, of twenty stocks, 1/3 of them at the time
of another trade. A larger scale makes only the stream longer. For q10, whose matches fill the memory, the stream has at
most one million trades.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import medians, sampled
from benchmarks.negation import nested_spark
from benchmarks.negation.nested_sql import Bucket, bucketed, sequence_of
from benchmarks.report.measurement import Measurement
from streamsift.command.demo_data import ticks
from streamsift.physical.plan.join_trees import Join, JoinLeaf, Tree
from streamsift.runtime import prepare
from streamsift.runtime.detect.adaptive import SLICE_PLACES
from streamsift.runtime.detect.joins import TreeSearch
from streamsift.runtime.detect.relations import Relations
from streamsift.runtime.detect.run import CHUNK_MATCHES
from streamsift.runtime.events.candidates import candidates

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
OUTER = Join(Join(JoinLeaf(0), JoinLeaf(4)), JoinLeaf(5))  # YHOO, ORCL, IPIX
Q10_TREES = {
    "inner cached": Join(OUTER, Join(Join(JoinLeaf(1), JoinLeaf(2)), JoinLeaf(3))),
    "inner again each time": Join(Join(Join(OUTER, JoinLeaf(1)), JoinLeaf(2)), JoinLeaf(3)),
}


def make_trades(events: int, settings: Settings) -> pa.Table:
    """Return the first trades of the same stream, each with a number, so that rates do not depend on their count."""
    wanted = settings.scaled(events)
    trades = ticks(max(MANY_EVENTS, wanted), settings.seed).slice(0, wanted)
    return trades.append_column("trade", pa.array(np.arange(wanted)))


def query_text(name: str, window_ms: int = WINDOW_MS, numbers_only: bool = False) -> str:
    """Return the query; with `numbers_only`, it returns only the numbers of a match's trades, as the SQL does."""
    numbers = ", ".join(f"{s}.trade AS trade_{i}" for i, s in enumerate(sequence_of(QUERIES[name]).events))
    return f"{QUERIES[name]} WITHIN {window_ms} ms" + f" RETURN {numbers}" * numbers_only


def find(text: str, trades: pa.Table, cache: str) -> pa.Table:
    return ss.query(text).run_local(trades, time="ts", type="symbol", cache=cache)


def sorted_rows(result: pa.Table) -> pa.Table:
    return result.cast(pa.schema([(name, pa.int64()) for name in result.column_names])).sort_by(
        [(name, "ascending") for name in result.column_names]
    )


def check_against_sql(trades: pa.Table) -> None:
    """Check that every query, with and without cache, returns the rows of DuckDB's SQL."""
    connection = duckdb.connect()
    connection.register("trades", trades)
    for name, text in QUERIES.items():
        expected = sorted_rows(connection.sql(bucketed(sequence_of(text), WINDOW_MS, Bucket.DUCKDB)).to_arrow_table())
        for cache in ("auto", "on", "off"):
            found = find(query_text(name, numbers_only=True), trades, cache)
            assert sorted_rows(found).equals(expected), f"{name}, cache={cache}: matches differ from DuckDB"
    print(f"  q1 to q10 return the rows of DuckDB's self-joins with NOT EXISTS, on {trades.num_rows:,} events")


def checked_matches(name: str, trades: pa.Table) -> int:
    """Return the number of matches, after checking that it is the same with every cache setting."""
    numbers = query_text(name, numbers_only=True)
    expected = sorted_rows(find(numbers, trades, "off"))
    for cache in ("auto", "on"):
        assert sorted_rows(find(numbers, trades, cache)).equals(expected), f"{name}: matches differ with cache={cache}"
    return expected.num_rows


def experiments(trades: pa.Table, settings: Settings) -> Iterator[Measurement]:
    for title, names in EXPERIMENTS.items():
        print(f"  {title}, {trades.num_rows:,} events, window {WINDOW_MS} ms")
        matches = {name: checked_matches(name, trades) for name in names}
        runs = {}
        for name in names:
            runs[name] = partial(find, query_text(name), trades, "auto")
            runs[f"{name}, no cache"] = partial(find, query_text(name), trades, "off")
        samples = sampled(runs, settings)
        taken = medians(samples)
        for name in names:
            ratio, uncached = taken[name] / taken[names[0]], taken[f"{name}, no cache"] / taken[name]
            print(
                f"    {name:4} {taken[name] * 1000:8.1f} ms  {ratio:5.2f}x {names[0]}  {matches[name]:9,} matches"
                f"  without cache {uncached:5.2f}x"
            )
        headline = f"{names[-1]} takes {taken[names[-1]] / taken[names[0]]:.2f}x as long as {names[0]}"
        yield Measurement(f"{title}, {trades.num_rows:,} events", sum(matches.values()), samples, headline=headline)


def outer_first(trades: pa.Table, window_ms: int, tree: Tree) -> Callable[[], np.ndarray]:
    """Evaluate q10 as in the paper: the outer events first, then the inner sub-query in the interval between them."""
    plan = ss.query(query_text("q10", window_ms)).plan(trades.schema, "ts", "symbol", None)
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


def caching(trades: pa.Table, settings: Settings) -> Iterator[Measurement]:
    """Measure section 5.1. Both of the paper's variants use our kernels; `auto` is Streamsift's default."""
    print(f"  q10 with and without caching of the inner sub-query, {trades.num_rows:,} events")
    for window_ms in CACHE_WINDOWS_MS:
        text = query_text("q10", window_ms, numbers_only=True)
        expected = sorted_rows(find(text, trades, "auto"))
        runs: dict[str, Callable[[], object]] = {"auto": partial(find, text, trades, "auto")}
        for name, tree in Q10_TREES.items():
            runs[name] = run = outer_first(trades, window_ms, tree)
            columns = dict(zip(expected.column_names, run(), strict=True))
            assert sorted_rows(pa.table(columns)).equals(expected), f"q10, {name}: other matches"
        samples = sampled(runs, settings, warm=True)
        taken = medians(samples)
        ratio = taken["inner again each time"] / taken["inner cached"]
        print(
            f"    window {window_ms:5} ms  {taken['inner cached'] * 1000:8.1f} ms  {expected.num_rows:10,} matches"
            f"  without cache {ratio:5.2f}x  auto {taken['auto'] / taken['inner cached']:5.2f}x"
        )
        headline = f"without cache {ratio:.2f}x as long"
        yield Measurement(
            f"q10, window {window_ms} ms, {trades.num_rows:,} events", expected.num_rows, samples, headline=headline
        )


def growth(settings: Settings) -> Iterator[Measurement]:
    print(f"  growth at a fixed rate, window {WINDOW_MS} ms")
    for name in ("q3", "q6", "q9"):
        runs, work, text = dict[str, Callable[[], object]](), list[int](), query_text(name)
        for events in GROWTH:
            trades = make_trades(events, settings)
            runs[f"{trades.num_rows:,} events"] = partial(find, text, trades, "auto")
            work.append(trades.num_rows + find(text, trades, "auto").num_rows)
        samples = sampled(runs, settings, warm=True)
        taken = medians(samples)
        per_row = [seconds / rows for seconds, rows in zip(taken.values(), work, strict=True)]
        for (events_label, seconds), each in zip(taken.items(), per_row, strict=True):
            print(
                f"    {name} {events_label:>14} {seconds * 1000:8.1f} ms  {each * 1e9:6.0f} ns per event or match"
                f"  {each / per_row[0]:5.2f}x"
            )
        headline = f"{per_row[-1] / per_row[0]:.2f}x the time per event or match"
        yield Measurement(f"{name}, growth", work[-1] - trades.num_rows, samples, headline=headline)


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    few, many = make_trades(FEW_EVENTS, settings), make_trades(MANY_EVENTS, settings)
    check_against_sql(few)
    found = [each for trades in (few, many) for each in experiments(trades, settings)]
    found += [each for trades in (few, many.slice(0, MANY_EVENTS)) for each in caching(trades, settings)]
    found += growth(settings)
    texts = [(name, window_ms, query_text(name, window_ms, numbers_only=True)) for name, window_ms in ON_SPARK]
    return [*found, *nested_spark.compare(many, texts, settings)]


if __name__ == "__main__":
    main()
