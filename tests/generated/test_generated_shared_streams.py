"""Check that streaming queries that share counters return the rows of a batch run."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import bindings, streams
from streamed import counted, plan_of, streamed_many
from streamsift.physical.share import ShareMode, share_stream
from streamsift.physical.stream import DecideBy, stream_plan
from streamsift.runtime.stream import engine
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

PATTERNS = (
    "SEQ(A a, B b)",
    "SEQ(A a, B b, C c)",
    "SEQ(A a, B b, D d)",
    "SEQ(A a, B b, C c, A e)",
    "SEQ(A a, !C n, B b)",
)
AGGREGATES = ("COUNT", "SUM(a.n), COUNT", "AVG(b.x), MAX(b.n)", "COUNT, MIN(a.x), MAX(b.t)")
WINDOWS = ("WITHIN 3", "WITHIN 0", "WITHIN 5 EXCLUSIVE", "WITHIN 2.5")


@st.composite
def families(draw: st.DrawFn) -> list[str]:
    """Generate queries with common first steps, the same window and the same groups."""
    group, window = draw(st.sampled_from(["", "GROUP BY id", "GROUP BY id, s"])), draw(st.sampled_from(WINDOWS))
    counts = draw(st.booleans())
    patterns = draw(st.lists(st.sampled_from(PATTERNS), min_size=2, max_size=4))
    aggregates = [draw(st.sampled_from(AGGREGATES[:1] if counts else AGGREGATES[1:])) for _ in patterns]
    texts = (f"PATTERN {p} {group} AGG {a} {window}" for p, a in zip(patterns, aggregates, strict=True))
    return list(dict.fromkeys(texts))


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 50))
@given(families(), streams(), bindings(), st.integers(0, 2**32))
def test_families(texts: list[str], rows: Rows, binding: dict[str, str], seed: int) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    plans = {text: plan_of(text, SCHEMA, dict(binding)) for text in texts}
    assert all(stream_plan(plan).decide_by is DecideBy.WINDOW_TOTALS for plan in plans.values())
    sharing = share_stream(plans, ShareMode.ALWAYS)
    event("shared" if sharing.trees else "alone")
    expected = {text: ss.query(text).run_local(table, **binding).to_pylist() for text in texts}
    found = streamed_many(plans, table, seed, ShareMode.ALWAYS)
    assert {name: counted(each) for name, each in found.items()} == {n: counted(e) for n, e in expected.items()}


def test_keys_come_and_go() -> None:
    """Long enough for logs to be moved, and for the keys of a shared window to be dropped."""
    chance, seed = random.Random(5), 5
    rows = [
        {
            "t": t // 4,
            "kind": chance.choice("ABCD"),
            "id": t // 50 + chance.randrange(4),
            "n": t % 7,
            "x": 0.5,
            "s": "u",
        }
        for t in range(3_000)
    ]
    table = pa.Table.from_pylist([{**row, "seq": place} for place, row in enumerate(rows)], SCHEMA)
    texts = [f"PATTERN {pattern} GROUP BY id AGG COUNT, SUM(b.n) WITHIN 30" for pattern in PATTERNS[:3]]
    binding: dict[str, str | None] = {"time": "t", "type": "kind"}
    plans = {text: plan_of(text, SCHEMA, binding) for text in texts}
    assert share_stream(plans, ShareMode.ALWAYS).trees
    assert len(engine.shared_deciders({n: stream_plan(p) for n, p in plans.items()}, ShareMode.ALWAYS)) == 3
    found = streamed_many(plans, table, seed, ShareMode.ALWAYS)
    for text in texts:
        expected = ss.query(text).run_local(table, time="t", type="kind").to_pylist()
        assert counted(found[text]) == counted(expected)
