"""Test the algebraic plan in explain: goldens for the paper's examples, agreement with the plan on generated ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, note, settings

import streamsift as ss
from golden import check_golden
from strategies import COLUMNS, queries
from streamsift.language import Script, print_script

SCHEMA = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])

DRAWN = {
    "hospital": "PATTERN SEQ(Recycle r, Washing w, !SEQ(Sharpening s, Disinfection d, Checking c, "
    "s.id = d.id = c.id = o.id), Operating o, r.id = w.id = o.id AND o.s = 'surgery') WITHIN 60",
    "bound_by_upper_query": "PATTERN SEQ(A, SEQ(B, !C), D) WITHIN 10",
    "bound_by_adjacent_query": "PATTERN SEQ(A, SEQ(B, !C), SEQ(D, E), F) WITHIN 10",
    "bound_by_adjacent_query_after_it": "PATTERN SEQ(A, !B, SEQ(C, D), E) WITHIN 10",
    "window_edges": "PATTERN SEQ(!A a, AND(B b, C c), !D d) WITHIN 10",
    "no_window": "PATTERN AND(!A, SEQ(B, C), D)",
    "choices": "PATTERN SEQ(A a, OR(B b, SEQ(C c, D d)), !E e, OR(F f, AND(G g, H h))) "
    "WHERE [id] AND b.x < f.x AND d.x + g.x > 2 AND e.x > a.x WITHIN 10",
    "choices_inside_negation": "PATTERN SEQ(A a, !OR(B b, SEQ(OR(C c, D d), !E e, F f), c.x < f.x), G g) "
    "WHERE [id] AND d.n + f.n > a.n WITHIN 10",
    "kleene": "PATTERN SEQ(A a, B+ b, !D d, C c) WHERE [id] AND b.x > a.x AND COUNT(b) > 2 WITHIN 10",
    "kleene_alone": "PATTERN A+ a; B+ b PARTITION BY id WITHIN 10",
    "kleene_conjunction": "PATTERN A a; (B[3] b AND C+ c) WITHIN 10",
    "kleene_in_negation": "PATTERN SEQ(A a, !SEQ(B+ b, C c), !D[2] d, E* e) "
    "WHERE SUM(b.x) > 10 AND d.id = a.id WITHIN 9",
    "kleene_choices": "PATTERN SEQ(A a, OR(B+ b, C c), !E e, SEQ(D d, F* f)) WHERE [id] WITHIN 10",
    "deep": "PATTERN SEQ(A a, !AND(B b, SEQ(C c, !SEQ(D d, AND(E e, !F f), SEQ(G g, !H h)), I i)), J j) "
    "WHERE f.x > a.x AND h.n = c.n AND [id] WITHIN 10",
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawing(name: str) -> None:
    sections = explained(ss.query(DRAWN[name]))
    check_golden(f"algebra/{name}.txt", "\n".join([DRAWN[name], *sections["Algebra"]]))


@settings(max_examples=300)
@given(queries(max_depth=4, kleene=False, aggregates=False, ranking=False, definitions=False))
def test_it_says_what_the_plan_says(script: Script) -> None:
    """Check that predicates and intervals are those of the steps that run."""
    note(print_script(script))
    sections = explained(ss.query(print_script(script)))
    algebra, physical = sections["Algebra"], sections["Physical"]
    assert predicates(algebra) == predicates(physical)
    intervals = (re.search(r"! [^:]+: (.+); (.+)", line) for line in algebra)
    drawn = {pair for interval in intervals if interval for pair in choices(*interval.groups())}
    planned = {interval[1] for line in physical if (interval := re.search(r"not exists (.+): checked", line))}
    assert planned <= drawn
    assert len([line for line in algebra if "! " in line]) == sum("NOT, scope" in line for line in sections["Logical"])


@settings(max_examples=200)
@given(queries(aggregates=False, ranking=False, definitions=False))
def test_it_draws_groups(script: Script) -> None:
    """Check that every negation, and every predicate on an element of a Kleene group, is drawn."""
    note(print_script(script))
    try:
        sections = explained(ss.query(print_script(script)))
    except ss.UnsupportedQuery:
        return
    algebra, physical = sections["Algebra"], sections["Physical"]
    assert len([line for line in algebra if "! " in line]) == sum("NOT, scope" in line for line in sections["Logical"])
    drawn, planned = ([line for line in lines if "on whole Kleene" not in line] for lines in (algebra, physical))
    assert predicates(drawn) == predicates(planned)


def choices(lower: str, upper: str) -> set[str]:
    return {f"{one}, {other}" for one, other in product(lower.split(" or "), upper.split(" or "))}


def predicates(lines: Iterable[str]) -> set[str]:
    tests = (re.search(r" ((?:filter|lookup|compare) .*?)(?:  \(.*)?$", line) for line in lines)
    return {test[1] for test in tests if test}


def explained(query: ss.Query) -> dict[str, list[str]]:
    """Return the sections of explain by heading."""
    sections: dict[str, list[str]] = {}
    for line in query.explain(SCHEMA, time="t", type="kind").splitlines():
        if line[0] != " ":
            sections[line] = lines = []
        else:
            lines.append(line[2:])
    return sections
