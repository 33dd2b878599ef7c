"""Check every way to merge ranked components against the oracle, on generated streams.

General queries seldom decompose into components that have matches. These do, and their windows move.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from streamsift.language import parse
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows, assert_same

WAYS = ("nra", "nra", "ta", "auto", "join", "enumerate")
SCHEDULES = ("wabs", "round-robin", "gradient", "statistics")
ODD = [None, float("nan"), float("inf"), float("-inf"), -0.0, -1.0]
MANY_MOVES = ["WITHIN 12 UPDATE 1", "WITHIN 12 EVENTS UPDATE 1 EVENTS"]  # joins are kept between windows
WINDOWS = ["WITHIN 8 UPDATE 2", "WITHIN 6 EVENTS UPDATE 2 EVENTS", "WITHIN 6", ""]
VALUES = st.sampled_from([1.0, 2.0, 3.0, 0.25, 0.1, 0.2, 0.3, 7.0, 1.0, 2.0, 0.3, 5.0, 2.0, 1.5, 0.5, 4.0, *ODD])


@st.composite
def dense_streams(draw: st.DrawFn) -> Rows:
    """Draw few classes and ids and many equal times, so that components have several matches in most windows."""
    rows: Rows = []
    for position in range(draw(st.integers(6, 14))):
        time = (rows[-1]["t"] if rows else 0) + draw(st.sampled_from([0, 1, 1, 1, 2]))
        rows.append(
            {
                "t": time,
                "kind": draw(st.sampled_from("AABBCCD")),
                "id": draw(st.sampled_from([1, 1, 1, 1, 2, 2, None])),
                "x": draw(VALUES),
                "n": draw(st.sampled_from([0, 1, 2, 3])),
                "s": "a",
                "seq": position,
            }
        )
    return rows


def objective(draw: st.DrawFn, variables: list[str]) -> str:
    terms = [f"{variable}.{draw(st.sampled_from(['x', 'x', 'n']))}" for variable in variables]
    kind = draw(st.sampled_from(["sum", "sum", "weighted", "root", "least", "product"]))
    written = {
        "sum": " + ".join(terms),
        "weighted": " - ".join(f"{draw(st.sampled_from(['1', '2', '0.5']))} * {term}" for term in terms),
        "root": f"SQRT({' + '.join(f'{term}^2' for term in terms)})",
        "least": f"LEAST({terms[0]}, {terms[-1]})",
        "product": " * ".join(f"ABS({term})" for term in terms),
    }[kind]
    return f"{draw(st.sampled_from(['MAX', 'MIN']))}[{written}]"


@st.composite
def merges(draw: st.DrawFn) -> str:
    classes = list("ABCD")
    parts: list[list[str]] = []
    count = draw(st.sampled_from([2, 2, 3]))
    while classes and len(parts) < count:
        size = draw(st.sampled_from([1, 1, 2]))
        parts.append([f"S{len(parts)}.{name.lower()}" for name in classes[:size]])
        classes = classes[size:]
    lines = [
        f"SEQ S{number} = {'; '.join(f'{v[-1].upper()} {v[-1]}' for v in part)}"
        + draw(st.sampled_from(["", "", " WHERE [id]" if len(part) > 1 else "", " WITHIN 4"]))
        for number, part in enumerate(parts)
    ]
    names = [f"S{number}" for number in range(len(parts))]
    pattern = f" {draw(st.sampled_from(['&', ';']))} ".join(names[:2])
    if len(names) > 2:
        pattern = f"({pattern}) {draw(st.sampled_from(['&', ';']))} {names[2]}"
    every = [variable for part in parts for variable in part]
    named = [*parts, *([draw(st.permutations(every))[:2]] if draw(st.booleans()) else [])]
    objectives = [objective(draw, sorted(part)) for part in named]
    compared = draw(st.sampled_from(["=", "=", "<=", "!="]))
    linked = [f"{one[0]}.id {compared} {two[-1]}.id" for one, two in pairwise(parts)]
    where = f" WHERE {' AND '.join(linked)}" if draw(st.booleans()) and linked else ""
    merge = draw(st.sampled_from(["", " MERGE MIN", " MERGE MAX", " MERGE SUM", " MERGE AVG"]))
    window = draw(
        st.sampled_from(
            ["WITHIN 8 UPDATE 2", *MANY_MOVES, *MANY_MOVES, "WITHIN 6 EVENTS UPDATE 2 EVENTS", "WITHIN 6", ""]
        )
    )
    statement = f"PATTERN {pattern}{where} PREF {' AND '.join(objectives)}{merge} {window}"
    return "\n".join([*lines, f"{statement} RETURN {draw(st.sampled_from([1, 2, 3, 50]))}"])


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 50))
@given(
    merges(),
    dense_streams(),
    st.sampled_from([{}, {"order": "seq"}]),
    st.sampled_from(WAYS),
    st.sampled_from(SCHEDULES),
)
def test_merges(text: str, rows: Rows, order: dict[str, str], way: Any, schedule: Any) -> None:
    note(text)
    binding = {"time": "t", "type": "kind", **order}
    query, table = ss.query(text), pa.Table.from_pylist(rows, SCHEMA)
    actual = query.run_local(table, **binding, rank=way, schedule=schedule).to_pylist()
    explained = query.explain(table, **binding, rank=way, schedule=schedule).split("\nWhy\n")[1]
    event(f"{explained.split(':')[0].strip()}, {'ranked' if actual else 'no match'}")
    assert_same(parse(text), rows, binding, actual)
