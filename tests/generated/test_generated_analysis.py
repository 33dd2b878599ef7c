"""Check that `explain(analyze=True)` runs every generated query that `run_local` runs, and reports as many rows."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import aggregations, bindings, queries, streams
from streamsift.language import Script, print_script
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

RESULT = re.compile(r"^  result  ([\d,]+) rows? in .* events/s$", re.MULTILINE)
BUILT_GROUPS = re.compile(r"^  groups  .*built ([\d,]+)(?: rows)?$", re.MULTILINE)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def check_analysis(script: Script, rows: Rows, binding: dict[str, str], **options: str) -> None:
    note(print_script(script))
    query, table = ss.query(print_script(script)), pa.Table.from_pylist(rows, SCHEMA)
    try:
        expected = query.run_local(table, **binding, **options).num_rows  # type: ignore[arg-type]
    except (ss.UnsupportedQuery, ss.BadInputError) as refusal:
        with pytest.raises(type(refusal), match=re.escape(str(refusal))):
            query.explain(table, **binding, **options, analyze=True)  # type: ignore[arg-type]
        return
    text = str(query.explain(table, **binding, **options, analyze=True))  # type: ignore[arg-type]
    event("rows" if expected else "no rows")
    assert [number(found) for found in RESULT.findall(text)] == [expected]
    statements = [script.statement, *(definition.statement for definition in script.definitions)]
    if not any(each.aggregates or each.preference for each in statements):
        # The other rows come from alternatives without groups.
        assert sum(map(number, BUILT_GROUPS.findall(text))) <= expected


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 40))
@given(
    queries(max_depth=4, kleene=False),
    streams(),
    bindings(),
    st.sampled_from(["auto", "left", "right", "bushy", "inner"]),
)
def test_patterns_of_single_events(script: Script, rows: Rows, binding: dict[str, str], plan: str) -> None:
    check_analysis(script, rows, binding, plan=plan)


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 40))
@given(queries(), streams(max_size=8), bindings())
def test_patterns_of_all_kinds(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_analysis(script, rows, binding)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40))
@given(aggregations(kleene=False), streams(), bindings())
def test_aggregations(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_analysis(script, rows, binding)


def test_a_definition_with_its_own_window() -> None:
    table = pa.table({"t": [1, 2, 3, 4], "x": [1, 2, 3, 4]})
    text = "SEQ R = ANY a; ANY b WITHIN 2 EVENTS PATTERN R; ANY c WITHIN 10"
    found = str(ss.query(text).explain(table, time="t", analyze=True))
    assert RESULT.findall(found) == ["3"]
