"""Test the error messages of parser and binder against goldens, one file per topic."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from golden import check_golden
from logical.events import SCHEMA
from streamsift.errors import QueryError
from streamsift.language import parse
from streamsift.logical.binder import bind, sketch


@dataclass(frozen=True)
class Case:
    text: str
    binding: dict[str, str] = field(default_factory=dict)
    schema: pa.Schema = SCHEMA


def at(text: str, **binding: str) -> Case:
    return Case(text, binding)


TOPICS: dict[str, list[Case]] = {
    "unfinished": [
        at(""),
        at(" \n "),
        at("PATTERN"),
        at("-- only a comment"),
        at("A; B;"),
        at("A; B WHERE"),
        at("A; B WHERE A.x ="),
        at("A; B WHERE NOT"),
        at("A; B WHERE A.x BETWEEN 1"),
        at("A; B WITHIN"),
        at("A; B AGG"),
        at("A; B EMIT"),
        at("A; B RETURN"),
        at("A; B RETURN A,"),
        at("A; B RETURN A, -- and B\nWITHIN 5"),
        at("A; B RETURN A,, B"),
        at("A; B AGG COUNT,"),
        at("A; B PARTITION BY id, WITHIN 5"),
        at("A; B WITH A = (x > 1),"),
        at("RETURN A,"),
        at("PATTERN WHERE A.x > 3"),
        at("A; B; WITHIN 5"),
        at("A; B RETURN A AS"),
        at("A; B PARTITION BY"),
        at("A; B WITH A"),
        at("SEQ S1 = A; B"),
    ],
    "brackets": [
        at("SEQ(A, B"),
        at("SEQ(A, B))"),
        at("SEQ(A; B] WITHIN 3"),
        at("SEQ()"),
        at("SEQ(A,, B)"),
        at("SEQ(A, B WHERE A.x = 1"),
        at("(A; B WITHIN 5"),
        at("A; B WHERE (A.x = 1"),
        at("A; B WHERE A.x IN ()"),
        at("A{2}; B"),
        at("A[1..2]"),
        at("SEQ(A, B b{1,}, C)"),
        at("A[1:2]; B"),
        at("(A B)+"),
        at("SEQ(A, (B; C)+, D)"),
        at("SEQ(A, B)[2]"),
        at("A; B WHERE [A.id]"),
        at("A; B WHERE [id, n]"),
    ],
    "characters": [
        at("A; B WHERE A.s = 'abc"),
        at('A; B WHERE A.s = "abc'),
        at("A; B WHERE A.`x = 3"),
        at("A?; B"),
        at("A; B WHERE A.x = ?"),
        at("A; B # comment"),
        at("A; B // comment"),
        at("A; B WHERE A.x = $1"),
        at("1A; B"),
        at("'A'; B"),
    ],
    "operators": [
        at("A; B WHERE A.x == B.x"),
        at("A; B WHERE A.x => B.x"),
        at("A; B WHERE A.x =< B.x"),
        at("A; B WHERE A.x ! = 3"),
        at("A; B WHERE A.x = B.x && A.n = 1"),
        at("A; B WHERE !A.flag"),
        at("A -> B"),
        at("A | | B"),
        at("; A"),
        at("A; B WHERE A.x = 1 2"),
        at("A; B WHERE A..x = 1"),
        at("A; B WHERE A.x IN 3"),
        at("A; B WHERE A.x IS 3"),
        at("A; B WHERE A.s LIKE A.s"),
        at("A; B WHERE A.ts = TIMESTAMP 5"),
        at("A B C"),
        at("SEQ(A B C)"),
    ],
    "keywords": [
        at("A; B WHEER A.x = 1"),
        at("A; B WITHN 5"),
        at("A; B retrun A"),
        at("A; B LIMIT 5"),
        at("A; B ORDER BY x"),
        at("SELECT * FROM events"),
        at("WHERE; B"),
        at("A; WITHIN; C"),
        at("SEQ(A, AND, B)"),
        at("SEQ S1 A; B PATTERN S1; C"),
        at("A; B GROUP id AGG COUNT"),
        at("A; B WITH A = x > 3"),
        at("A; B PREF A.x RETURN 3"),
        at("A; B PREF MAX(A.x) RETURN 3"),
        at("A; B PREF MAX[A.x], MIN[B.x] RETURN 3"),
        at("A; B RETURN TOP A"),
        at("A; B WITHIN 10 WITHIN 5"),
        at("A; B WHERE A.x = 1 WHERE B.x = 1"),
        at("A; B RETURN A RETURN B"),
    ],
    "numbers_and_functions": [
        at("A[0]; B"),
        at("A[1.5]; B"),
        at("A[n]; B"),
        at("A; B RETURN 0"),
        at("A; B RETURN -3"),
        at("A; B RETURN TOP 1.5 A"),
        at("A; B WITHIN ten"),
        at("A; B WITHIN -5"),
        at("A; B WITHIN 10 parsecs"),
        at("A; B WITHIN 10 fortnights"),
        at("A; B WHERE A.x > 5 events"),
        at("A; B WHERE SIN(A.x) > 1"),
        at("A; B WHERE SQT(A.x) > 1"),
        at("A; B WHERE SQRT(A.x, 2) > 1"),
        at("A; B WHERE POW(A.x) > 1"),
        at("A; B WHERE MAX(A.x, B.x) > 1"),
        at("A; B WHERE COUNT(*) > 1"),
        at("A; B AGG MEDIAN(A.x)"),
        at("A; B AGG FOO"),
        at("A; B AGG SUM"),
        at("A; B AGG SUM(*)"),
        at("A; B AGG COUNT(A.x)"),
        at("A; B AGG SUM(A.x + 1)"),
        at("SEQ(A a, B b) AGG AVG(b.ts - a.ts)"),
        at("A; B EMIT SOMETIMES"),
        at("A; B PREF MAX[A.x] MERGE MEDIAN RETURN 3"),
        at("A; B WHERE A.x = 1e400"),
        at(f"A; B WHERE A.n = {'9' * 43}"),
        at("A; B WHERE B.ts - A.ts > 0.0005 ms"),
        at("A; B WHERE A.ts = TIMESTAMP '2024-13-01'"),
        at("SEQ(a.x = 3)"),
    ],
    "negation": [
        at("!A"),
        at("!!A; B"),
        at("SEQ(!A, !B)"),
        at("AND(!A, !B)"),
        at("SEQ(A, SEQ(!B), C)"),
        at("A | !B"),
        at("SEQ(A, !B*, C)"),
        at("SEQ(A, !OR(B, C*), D)"),
        at("SEQ S1 = B* PATTERN A; !S1; C"),
        at("A; !B"),
        at("SEQ(A, SEQ(B, !C))"),
        at("A; !B; C RETURN B"),
        at("A; !B; C RETURN B.x + 1"),
        at("A; !B; C AGG SUM(B.x)"),
        at("A; !B; C PREF MAX[B.x] RETURN 3"),
        at("A; !B; C; !D; E WHERE B.x = D.x"),
    ],
    "names": [
        at("A; A"),
        at("A a; B a"),
        at("A a | B a"),
        at("A; B RETURN Z"),
        at("A; B WHERE a.x = 3"),
        at("A first; B second WHERE frist.x = 3"),
        at("A; B WHERE x = 3"),
        at("A; B WHERE A = B"),
        at("A; B WHERE A.pricee = 3"),
        at("A; B WHERE A.nothing_like_it = 3"),
        at("A; B WHERE A.x.y = 3"),
        at("A; B WHERE [idd]"),
        at("A; B PARTITION BY foo"),
        at("A; B PARTITION BY A.id"),
        at("A; B PARTITION BY id, ID"),
        at("A; B PARTITION BY tags"),
        at("A; B WITH A = (A.x > 3)"),
        at("A; B WITH A = (xx > 3)"),
        at("A; B WITH A = (x > 3), A = (n > 3)"),
        at("A; B WITH A = (SUM(x) > 3)"),
        at("A; B WITH Unused = (s > 3)"),
        Case(
            "A; B WHERE [id]",
            {},
            pa.schema([("t", pa.int64()), ("kind", pa.string()), ("Id", pa.int8()), ("ID", pa.int8())]),
        ),
    ],
    "definitions": [
        at("S7 = SEQ(A a, B b) PATTERN S7"),
        at("SEQ S1 = A; B PATTERN S1 < 3"),
        at("SEQ S1 = A; B PATTERN C; D"),
        at("SEQ S1 = A; B PATTERN S1; S1"),
        at("SEQ S1 = A SEQ S1 = B PATTERN S1"),
        at("SEQ S1 = S2; B SEQ S2 = S1; C PATTERN S1"),
        at("SEQ S1 = A; B PATTERN S1+; C"),
        at("SEQ S1 = A; B PATTERN S1 s; C"),
        at("SEQ S1 = A; B PATTERN S1; C S1"),
        at("SEQ S1 = A; B WITH S1 = (x > 3) PATTERN S1; C"),
        at("SEQ S1 = A; B RETURN 3 PATTERN S1; C"),
        at("SEQ S1 = A; B PATTERN S1; C WHERE A.x = C.x"),
        at("SEQ S1 = A; B PATTERN S1; C WHERE S1.Z.x = C.x"),
        at("SEQ S1 = A; B PATTERN S1; C WHERE S1.A = C.x"),
        at("SEQ S1 = A; B PATTERN S1; C WHERE S1.exp = C.x"),
        at("SEQ S1 = A; B PATTERN S1; C RETURN S1"),
        at("SEQ S1 = A; B PREF MAX[e = A.x] AND MIN[e = B.x] PATTERN S1; C RETURN 3"),
        at("SEQ S1 = A; B PREF MAX[A = A.x] PATTERN S1; C RETURN 3"),
        at("SEQ S1 = A PREF MAX[e = S2.f] SEQ S2 = B PREF MAX[f = S1.e] PATTERN S1; S2 PREF MAX[S1.e] RETURN 3"),
        at("SEQ S1 = A; B PREF MAX[e = A.x] PATTERN S1; C WHERE SUM(S1.e) > 3 RETURN 3"),
    ],
    "types": [
        at("A; B WHERE A.s = 3"),
        at("A; B WHERE A.x > 'abc'"),
        at("A; B WHERE A.x > '3'"),
        at("A; B WHERE A.s > B.n"),
        at("A; B WHERE A.n IN (1, 'x')"),
        at("A; B WHERE A.n BETWEEN 1 AND 'x'"),
        at("A; B WHERE A.s + 1 > 3"),
        at("A; B WHERE A.s + B.s = 'x'"),
        at("A; B WHERE A.flag > 3"),
        at("A; B WHERE A.x"),
        at("A; B WHERE NOT A.n"),
        at("A; B WHERE -A.s = 3"),
        at("A; B WHERE ABS(A.s) = 3"),
        at("A; B WHERE LOWER(A.n) = 'x'"),
        at("A; B WHERE A.n LIKE 'x'"),
        at("A; B WHERE A.tags = B.tags"),
        at("A; B WHERE [tags]"),
        at("A; B WHERE A.ts = '2024-01-01'"),
        at("A; B WHERE B.ts - A.ts > 5"),
        at("A; B WHERE B.ts + A.ts > 5 min"),
        at("A; B WHERE B.ts + 2 > A.ts"),
        at("A; B WHERE A.flag + 1 > 2"),
        at("A; B WHERE COALESCE(A.x, 'a') = 'b'"),
        at("A; B WHERE LEAST(A.tags, B.tags) IS NULL"),
        at("A; B WHERE COALESCE(A.tags, B.s) IS NULL"),
        Case("A; B WHERE COALESCE(A.tags, B.raw) IS NULL", schema=SCHEMA.append(pa.field("raw", pa.binary()))),
        at("A; B WHERE A.s + 'x' = 'yx'"),
        at("A; B WHERE A.ts > TIMESTAMP '9999-12-31 23:59:59-05:00'"),
        at("A; B WHERE A.x = [id]"),
        at("A; B AGG SUM(A.s)"),
        at("A; B AGG MAX(A.tags)"),
        at("A; B PREF MAX[A.s] RETURN 3"),
    ],
    "kleene": [
        at("A; B+; C RETURN B.x"),
        at("A; B+; C PREF MAX[B.x] RETURN 3"),
        at("A; B; C WHERE SUM(B.x) > 3"),
        at("A; B+; C WHERE SUM(B.x + 1) > 3"),
        at("SEQ(A a, B+ b) WHERE AVG(b.ts - a.ts) > 5 s"),
        at("SEQ(A a, B b) RETURN AVG(b.ts - a.ts)"),
        at("A; B+; C WHERE SUM(B) > 3"),
        at("A; B+; C WHERE COUNT(Z) > 3"),
        at("A; B+; C WHERE AVG(B.s) > 3"),
    ],
    "clauses": [
        at("A; B AGG COUNT PREF MAX[A.x] RETURN 3"),
        at("A; B PREF MAX[A.x]"),
        at("A; B PREF MAX[A.x] RETURN A"),
        at("A; B RETURN 3"),
        at("A; B RETURN TOP 3 A"),
        at("A; B GROUP BY id"),
        at("A; B AGG COUNT RETURN A"),
        at("A; B EMIT EACH AGG COUNT"),
        at("A; B EMIT EACH PREF MAX[A.x] RETURN 3"),
        at("A; B EMIT CHANGES"),
        at("A; B EMIT CHANGES AGG COUNT WITHIN 5 UPDATE 3"),
        at("A; B UPDATE 3"),
        at("A; B UPDATE 3 AGG COUNT"),
        at("A; B UPDATE 3 EVENTS WITHIN 5 AGG COUNT"),
        at("A; B UPDATE 0 WITHIN 5 AGG COUNT"),
        at("A; B WITHIN 0 EVENTS"),
        at("A; B WITHIN 1.5 EVENTS"),
        at("A; B WITHIN 0 EXCLUSIVE"),
        at("A; B WITHIN 5 s"),
        at("A; B AGG COUNT WITHIN 5 UPDATE 2 min"),
    ],
    "output_names": [
        at("A; B RETURN A, A"),
        at("A; B RETURN A.x, B.x AS A_x"),
        at("A match_start; B"),
        at("A; B AGG COUNT, COUNT"),
        at("A; B AGG COUNT AS time"),
        at("A; B AGG COUNT AS id GROUP BY id"),
        at("A; B PREF MAX[e = A.x] AND MIN[e = B.x] RETURN 3"),
        at("A; B PREF MAX[rank = A.x] RETURN 3"),
        at("A rank; B PREF MAX[B.x] RETURN 3"),
    ],
    "bindings": [
        at("A; B", time="ttime"),
        at("A; B", time="kin"),
        at("A; B", time="flag"),
        at("A; B", time="tags"),
        at("A; B", type="n"),
        at("A; B", type="knd"),
        at("A; B", order="tags"),
        at("A; B", order="sequence"),
    ],
    "places": [
        at("PATTERN SEQ(A a,\n            B b)\nWHERE a.x = b.x\n  AND a.x == 3"),
        at("PATTERN SEQ(A a, B b) -- a comment, 'quoted\nWHERE a.x = b.pricee\nWITHIN 5"),
        at("A\n; !B\n; C\nRETURN\n  B"),
        at("A a;\n!B b;\nC c;\n!D d;\nE e\nWHERE b.x = d.x"),
        at("A; B\n\tWHERE\tA.x = 1\tAND\tB.y = 2"),
        at("支付 付; Überweisung ü WHERE 付.s = 'déjà vu 支付' AND ü.größe > 3"),
        at("A; B WHERE A.x = 1\r\nAND B.y = 2\r\n"),
        at("A; B WHERE\n\n"),
        at("SEQ(A,\n  SEQ(B, C),\n  D\nWITHIN 5"),
    ],
}


def raised(case: Case) -> tuple[str, QueryError]:
    """Return the stage at which a case raises (parse, check without a schema, or bind) and the error."""
    try:
        script = parse(case.text)
    except QueryError as error:
        return "parse", error
    try:
        sketch(script)
    except QueryError as error:
        return "check", error
    with pytest.raises(QueryError) as info:
        bind(script, case.schema, **{"time": "t", "type": "kind", **case.binding})  # type: ignore[arg-type]
    return "bind", info.value


@pytest.mark.parametrize("topic", TOPICS)
def test_messages(topic: str) -> None:
    parts = []
    for case in TOPICS[topic]:
        when, error = raised(case)
        options = "".join(f"  ({name}={value})" for name, value in case.binding.items())
        heading = "\n".join(f"> {line.rstrip()}".rstrip() for line in (case.text + options).splitlines() or [""])
        parts.append(f"{heading}\n{when}: {type(error).__name__}: {error}\n")
    check_golden(f"errors/{topic}.txt", "\n".join(parts))


def test_there_are_at_least_sixty_distinct_messages() -> None:
    errors = [raised(case)[1] for cases in TOPICS.values() for case in cases]
    assert len({(error.message, error.hint) for error in errors}) >= 150
    assert len({error.message for error in errors}) >= 60


def test_checking_with_a_schema_finds_the_same_errors() -> None:
    """Binding must not depend on `check` having been called."""
    for cases in TOPICS.values():
        for case in cases:
            when, error = raised(case)
            if when == "check":
                with pytest.raises(QueryError):
                    bind(parse(case.text), case.schema, time="t", type="kind")
                assert error.text == case.text


def test_no_message_has_a_wrong_article() -> None:
    for cases in TOPICS.values():
        for case in cases:
            message = str(raised(case)[1])
            assert not any(f" a {vowel}" in message.split("|", maxsplit=1)[0] for vowel in "aeio"), message


def test_a_script_without_text_is_shown_as_printed() -> None:
    script = replace(parse("A a; !B b; C c RETURN b.x"), text="")
    with pytest.raises(QueryError, match=r"RETURN cannot use `b`, which is negated at line 1, column 18") as info:
        sketch(script)
    assert "PATTERN SEQ(A a, !B b, C c) RETURN b.x" in str(info.value)
