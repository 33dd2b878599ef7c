"""Check in which micro-batch a stream releases each match, against the oracle for when (tests/naive_releases.py)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import naive_releases
import streamsift as ss
from naive_releases import Promise
from strategies import (
    COLUMNS,
    bindings,
    defining_queries,
    flat_queries,
    group_queries,
    negating_queries,
    on_a_stream,
    queries,
    sparse_streams,
    streams,
)
from streamed import Saved, frozen, plan_of
from streamsift.language import Script, print_script
from streamsift.physical.plan.plan import Plan
from streamsift.physical.stream import used_order
from streamsift.runtime.stream.engine import ManyEngine
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

DETECTION = {"aggregates": False, "ranking": False}
SEEDS = st.integers(0, 2**32)
ORDERED = [None, None, ("id",), ("id",), (), ("id", "x"), ("seq",)]


@dataclass(frozen=True)
class Arrival:
    """Micro-batches of a stream, where it is saved, and what is promised about it."""

    batches: list[Rows]
    saves: list[bool]
    promise: Promise


def arrival(rows: Rows, ordered: tuple[str, ...] | None, seed: int) -> Arrival:
    """Split rows, which arrive mostly in time order, into micro-batches. Some events are late."""
    chance = random.Random(seed)
    jitter = chance.choice([[0], [0, 0, 0, 2], [0, 1, 3, 6], [0, 0, 20]])
    lateness = chance.choice([0, 0, 1, 3, 8, 100])
    arriving = sorted(rows, key=lambda row: row["t"] + chance.choice(jitter))
    if ordered is not None and chance.random() < 0.85:
        arriving = _kept_promise(arriving, ordered)
    batches: list[Rows] = []
    most = chance.choice([1, 1, 2, 3, 5])
    while arriving:
        count = chance.randint(0 if chance.random() < 0.3 else 1, most)
        batches.append(arriving[:count])
        arriving = arriving[count:]
    if batches and chance.random() < 0.7:  # heartbeats: an event that nothing reads
        last = max(row["t"] for batch in batches for row in batch)
        nothing = dict.fromkeys(COLUMNS) | {"kind": "heartbeat", "seq": 0}
        for _ in range(chance.randint(1, 4)):
            last += chance.choice([0, 1, 2, 5, 11])
            batches.append([{**nothing, "t": last, "id": chance.choice([None, 1, 2]), "x": chance.choice([None, 1.0])}])
    return Arrival(batches, [chance.random() < 0.3 for _ in batches], Promise(lateness, ordered))


def _kept_promise(arriving: Rows, ordered: tuple[str, ...]) -> Rows:
    """Let the events of each key take the places of that key in order of (time, order)."""
    places: dict[str, list[int]] = {}
    for place, row in enumerate(arriving):
        places.setdefault(repr([row[column] for column in ordered]), []).append(place)
    result = list(arriving)
    for own in places.values():
        for place, row in zip(own, sorted((arriving[place] for place in own), key=_moment), strict=True):
            result[place] = row
    return result


def _moment(row: dict[str, Any]) -> tuple[Any, Any]:
    return row["t"], row["seq"]


def streamed_releases(plan: Plan, arriving: Arrival) -> tuple[Counter[Any], int]:
    """Return the rows that the stream releases with the number of their micro-batch, and the number of late events."""
    engine, saved, found, seen = ManyEngine({"": plan}, arriving.promise.ordered), Saved(), Counter[Any](), None
    for number, (batch, saves) in enumerate(zip(arriving.batches, arriving.saves, strict=True)):
        if seen is not None:
            engine.move(seen - arriving.promise.lateness - 1)
        half = len(batch) // 2
        for part in (batch[:half], batch[half:]):
            engine.push(pa.Table.from_pylist(part, SCHEMA))
        for row in engine.advance()[""].to_pylist():
            found[number, frozen(row)] += 1
        seen = max([row["t"] for row in batch] + ([] if seen is None else [seen]), default=None)
        if saves:
            saved.write(engine)
            engine = ManyEngine({"": plan}, arriving.promise.ordered)
            engine.load(saved.head, saved.chunks.items())
    for row in engine.finish()[""].to_pylist():
        found[None, frozen(row)] += 1
    return found, engine.late


def check_releases(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    script = on_a_stream(script)
    text = print_script(script)
    note(text)
    chance = random.Random(seed)
    try:
        plan = plan_of(text, SCHEMA, dict(binding))
        ManyEngine({"": plan})
    except (ss.UnsupportedQuery, ss.QueryError) as refusal:
        event(f"refused: {type(refusal).__name__}")
        return
    if "seq" not in binding.values():
        rows = [{**row, "seq": 0} for row in rows]
    ordered = used_order([plan], chance.choice(ORDERED))
    arriving = arrival(rows, ordered, seed)
    note(repr(arriving))
    try:
        found, late = streamed_releases(plan, arriving)
    except ss.BadInputError as refusal:
        event(f"refused: {type(refusal).__name__}")
        return
    wanted, expected_late = naive_releases.releases(
        script, arriving.batches, arriving.promise, **binding, columns=COLUMNS
    )
    expected = Counter((release.batch, frozen(release.row)) for release in wanted)
    event("rows" if expected else "no row")
    event(f"ordered: {ordered is not None and bool(expected)}")
    event(f"released before the end: {any(batch is not None for batch, _ in expected)}")
    missing, unexpected = expected - found, found - expected
    assert not missing, (
        f"rows that only the oracle releases then: {missing}\nand that only the engine does: {unexpected}"
    )
    assert not unexpected, f"rows that only the engine releases then: {unexpected}"
    assert late == expected_late


SOME_QUERIES = st.one_of(
    flat_queries(),
    negating_queries(),
    queries(**DETECTION),
    group_queries(("detect",)),
    defining_queries(**DETECTION),
    queries(**DETECTION, max_variables=3, negations=40),
)


@settings(max_examples=EXAMPLES or (20_000 if LARGE else 150))
@given(SOME_QUERIES, st.one_of(streams(max_size=8), sparse_streams(max_size=12)), bindings(), SEEDS)
def test_releases(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_releases(script, rows, binding, seed)
