"""Counting without matching: the A-Seq paper's experiments on generated trades, flatness, a shared workload."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.trades import SYMBOLS, trades_of
from benchmarks.intermediate import peak_mb
from benchmarks.report import Measurement
from streamsift.many import ShareName
from streamsift.physical.plan import AggregatePlan
from streamsift.physical.sharing import share as plan_sharing
from streamsift.runtime import counters
from streamsift.runtime.aggregate_output import groups_of
from streamsift.runtime.clock import clock_of
from streamsift.runtime.counters import Counts
from streamsift.runtime.events import prepare
from streamsift.runtime.operations import NO_SEAL, Layout, lay_out

BINDING = {"time": "ts", "type": "symbol"}
TRADES = 120_000  # as many as the paper's trace has
ROUNDS = 3


def pattern(symbols: list[str], window_ms: float, aggregates: str = "COUNT") -> str:
    steps = ", ".join(f"{symbol} v{number}" for number, symbol in enumerate(symbols))
    return f"PATTERN SEQ({steps}) AGG {aggregates} WITHIN {window_ms:g} ms"


def seconds(run: Callable[[], object], rounds: int = ROUNDS, now: Callable[[], float] = time.perf_counter) -> float:
    best = np.inf
    for _ in range(rounds):
        start = now()
        run()
        best = min(best, now() - start)
    return best


def compare(workload: str, text: str, table: pa.Table, strategies: list[str]) -> Measurement:
    """The strategies on one query; the first is ours. Equal results first."""
    query = ss.query(text)
    expected = query.run_local(table, **BINDING, strategy=strategies[0])
    taken: dict[str, float] = {}
    for strategy in strategies:
        result = query.run_local(table, **BINDING, strategy=strategy)
        assert result.equals(expected), f"{strategy} counts otherwise"
        taken[strategy] = seconds(partial(query.run_local, table, **BINDING, strategy=strategy))
    report(workload, expected.num_rows, taken)
    return Measurement(workload, expected.num_rows, taken, 1.0)


def memory(workload: str, text: str, table: pa.Table, strategies: list[str]) -> Measurement:
    """What each strategy holds at most, beside the events."""
    query = ss.query(text)
    taken = {each: peak_mb(partial(query.run_local, table, **BINDING, strategy=each)) for each in strategies}
    print(f"  {workload:46} {'':13}  {'  '.join(f'{name} {most:.1f} MB' for name, most in taken.items())}")
    return Measurement(f"memory of {workload}", table.num_rows, taken, unit="MB")


def report(workload: str, rows: int, taken: dict[str, float]) -> None:
    ours = next(iter(taken.values()))
    times = "  ".join(f"{name} {value * 1000:.1f} ms ({value / ours:.1f}x)" for name, value in taken.items())
    print(f"  {workload:46} {rows:>8,} rows  {times}")


# --- figures 12 to 14: one query -------------------------------------------------------------------------------------


def single_queries() -> list[Measurement]:
    table = trades_of(TRADES)
    found = []
    print("figure 12: pattern length, window 100 ms")
    for length in range(2, 6):
        ways = ["two-stack", "sem", *["detect"] * (length <= 4)]
        for measured in (compare, memory):
            found.append(measured(f"figure 12: length {length}", pattern(SYMBOLS[:length], 100), table, ways))
    print("figure 13: window, length 3")
    for window in (100, 200, 500, 1000, 2000):
        ways = ["two-stack", "sem", *["detect"] * (window <= 500)]
        for measured in (compare, memory):
            found.append(measured(f"figure 13: window {window} ms", pattern(SYMBOLS[:3], window), table, ways))
    print("figure 14: where building matches no longer ends, window 2,000 ms")
    for length in range(6, 11):
        query = pattern(SYMBOLS[:length], 2000)
        found.append(compare(f"figure 14a: length {length}", query, table, ["two-stack", "sem"]))
    print("figure 14: negation")
    for symbols in (["DELL", "IPIX", "AMAT"], ["DELL", "IPIX", "!QQQ", "AMAT"]):
        ways = ["two-stack", "sem", "detect"]
        found.append(compare(f"figure 14b: {', '.join(symbols)}", pattern(symbols, 200), table, ways))
    return found


# --- figures 15 and 16, and 100 queries: sharing -------------------------------------------------------------------


def share(workload: str, texts: list[str], table: pa.Table, how: ShareName = "auto") -> Measurement:
    """The queries together against one by one; equal results first."""
    queries = {f"q{number}": ss.query(text) for number, text in enumerate(texts)}
    explained = ss.explain_many(queries, table, **BINDING, share=how)
    assert "tree 1" in explained or "chop 1" in explained, "nothing is shared"

    def one_by_one() -> dict[str, pa.Table]:
        return {name: query.run_local(table, **BINDING) for name, query in queries.items()}

    expected, shared = one_by_one(), ss.run_many(queries, table, **BINDING, share=how)
    assert all(shared[name].equals(expected[name]) for name in queries), "sharing changes counts"
    rows = sum(result.num_rows for result in expected.values())
    taken = {
        "run_many": seconds(lambda: ss.run_many(queries, table, **BINDING, share=how)),
        "one by one": seconds(one_by_one, 1 if len(texts) > 20 else ROUNDS),
    }
    report(workload, rows, taken)
    return Measurement(workload, rows, taken, 1.0)


def with_common_part(count: int, length: int, window_ms: float) -> list[str]:
    """Queries that begin each with a class of its own and go on with the same `length` classes."""
    return [pattern([SYMBOLS[length + own], *SYMBOLS[:length]], window_ms) for own in range(count)]


def chopped_queries() -> list[Measurement]:
    """Sharing whatever it costs: chop-connect has counters for each start, two stacks cost the same for any window."""
    table = trades_of(1_000_000)
    found = []
    print("figure 15: three queries, a common part of 3; matches built, starts marked, two stacks, chop-connect")
    small, texts = table.slice(0, TRADES), with_common_part(3, 3, 100)
    queries = {f"q{number}": ss.query(text) for number, text in enumerate(texts)}
    expected = ss.run_many(queries, small, **BINDING, share="always")
    taken = {"chop-connect": seconds(lambda: ss.run_many(queries, small, **BINDING, share="always"))}
    for strategy in ("two-stack", "sem", "detect"):
        alone = partial(ss.run_many, queries, small, **BINDING, share="never", strategy=strategy)
        assert all(result.equals(expected[name]) for name, result in alone().items()), f"{strategy} counts otherwise"
        taken[strategy] = seconds(alone, 1 if strategy == "detect" else ROUNDS)
    rows = sum(result.num_rows for result in expected.values())
    report("figure 15", rows, taken)
    found.append(Measurement("figure 15: three queries", rows, taken))
    print("figure 16: three queries, by the length of their common part (window 100 ms)")
    for length in range(2, 7):
        texts = with_common_part(3, length, 100)
        found.append(share(f"figure 16c: common part of {length}", texts, table, "always"))
    print("figure 16: queries with a common part of 3")
    for count in range(2, 7):
        found.append(share(f"figure 16d: {count} queries", with_common_part(count, 3, 100), table, "always"))
    print("beyond the paper: six queries with a common part of 6, by window")
    pairs = [[one, other] for one, other in product(SYMBOLS[6:], SYMBOLS[6:]) if one != other]
    for window in (20, 100, 500):
        texts = [pattern([*pair, *SYMBOLS[:6]], window) for pair in pairs[::5]]
        found.append(share(f"6 queries, window {window} ms", texts, table, "always"))
    return found


def shared_queries() -> list[Measurement]:
    table = trades_of(1_000_000)
    found = []
    print("figure 16: three queries, by the length of their common prefix (window 100 ms)")
    for length in range(2, 7):
        texts = [pattern([*SYMBOLS[:length], SYMBOLS[length + tail]], 100) for tail in range(3)]
        found.append(share(f"figure 16b: common prefix of {length}", texts, table))
    print("figure 16: queries with a common prefix of 3")
    for count in range(2, 7):
        texts = [pattern([*SYMBOLS[:3], SYMBOLS[3 + tail]], 100) for tail in range(count)]
        found.append(share(f"figure 16a: {count} queries", texts, table))
    print("a workload of 100 queries with common prefixes of length 3")
    tails = [[one, other] for one, other in product(SYMBOLS[4:], SYMBOLS[4:]) if one != other][:50]
    texts = [pattern([*prefix, *tail], 200) for prefix in (SYMBOLS[:3], SYMBOLS[1:4]) for tail in tails]
    sums = [text.replace("AGG COUNT", "AGG COUNT, SUM(v0.price), MAX(v1.price)") for text in texts]
    share("100 queries with sums and extremes", sums, table.slice(0, TRADES))
    found.append(share("100 queries, 2 prefixes of length 3", texts, table))
    return found


def planning(count: int = 1000, seed: int = 1) -> None:
    """How long the sharing plan of a large workload takes: with common beginnings, and with inner parts in common."""
    random, schema = np.random.default_rng(seed), trades_of(1).schema
    alike = [
        pattern([*SYMBOLS[:3], *random.permutation(SYMBOLS[3:])[: random.integers(1, 5)]], 100) for _ in range(count)
    ]
    inner = [
        pattern([*random.choice(SYMBOLS, 8)], 100).replace("AGG", f"WHERE v0.price > {n} AGG") for n in range(count)
    ]
    for name, texts in (("common beginnings", alike), ("inner parts in common", inner)):
        queries = {f"q{number}": ss.query(text) for number, text in enumerate(texts)}
        plans = {name: query.plan(schema, BINDING["time"], BINDING["type"], None) for name, query in queries.items()}
        explained = seconds(partial(ss.explain_many, queries, schema, **BINDING), 1, time.thread_time)
        shared = seconds(partial(plan_sharing, plans), 1, time.thread_time)
        print(
            f"  {count:,} queries, {name}: {shared:.2f} s for the sharing plan, {explained:.2f} s with a plan for each"
        )


# --- flatness: the kernels alone -----------------------------------------------------------------------------------


def layout_of(table: pa.Table, text: str) -> Layout:
    plan = ss.query(text).plan(table.schema, "ts", "symbol", None)
    assert isinstance(plan, AggregatePlan)
    events = prepare(plan.query, table)
    clock = clock_of(plan.query, events)
    return lay_out(plan.branches[0], events, clock, groups_of(plan.query, events, clock))


def kernel(layout: Layout, name: str, rounds: int) -> tuple[float, np.ndarray]:
    """The best time of a kernel, of this thread's own so that a busy machine does not matter; and its counts."""
    room = int((layout.operations.seal != NO_SEAL).sum())
    out = Counts.room(room)
    run = counters.multiply_windows if name == "two-stack" else counters.mark_starts
    written = run(layout.operations, layout.levels, False, out)
    taken = seconds(lambda: run(layout.operations, layout.levels, False, out), rounds, time.thread_time)
    assert out.size[:written].max() < 2.0**63, "a count passes 64 bits"
    return taken, out.total[:written].copy()


