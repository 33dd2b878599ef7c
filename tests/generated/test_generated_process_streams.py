"""Check that a stream in process, cut, reordered, saved and resumed at random, returns the oracle's rows.

Which events are late is decided here, from the language's definition: before the greatest time of earlier pushes less
the lateness, or before a time that `advance` was given.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import naive
import streamsift as ss
from strategies import COLUMNS, bindings, flat_queries, negating_queries, on_a_stream, queries, streams
from streamsift.language import Script, print_script
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows, assert_equal

SEEDS = st.integers(0, 2**32)
RANKING = {"kleene": False, "aggregates": False, "detection": False}


class Watermark:
    """The rule of the language for late events."""

    def __init__(self, lateness: int) -> None:
        self.lateness, self.time = lateness, -(10**9)

    def in_time(self, rows: Rows) -> Rows:
        return [row for row in rows if row["t"] >= self.time]

    def push(self, rows: Rows) -> None:
        self.advance(max((row["t"] - self.lateness for row in rows), default=self.time))

    def advance(self, time: int) -> None:
        self.time = max(self.time, time)


def shaped(rows: Rows, chance: random.Random) -> Any:
    table = pa.Table.from_pylist(rows, SCHEMA)
    return chance.choice([rows, table, table.combine_chunks().to_batches()[0] if rows else table])


def pushed(stream: ss.Stream[Any], rows: Rows, lateness: int, seed: int) -> tuple[Rows, dict[str, Rows], int]:
    """Return the events that are not late, the rows that the stream returned, and how many events were late."""
    chance = random.Random(seed)
    delay = chance.choice([0, 0, 1, 4])
    arriving = sorted(rows, key=lambda row: (row["t"] + chance.uniform(0, delay), row["t"]) if delay else row["t"])
    watermark, kept, found = Watermark(lateness), list[dict[str, Any]](), dict[str, Rows]()

    def take(results: Any) -> None:
        for name, table in (results if isinstance(results, dict) else {"": results}).items():
            found.setdefault(name, []).extend(table.to_pylist())

    with tempfile.TemporaryDirectory() as folder:
        path, number = Path(folder) / "state", 0
        while arriving or number == 0:
            count = chance.randint(0, 3)
            batch, arriving = arriving[:count], arriving[count:]
            kept += watermark.in_time(batch)
            take(stream.push(shaped(batch, chance)))
            watermark.push(batch)
            if chance.random() < 0.2:
                time = chance.randint(-1, 11)
                take(stream.advance(time))
                watermark.advance(time)
            number += 1
            if chance.random() < 0.4:
                stream.save(path, {"number": number})
            if path.exists() and chance.random() < 0.5:
                stream.save(path, {"number": number})
                stream = ss.resume(path)
                assert stream.offsets == {"number": number}
        late = stream.metrics.late
        take(stream.finish())
    return kept, found, late


def check_process_stream(texts: dict[str, str], rows: Rows, binding: dict[str, Any], seed: int, lateness: int) -> None:
    for text in texts.values():
        note(text)
    try:
        if "" in texts:
            stream: Any = ss.query(texts[""]).open(SCHEMA, lateness=lateness, **binding)
        else:
            stream = ss.open_many(texts, SCHEMA, lateness=lateness, **binding)
        kept, found, late = pushed(stream, rows, lateness, seed)
    except (ss.UnsupportedQuery, ss.QueryError, ss.BadInputError) as refusal:
        event(f"refused: {type(refusal).__name__}")
        return
    assert late == len(rows) - len(kept)
    # Ties are broken by input order, which is the order of arrival.
    for name, text in texts.items():
        event("rows" if found[name] else "no row")
        assert_equal(naive.run(text, kept, **binding, columns=COLUMNS), found[name])


LATENESS = st.sampled_from([0, 0, 1, 3])


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 50))
@given(flat_queries(), streams(), bindings(), SEEDS, LATENESS)
def test_flat_queries(script: Script, rows: Rows, binding: dict[str, str], seed: int, lateness: int) -> None:
    check_process_stream({"": print_script(script)}, rows, binding, seed, lateness)


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 40))
@given(queries(), streams(max_size=7), bindings(), SEEDS, LATENESS)
def test_any_queries(script: Script, rows: Rows, binding: dict[str, str], seed: int, lateness: int) -> None:
    check_process_stream({"": print_script(on_a_stream(script))}, rows, binding, seed, lateness)


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 40))
@given(negating_queries(), streams(max_size=10), bindings(), SEEDS, LATENESS)
def test_negations(script: Script, rows: Rows, binding: dict[str, str], seed: int, lateness: int) -> None:
    check_process_stream({"": print_script(script)}, rows, binding, seed, lateness)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 30))
@given(st.lists(queries(max_depth=2), min_size=2, max_size=3), streams(max_size=7), bindings(), SEEDS, LATENESS)
def test_several_queries(scripts: list[Script], rows: Rows, binding: dict[str, str], seed: int, lateness: int) -> None:
    texts = {}
    for number, script in enumerate(scripts):
        text = print_script(on_a_stream(script))
        try:
            ss.query(text).open(SCHEMA, **binding)
        except (ss.UnsupportedQuery, ss.QueryError):
            continue
        texts[f"q{number}"] = text
    if texts:
        check_process_stream(texts, rows, binding, seed, lateness)
