"""Check that totals and rankings of a stream that is split by key, and merged, are those of a batch run."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import any_queries, bindings, on_a_stream, streams
from streamed import Saved, counted, cuts, plan_of
from streamsift.language import Script, parse, print_script
from streamsift.physical.plan.plan import Plan
from streamsift.physical.stream import part_plan, stream_plan
from streamsift.runtime.stream import ManyEngine, merged_rows
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

PARTS = 3
TICKS = ("WITHIN 4 UPDATE 2", "WITHIN 3 UPDATE 5", "WITHIN 2.5 UPDATE 0.5")
PATTERNS = (
    "SEQ(A a, B b) {where}",
    "SEQ(A a, !C c, B b) {where}",
    "SEQ(A a, B b) | SEQ(C c, D d) {where}",
    "SEQ(A a, B b, A c, B d) {where}",
    "SEQ(A a, B b, !C c) {where}",
    "SEQ(A a, B+ b) {where}",
    "SEQ(A a, B b) {where} AND a.n < b.n",
)
AGGREGATES = ("COUNT", "COUNT, SUM(b.n), AVG(b.x)", "SUM(b.x), MIN(b.x), MAX(b.n)", "COUNT, MAX(b.t), SUM(b.t)")
RANKED = ("PREF MAX[a.n + b.n] RETURN 2", "PREF MAX[a.n] AND MIN[b.x] RETURN 3", "PREF MAX[b.x] GROUP BY s RETURN 1")


@st.composite
def over_all_keys(draw: st.DrawFn) -> Script:
    pattern, ticks = draw(st.sampled_from(PATTERNS)), draw(st.sampled_from(TICKS))
    where = draw(st.sampled_from(["WHERE [id]", "WHERE [id] AND b.n > 0"]))
    what = draw(st.sampled_from([f"AGG {some}" for some in (*AGGREGATES, "MIN(b.s), MAX(b.s)")]))
    if "|" not in pattern and "+" not in pattern and draw(st.booleans()):
        what = draw(st.sampled_from(RANKED))
    return parse(f"PATTERN {pattern.format(where=where)} {what} {ticks}")


def in_parts(plan: Plan, table: pa.Table, seed: int) -> Rows:
    """Return the merged rows of engines that have some of the keys; some of them are saved and loaded."""
    part = part_plan(plan)
    assert part is not None
    engines, found = [ManyEngine({"": part}) for _ in range(PARTS)], list[dict[str, Any]]()
    saved = [Saved() for _ in range(PARTS)]
    for cut in cuts(table, plan.query.binding, seed):
        for number, engine in enumerate(engines):
            engine.push(_of_part(plan, cut.events, number))
        if cut.moment is not None:
            parts = [engine.advance(cut.moment)[""] for engine in engines]
            found += merged_rows(plan, parts).to_pylist()
        if cut.saves:
            for number, engine in enumerate(engines):
                saved[number].write(engine)
                engines[number] = ManyEngine({"": part})
                engines[number].load(saved[number].head, saved[number].chunks.items())
    return found + merged_rows(plan, [engine.finish()[""] for engine in engines]).to_pylist()


def _of_part(plan: Plan, events: pa.Table, number: int) -> pa.Table:
    keys = events.select(plan.keys).to_pylist()
    return events.filter(pa.array([hash(repr(key)) % PARTS == number for key in keys], pa.bool_()))


def check(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    text = print_script(script)
    note(text)
    if (
        script.statement.preference is not None
    ):  # ties without an order are broken by the input, which parts do not have
        binding = {**binding, "order": "seq"}
    rows = [{**row, "seq": place} for place, row in enumerate(rows)]
    table = pa.Table.from_pylist(rows, SCHEMA)
    try:
        plan = plan_of(text, SCHEMA, dict(binding))
        stream_plan(plan)
        if part_plan(plan) is None:
            event("not in parts")
            return
        expected = ss.query(text).run_local(table, **binding).to_pylist()
    except (ss.UnsupportedQuery, ss.QueryError, ss.BadInputError) as refusal:
        event(f"refused: {type(refusal).__name__}")
        return
    event("rows" if expected else "no row")
    assert counted(in_parts(plan, table, seed)) == counted(expected)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 50))
@given(over_all_keys(), streams(), bindings(), st.integers(0, 2**32))
def test_over_all_keys(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 30))
@given(any_queries().map(on_a_stream), streams(), bindings(), st.integers(0, 2**32))
def test_any_query(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check(script, rows, binding, seed)
