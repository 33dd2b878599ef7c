"""Test plans and their explanations, with and without data, and the messages for unsupported queries."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pytest

import streamsift as ss
from golden import check_golden

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("kind", pa.string()),
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("name", pa.string()),
    ]
)

EXPLAINED = {
    "keyed": "PATTERN SEQ(A a, B b, C c)\nWHERE [id] AND a.price < c.price AND b.name LIKE 'x%'\nWITHIN 10 min",
    "general_predicates": "A a; B b; C c WHERE a.price + b.price > c.price\n"
    "AND ABS(a.price - b.price) <= 2 AND NOT (a.name = c.name OR b.id IN (1, 2))",
    "no_type_column": "PATTERN T1;T2;T3 WHERE T1.name = T3.name AND T2.name = 'Google'\n"
    "AND T1.price >= T2.price + 2.0 AND T3.price < T2.price WITHIN 500 RETURN T1, T2, T3",
    "count_window": "PATTERN SEQ(Up a, Up b) WITH Up = (price > 10) PARTITION BY name\n"
    "WITHIN 5 EVENTS RETURN a.price AS first, b.price - a.price AS rise",
    "flattened": "PATTERN SEQ(A a, (B b; C c)) WHERE [id] AND a.id = c.id",
    "negation": "PATTERN SEQ(A a, !SEQ(B b, C c), D d, !E e) WHERE [id] AND b.price > a.price WITHIN 1 hour",
    "nested_negation": "PATTERN SEQ(A a, !SEQ(B b, !C c, D d), E e) WHERE b.price + d.price > a.price WITHIN 30",
    "conjunction": "PATTERN SEQ(A a, AND(B b, SEQ(C c, !D d)), E e) WITHIN 30",
    "outermost_conjunction": "PATTERN AND(A a, !B b, C c) WHERE a.id = c.id",
    "disjunction": "PATTERN SEQ(A a, OR(B b, SEQ(C c, D d)), !OR(E e, F f)) WHERE [id] AND b.price > a.price WITHIN 30",
    "aggregate_count_alone": "SEQ(A a, B b) WHERE [id] GROUP BY id AGG COUNT WITHIN 10 min",
    "aggregate_two_stack": "PATTERN SEQ(A a, !B b, C c) WHERE [id] AND a.price > 1\n"
    "GROUP BY id AGG COUNT, AVG(c.price) WITHIN 10 min",
    "aggregate_prefix": "PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT",
    "aggregate_few_rows": "PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 8 EVENTS",
    "aggregate_edge": "PATTERN SEQ(A a, B b, !C c) AGG MAX(b.price) WITHIN 30 UPDATE 10",
    "aggregate_pairs": "PATTERN SEQ(A a, B b, C c) WHERE a.price < b.price AND b.name = c.name AGG COUNT WITHIN 30",
    "aggregate_detect": "PATTERN SEQ(A a, B b, C c) WHERE a.price < c.price AGG COUNT WITHIN 30 EMIT CHANGES",
    "aggregate_alternatives": "PATTERN SEQ(A a, B b) | AND(C c, D d) AGG COUNT, SUM(a.price) WITHIN 30",
    "definitions": "SEQ S1 = A;B;!X WITHIN 5\nSEQ S2 = C & D WITHIN 3 EVENTS\nPATTERN S1 & S2 WITHIN 1 hour",
    "ranking_paths": "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.price < b.price GROUP BY id\n"
    "PREF MAX[gain = c.price - a.price] AND MIN[c.ts - a.ts] MERGE SUM WITHIN 1 hour UPDATE 5 min RETURN 5",
    "ranking_join": "PATTERN SEQ(A a, B b, C c) WHERE a.id = b.id PREF MAX[SQRT(a.price^2 + b.price^2 + c.price^2)]\n"
    "WITHIN 1 hour UPDATE 5 min RETURN 3",
    "ranking_collapsed": "SEQ S1 = A;B PREF MAX[e = A.price + B.price]\nSEQ S2 = C;D PREF MAX[e = C.price + D.price]\n"
    "PATTERN S1 & S2 WHERE S1.A.id = S2.C.id PREF MAX[S1.e] AND MAX[S2.e] MERGE AVG WITHIN 1 h UPDATE 5 min RETURN 9",
    "ranking_groups": "PATTERN SEQ(A a, B+ b) PREF MAX[SUM(b.price) - a.price] WITHIN 1 hour UPDATE 5 min RETURN 5",
    "ranking_merge": "SEQ S1 = A;B PREF MAX[low = LEAST(A.price, B.price)]\nSEQ S2 = C;D WITHIN 5 min\n"
    "PATTERN S1 & S2 WHERE S1.A.id = S2.C.id PREF MAX[S1.low] AND MIN[S2.D.ts - S2.C.ts] WITHIN 1 hour RETURN 3",
    "ranking_enumerated": "PATTERN SEQ(A a, !X x, B b) | C c PREF MAX[a.price * b.price] WITHIN 1 hour RETURN 5",
    "kleene": "PATTERN SEQ(A a, B+ b, C c) WHERE [id] AND b.price > a.price AND COUNT(b) > 2 WITHIN 10 min",
    "kleene_and_negation": "PATTERN SEQ(A a, B* b, !D d, C c) WITHIN 10 min",
    "kleene_alone": "PATTERN A+ a; B+ b PARTITION BY id WITHIN 10 min",
    "kleene_conjunction": "PATTERN A a; B[3] b AND C+ c WITHIN 10 min EMIT EACH",
    "crossed_negation": "PATTERN SEQ(A a, AND(B b, !SEQ(B x, C c), !SEQ(E e, !F f)), D d) WITHIN 30",
    "count_window_negation": "PATTERN SEQ(A a, !B b) PARTITION BY name WITHIN 5 EVENTS",
    "kleene_in_negation": "PATTERN SEQ(A a, !SEQ(B+ b, C c), !D[2] d, E e)\nWHERE SUM(b.price) > 10 AND d.id = a.id",
    "kleene_and_kleene": "PATTERN SEQ(A a, ANY+ b) & SEQ(C c, ANY+ d) & !E e WITHIN 10 min",
    "two_keys": "PATTERN SEQ(A a, B b) WHERE [id] AND [name] AND a.id > b.price",
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_explain(name: str) -> None:
    type_column = None if name == "no_type_column" else "kind"
    check_golden(f"explain/{name}.txt", ss.query(EXPLAINED[name]).explain(SCHEMA, time="ts", type=type_column))


@pytest.mark.parametrize("cache", ["on", "off"])
def test_explain_says_what_is_cached(cache: Literal["on", "off"]) -> None:
    explained = ss.query(EXPLAINED["negation"]).explain(SCHEMA, time="ts", type="kind", cache=cache)
    check_golden(f"explain/cache_{cache}.txt", explained)


# --- without data ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_plan_without_data_is_that_of_typical_data(name: str) -> None:
    """Check that the assumed types lead to the same choices of the planner."""
    query = ss.query(EXPLAINED[name])
    plans = [query.explain(), query.explain(SCHEMA, time="ts", type="kind")]
    alone, typical = (plan[plan.index("Why\n") :] for plan in plans)
    assert alone == typical


ASSUMED = {
    "A a; B b WHERE a.x < b.x": ["time: time (timestamp)", "type: type (string)", "columns: x (double)"],
    "ANY a; ANY b WHERE a.name = b.name AND b.name LIKE 'x%'": ["time: time (timestamp)", "columns: name (string)"],
    "A a WITH A = (kind IN ('x', 'y') AND NOT done)": [
        "time: time (timestamp)",
        "columns: kind (string), done (boolean)",
    ],
    "ANY a; ANY b WHERE b.end - a.start < 5 min": [
        "time: time (timestamp)",
        "columns: end (timestamp), start (timestamp)",
    ],
    "ANY a; ANY b WHERE a.time < b.t - 5": ["time: time (double)"],
}


@pytest.mark.parametrize("text", ASSUMED)
def test_types_that_are_assumed_without_data(text: str) -> None:
    explained = ss.query(text).explain()
    lines = explained[explained.index("Assumed\n") : explained.index("Logical\n")].splitlines()
    assert [line.strip() for line in lines[2:]] == ASSUMED[text]


def test_names_that_are_given_without_data() -> None:
    explained = ss.query("A a; B b WHERE a.at < b.at").explain(time="at", type="kind", order="n")
    assert "  time: at (timestamp)\n  type: kind (string)\n  order: n (double)\nLogical" in explained


def test_no_types_fit() -> None:
    with pytest.raises(ss.QueryError, match="fit this query: `=` cannot compare a double with a string"):
        ss.query("A a; B b WHERE a.x > 3 AND a.x = 'abc'").explain()


@pytest.mark.parametrize(("data", "options"), [(SCHEMA, {}), (None, {"analyze": True})])
def test_explain_needs_the_time_of_data_and_data_to_analyze(data: Any, options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="requires"):
        ss.query("A a; B b").explain(data, **options)


# --- what is refused ---------------------------------------------------------------------------------------------

REFUSED = {
    "groups_between": "PATTERN A+ a; B+ b WHERE a.price < b.price",
    "group_and_negation": "PATTERN SEQ(A+ a, !B b, C c) WHERE a.price < b.price",
    "aggregate_and_negation": "PATTERN SEQ(A+ a, !B b, C c) WHERE AVG(a.price) < b.price",
    "alternatives": "PATTERN " + "; ".join(f"(A a{i} | B b{i} | C c{i})" for i in range(8)),
    "long_negation": f"PATTERN SEQ(A a, !SEQ({', '.join(f'ANY n{i}' for i in range(63))}), B b)",
}


@pytest.mark.parametrize("strategy", ["prefix", "two-stack", "pairs", "guess"])
def test_a_strategy_that_cannot_count_a_query(strategy: str) -> None:
    query = ss.query("PATTERN SEQ(A a, B b, !C c) AGG COUNT WITHIN 30")
    with pytest.raises((ss.UnsupportedQuery, ss.QueryError), match="strategy"):
        query.explain(SCHEMA, time="ts", type="kind", strategy=strategy)


def test_a_strategy_is_for_aggregations() -> None:
    with pytest.raises(ss.QueryError, match="AGG"):
        ss.query("PATTERN SEQ(A a, B b)").explain(SCHEMA, time="ts", type="kind", strategy="sem")


def test_refusals() -> None:
    messages = []
    for name, text in REFUSED.items():
        with pytest.raises(ss.UnsupportedQuery) as raised:
            ss.query(text).run_local(SCHEMA.empty_table(), time="ts", type="kind")
        messages.append(f"# {name}\n{raised.value}")
    check_golden("explain/refusals.txt", "\n\n".join(messages))