# The shares of the classes. In five steps of equal shares a window of 100,000 events has more matches than 64 bits
# hold, one of 1,000,000 many more: these are the most even ones with counts that fit.
MIXES = {3: [1 / 3] * 3, 5: [0.98, *[0.005] * 4]}
MIXES_FOR_SEM = {3: [1 / 3] * 3, 5: [0.55, *[0.1125] * 4]}


def flatness(events: int = 4_000_000) -> list[Measurement]:
    """A window of w events is w microseconds long: there is a trade in each, on average."""
    found = []
    for length, shares in MIXES.items():
        table = trades_of(events, per_ms=1000, shares=shares)
        first = 0.0
        for window in (100, 10_000, 100_000, 1_000_000):
            layout = layout_of(table, pattern(SYMBOLS[:length], window / 1000))
            taken, counts = kernel(layout, "two-stack", 5)
            first = first or taken
            print(
                f"  length {length}, {window:>9,} active events: {events / taken / 1e6:5.1f} M events/s, "
                f"{first / taken:.2f} of 100; counts up to {counts.max():.1e}"
            )
            name = f"length {length}, window {window}"
            found.append(Measurement(name, events, {"two-stack": taken, "window of 100": first}, 1.0))
    return found


def against_sem(events: int = 300_000) -> list[Measurement]:
    """100,000 active events; a third of them starts in three steps, 55 % in five."""
    found = []
    for length, shares in MIXES_FOR_SEM.items():
        table = trades_of(events, per_ms=1000, shares=shares)
        layout = layout_of(table, pattern(SYMBOLS[:length], 100))
        (ours, counts), (sem, others) = kernel(layout, "two-stack", 3), kernel(layout, "sem", 1)
        assert np.array_equal(counts, others), "SEM counts otherwise"
        print(f"  length {length}, 100,000 active events: SEM takes {sem / ours:.0f} times as long")
        found.append(Measurement(f"length {length}, SEM", len(counts), {"two-stack": ours, "sem": sem}, 1.0))
    return found


def main() -> list[Measurement]:
    print("flatness: two-stack kernel on one core")
    found = [*flatness(), *against_sem(), *single_queries(), *chopped_queries(), *shared_queries()]
    print("planning a workload")
    planning()
    return found


if __name__ == "__main__":
    main()
