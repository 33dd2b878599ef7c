"""Measure counting without building matches: the experiments of the A-Seq paper, growth, and a shared workload.

A larger scale makes only the stream longer. Windows, rates and queries stay the same, so a window holds as many events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.trades import SYMBOLS, trades_of
from benchmarks.detect.intermediate import peak_mb
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import Samples, medians, sampled
from benchmarks.report.measurement import Measurement
from streamsift.api import ShareName
from streamsift.physical.plan.plan import AggregatePlan
from streamsift.physical.share.plan import share as plan_sharing
from streamsift.runtime.count import AggregateInput, TotalRecords
from streamsift.runtime.count.count_kernels import mark_starts, multiply_windows
from streamsift.runtime.count.operations import Layout, keys_of_places, lay_out
from streamsift.runtime.events.prepare import prepare

BINDING = {"time": "ts", "type": "symbol"}
TRADES = 120_000  # the size of the paper's trace
MANY_TRADES = 1_000_000
FLAT_TRADES, SEM_TRADES = 4_000_000, 300_000  # for kernels alone
SEED = 3


def pattern(symbols: list[str], window_ms: float, aggregates: str = "COUNT") -> str:
    steps = ", ".join(f"{symbol} v{number}" for number, symbol in enumerate(symbols))
    return f"PATTERN SEQ({steps}) AGG {aggregates} WITHIN {window_ms:g} ms"


def trades(events: int, settings: Settings, **rates: Any) -> pa.Table:
    return trades_of(settings.scaled(events), seed=settings.seeded(SEED), **rates)


def compare(workload: str, text: str, table: pa.Table, strategies: list[str], settings: Settings) -> Measurement:
    """Compare the strategies on one query after checking that results are equal; the first is the default."""
    query = ss.query(text)
    runs = {each: partial(query.run_local, table, **BINDING, strategy=each) for each in strategies}
    expected = runs[strategies[0]]()
    for strategy, run in runs.items():
        assert run().equals(expected), f"{strategy}: counts differ"
    return _reported(workload, expected.num_rows, sampled(runs, settings, warm=True))


def memory(workload: str, text: str, table: pa.Table, strategies: list[str]) -> Measurement:
    """Measure the peak memory of each strategy, in addition to the events."""
    query = ss.query(text)
    taken = {each: peak_mb(partial(query.run_local, table, **BINDING, strategy=each)) for each in strategies}
    print(f"  {workload:46} {'':13}  {'  '.join(f'{name} {most:.1f} MB' for name, most in taken.items())}")
    return Measurement(f"memory of {workload}", table.num_rows, taken, unit="MB")


def _reported(workload: str, rows: int, samples: dict[str, Samples]) -> Measurement:
    taken = medians(samples)
    ours = next(iter(taken.values()))
    times = "  ".join(f"{name} {value * 1000:.1f} ms ({value / ours:.1f}x)" for name, value in taken.items())
    print(f"  {workload:46} {rows:>8,} rows  {times}")
    return Measurement(workload, rows, samples)


# --- figures 12 to 14: one query -------------------------------------------------------------------------------------


def single_queries(settings: Settings) -> Iterator[Measurement]:
    table = trades(TRADES, settings)

    def both(workload: str, text: str, ways: list[str]) -> Iterator[Measurement]:
        yield compare(workload, text, table, ways, settings)
        yield memory(workload, text, table, ways)

    print("figure 12: pattern length, window 100 ms")
    for length in range(2, 6):
        ways = ["two-stack", "sem", *["detect"] * (length <= 4)]
        yield from both(f"figure 12: length {length}", pattern(SYMBOLS[:length], 100), ways)
    print("figure 13: window, length 3")
    for window in (100, 200, 500, 1000, 2000):
        ways = ["two-stack", "sem", *["detect"] * (window <= 500)]
        yield from both(f"figure 13: window {window} ms", pattern(SYMBOLS[:3], window), ways)
    print("figure 14: where building matches no longer ends, window 2,000 ms")
    for length in range(6, 11):
        text = pattern(SYMBOLS[:length], 2000)
        yield compare(f"figure 14a: length {length}", text, table, ["two-stack", "sem"], settings)
    print("figure 14: negation")
    for symbols in (["DELL", "IPIX", "AMAT"], ["DELL", "IPIX", "!QQQ", "AMAT"]):
        ways = ["two-stack", "sem", "detect"]
        yield compare(f"figure 14b: {', '.join(symbols)}", pattern(symbols, 200), table, ways, settings)


# --- figures 15 and 16, and 100 queries: sharing -------------------------------------------------------------------


def share(workload: str, texts: list[str], table: pa.Table, settings: Settings, how: ShareName = "auto") -> Measurement:
    """Compare running the queries together with running them one by one after checking that results are equal."""
    queries = {f"q{number}": ss.query(text) for number, text in enumerate(texts)}
    explained = ss.explain_many(queries, table, **BINDING, share=how)
    assert "tree 1" in explained or "chop 1" in explained, "nothing is shared"

    def one_by_one() -> dict[str, pa.Table]:
        return {name: query.run_local(table, **BINDING) for name, query in queries.items()}

    runs = {"run_many": partial(ss.run_many, queries, table, **BINDING, share=how), "one by one": one_by_one}
    expected, shared = one_by_one(), runs["run_many"]()
    assert all(shared[name].equals(expected[name]) for name in queries), "sharing changes the counts"
    rows = sum(result.num_rows for result in expected.values())
    return _reported(workload, rows, sampled(runs, settings, warm=True))


def with_common_part(count: int, length: int, window_ms: float) -> list[str]:
    """Return queries that begin with different classes and continue with the same `length` classes."""
    return [pattern([SYMBOLS[length + own], *SYMBOLS[:length]], window_ms) for own in range(count)]


def figure_15(settings: Settings) -> Measurement:
    print("figure 15: three queries, a common part of 3; matches built, starts marked, two stacks, chop-connect")
    table = trades(MANY_TRADES, settings).slice(0, settings.scaled(TRADES))
    queries = {f"q{number}": ss.query(text) for number, text in enumerate(with_common_part(3, 3, 100))}
    together = partial(ss.run_many, queries, table, **BINDING)
    runs = {"chop-connect": partial(together, share="always")}
    runs |= {each: partial(together, share="never", strategy=each) for each in ("two-stack", "sem", "detect")}
    expected = runs["chop-connect"]()
    for strategy, run in runs.items():
        assert all(result.equals(expected[name]) for name, result in run().items()), f"{strategy}: counts differ"
    rows = sum(result.num_rows for result in expected.values())
    return _reported("figure 15: three queries", rows, sampled(runs, settings, warm=True))


def chopped_queries(settings: Settings) -> Iterator[Measurement]:
    """Always share. Chop-connect keeps counters per start event; two stacks cost the same for any window."""
    yield figure_15(settings)
    table = trades(MANY_TRADES, settings)
    print("figure 16: three queries, by the length of their common part (window 100 ms)")
    for length in range(2, 7):
        texts = with_common_part(3, length, 100)
        yield share(f"figure 16c: common part of {length}", texts, table, settings, "always")
    print("figure 16: queries with a common part of 3")
    for count in range(2, 7):
        yield share(f"figure 16d: {count} queries", with_common_part(count, 3, 100), table, settings, "always")
    print("beyond the paper: six queries with a common part of 6, by window")
    pairs = [[one, other] for one, other in product(SYMBOLS[6:], SYMBOLS[6:]) if one != other]
    for window in (20, 100, 500):
        texts = [pattern([*pair, *SYMBOLS[:6]], window) for pair in pairs[::5]]
        yield share(f"6 queries, window {window} ms", texts, table, settings, "always")


def shared_queries(settings: Settings) -> Iterator[Measurement]:
    table = trades(MANY_TRADES, settings)
    print("figure 16: three queries, by the length of their common prefix (window 100 ms)")
    for length in range(2, 7):
        texts = [pattern([*SYMBOLS[:length], SYMBOLS[length + tail]], 100) for tail in range(3)]
        yield share(f"figure 16b: common prefix of {length}", texts, table, settings, "always")
    print("figure 16: queries with a common prefix of 3")
    for count in range(2, 7):
        texts = [pattern([*SYMBOLS[:3], SYMBOLS[3 + tail]], 100) for tail in range(count)]
        yield share(f"figure 16a: {count} queries", texts, table, settings, "always")
    print("a workload of 100 queries with common prefixes of length 3")
    tails = [[one, other] for one, other in product(SYMBOLS[4:], SYMBOLS[4:]) if one != other][:50]
    texts = [pattern([*prefix, *tail], 200) for prefix in (SYMBOLS[:3], SYMBOLS[1:4]) for tail in tails]
    sums = [text.replace("AGG COUNT", "AGG COUNT, SUM(v0.price), MAX(v1.price)") for text in texts]
    few = table.slice(0, settings.scaled(TRADES))
    yield share("100 queries with sums and extremes", sums, few, settings)
    yield share("100 queries, 2 prefixes of length 3", texts, table, settings)


def planning(settings: Settings, count: int = 1000) -> Iterator[Measurement]:
    """Measure planning a large workload: with common prefixes, and with common inner parts."""
    random, schema = np.random.default_rng(settings.seed), trades_of(1).schema
    alike = [
        pattern([*SYMBOLS[:3], *random.permutation(SYMBOLS[3:])[: random.integers(1, 5)]], 100) for _ in range(count)
    ]
    inner = [
        pattern([*random.choice(SYMBOLS, 8)], 100).replace("AGG", f"WHERE v0.price > {n} AGG") for n in range(count)
    ]
    for name, texts in (("common beginnings", alike), ("inner parts in common", inner)):
        queries = {f"q{number}": ss.query(text) for number, text in enumerate(texts)}
        plans = {name: query.plan(schema, BINDING["time"], BINDING["type"], None) for name, query in queries.items()}
        runs = {
            "sharing plan": partial(plan_sharing, plans),
            "with a plan for each": partial(ss.explain_many, queries, schema, **BINDING),
        }
        yield _reported(f"planning {count:,} queries, {name}", count, sampled(runs, settings))


# --- flatness: the kernels alone -----------------------------------------------------------------------------------


def layout_of(table: pa.Table, text: str) -> Layout:
    plan = ss.query(text).plan(table.schema, "ts", "symbol", None)
    assert isinstance(plan, AggregatePlan)
    events = prepare(plan.query, table)
    given = AggregateInput.of(plan.query, plan.alternatives, events)
    return lay_out(plan.branches[0], given, keys_of_places(plan.branches[0], given))


def kernel(layout: Layout, name: str) -> tuple[Callable[[], None], np.ndarray]:
    """Return a run of a kernel, and its counts."""
    tree, operations = layout.tree, layout.operations
    out, filled = TotalRecords.room(int(layout.sizes.max())), np.zeros(tree.levels + 1, np.int64)

    def run() -> None:
        filled[:] = 0
        if name == "two-stack":
            multiply_windows(tree, operations, False, out, filled)
        else:
            mark_starts(operations, tree.levels, False, out, filled)

    run()
    counts = out.integers[: filled[tree.levels], 0].copy()
    assert counts.min() > 0, "a count exceeds 64 bits"
    return run, counts


# The shares of the classes. With five steps and equal shares, a window of 100,000 events has more matches than 64 bits
# hold, and one of 1,000,000 has many more. These are the most even shares whose counts fit.
MIXES = {3: [1 / 3] * 3, 5: [0.98, *[0.005] * 4]}
MIXES_FOR_SEM = {3: [1 / 3] * 3, 5: [0.55, *[0.1125] * 4]}


def flatness(settings: Settings) -> Iterator[Measurement]:
    """Measure windows of w events, which are w microseconds long: there is one trade per microsecond on average."""
    for length, shares in MIXES.items():
        table = trades(FLAT_TRADES, settings, per_ms=1000, shares=shares)
        first = None
        for window in (100, 10_000, 100_000, 1_000_000):
            run, counts = kernel(layout_of(table, pattern(SYMBOLS[:length], window / 1000)), "two-stack")
            first = first or run
            samples = sampled({"two-stack": run, "window of 100": first}, settings, warm=True)
            taken, base = medians(samples).values()
            print(
                f"  length {length}, {window:>9,} active events: {table.num_rows / taken / 1e6:5.1f} M events/s, "
                f"{base / taken:.2f} of 100; counts up to {counts.max():.1e}"
            )
            yield Measurement(f"length {length}, window {window}", table.num_rows, samples)


def against_sem(settings: Settings) -> Iterator[Measurement]:
    """Measure 100,000 active events; 1/3 of them are start events with three steps, 55 % with five."""
    for length, shares in MIXES_FOR_SEM.items():
        table = trades(SEM_TRADES, settings, per_ms=1000, shares=shares)
        layout = layout_of(table, pattern(SYMBOLS[:length], 100))
        (ours, counts), (sem, others) = kernel(layout, "two-stack"), kernel(layout, "sem")
        assert np.array_equal(counts, others), "SEM returns different counts"
        samples = sampled({"two-stack": ours, "sem": sem}, settings, warm=True)
        yield _reported(f"length {length}, SEM", len(counts), samples)


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    print("flatness: two-stack kernel on one core")
    found = [*flatness(settings), *against_sem(settings), *single_queries(settings)]
    found += [*chopped_queries(settings), *shared_queries(settings)]
    print("planning a workload")
    return [*found, *planning(settings)]


if __name__ == "__main__":
    main()
