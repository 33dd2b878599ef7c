"""Test the parser and the printer of MATCH_RECOGNIZE: trees, words in context, and round trips."""

from __future__ import annotations

from fractions import Fraction

import pytest

from streamsift.errors import QuerySyntaxError
from streamsift.language import syntax as s
from streamsift.language.row_match import is_match_recognize, parse_rows, print_row_pattern, print_rows
from streamsift.language.row_match import syntax as r
from streamsift.language.row_match.literals import duration_of, in_unit, unquote
from streamsift.language.row_match.statement import first_clause, text_of, tokens_of

WHOLE = """MATCH_RECOGNIZE ( -- a comment
    PARTITION BY symbol, `odd name` ORDER BY ts DESC NULLS LAST, x
    MEASURES A.price AS a, LAST(B.price, 2) AS "b", FINAL COUNT(*) AS n, COUNT(B.*) cnt,
        CAST(A.x AS DECIMAL(10,2)) + 1 AS c,
        CASE WHEN A.x > 3 THEN 'a' ELSE 'b' END AS d, PREV(LAST(A.x, 2), 1) e, arr[0]::int AS f,
        EXTRACT(YEAR FROM A.ts) AS y, transform(arr, z -> z + 1) AS tr, ARRAY_AGG(DISTINCT x) AS ag,
        CLASSIFIER("b") AS cl, INTERVAL '1:30' HOUR TO MINUTE AS iv, a || 'it''s' AS conc, x IS DISTINCT FROM 3 AS dis
    ALL ROWS PER MATCH OMIT EMPTY MATCHES /* and another */
    AFTER MATCH SKIP TO LAST "b"
    PATTERN (^ A "b"+? (C | D{2,3}? | ()) {- E* -} PERMUTE(F, G H) A?? B{,4} C{5,} (A B)+ $)
    WITHIN INTERVAL '1' HOUR
    SUBSET U = (A, "b")
    DEFINE A AS price > PREV(price) AND NOT x IN (1, 2) AND name LIKE 'a%',
        "b" AS a.price BETWEEN 1 AND 2 OR "b".x IS NOT NULL
) AS m (c1, c2)"""


def pattern(text: str) -> r.RowPattern:
    return parse_rows(f"PATTERN ({text})").clause.pattern


def condition(text: str) -> r.RowExpression:
    return parse_rows(f"PATTERN (A) DEFINE A AS {text}").clause.defines[0].condition


def test_prints_what_it_parses() -> None:
    script = parse_rows(WHOLE)
    assert parse_rows(print_rows(script)) == script
    assert (script.alias, script.columns) == ("m", ("c1", "c2"))


def test_clauses_may_have_any_order_and_any_case() -> None:
    clause = parse_rows("pattern (a) define A as x > 1 measures a.x as n order by t one row per match").clause
    assert clause == parse_rows("ORDER BY t MEASURES A.x AS n PATTERN (A) DEFINE A AS x > 1").clause


@pytest.mark.parametrize(
    "name", ["pattern", "match", "end", "one", "define", "within", "row", "next", "interval", "date"]
)
def test_keywords_are_names_where_they_can_be(name: str) -> None:
    clause = parse_rows(f"MEASURES A.{name} AS {name} PATTERN (A) DEFINE A AS {name} > 1").clause
    assert clause.measures[0] == r.RowMeasure(s.Name(("A", name)), name)
    assert clause.defines[0].condition.operands[0] == s.Name((name,))


def test_quoted_variables_are_as_written() -> None:
    clause = parse_rows("""PATTERN ("b" B) DEFINE "b" AS "b".x > b.x AND s = "text" """).clause
    assert [each.label for each in clause.pattern.parts] == ["b", "B"]
    compared, text = clause.defines[0].condition.operands
    assert compared.operands == (s.Name(("b", "x")), s.Name(("B", "x")))
    assert text.operands[1] == s.String("text")


@pytest.mark.parametrize(
    ("text", "low", "high", "greedy"),
    [("A*", 0, None, True), ("A+?", 1, None, False), ("A??", 0, 1, False), ("A{3}", 3, 3, True),
     ("A{,2}?", 0, 2, False), ("A{2,}", 2, None, True), ("A{2,4}", 2, 4, True), ("A{,}", 0, None, True)],
)  # fmt: skip
def test_quantifiers(text: str, low: int, high: int | None, greedy: bool) -> None:
    loop = pattern(text)
    assert loop == r.Repetition(r.RowVariable("A"), low, high, greedy)
    assert pattern(print_row_pattern(loop)) == loop


def test_alternatives_bind_weaker_than_concatenation() -> None:
    a, b, c = map(r.RowVariable, "ABC")
    assert pattern("A B | C") == r.Alternation((r.Concatenation((a, b)), c))
    assert pattern("A (B | C)") == r.Concatenation((a, r.Alternation((b, c))))
    assert pattern("A ()") == r.Concatenation((a, r.Empty()))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("INTERVAL '1' HOUR", 3600), ("INTERVAL '1:30' HOUR TO MINUTE", 5400), ("INTERVAL 5 MINUTES", 300),
     ("INTERVAL '1 02:03:04' DAY TO SECOND", 93784), ("INTERVAL '2 days 1 hour'", 176400),
     ("INTERVAL 1 HOUR 1 SECOND", 3601)],
)  # fmt: skip
def test_intervals_of_fixed_length(text: str, seconds: int) -> None:
    assert duration_of(text) == in_unit(Fraction(seconds))


def test_an_interval_of_months_is_left_to_spark() -> None:
    assert duration_of("INTERVAL '2' MONTH") is None
    with pytest.raises(QuerySyntaxError, match="fixed length"):
        parse_rows("PATTERN (A) WITHIN INTERVAL '2' MONTH")


def test_strings_have_the_escapes_of_spark() -> None:
    assert unquote(r"'it\'s \n''ok'' 50\%'") == "it's \n'ok' 50\\%"


def test_operators_of_sql_bind_as_in_sql() -> None:
    assert condition("NOT x = 1 OR y = 2 AND z = 3") == condition("(NOT (x = 1)) OR ((y = 2) AND (z = 3))")
    assert condition("x - 1 - 2 * 3 > -y") == condition("((x - 1) - (2 * 3)) > (-y)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATERN (A B)", "`PATERN` is not a clause.*did you mean PATTERN"),
        ("PATTERN (A B", "ends too early.*close the"),
        ("PATTERN (A {- B)", r"unexpected `\)`.*expected `-}`"),
        ("PATTERN (A B) DEFINE B AS x >", "ends too early.*expected an expression"),
        ("MEASURES A.x PATTERN (A)", "unexpected `PATTERN`.*expected AS or a name"),
        ("ORDER BY x", "requires PATTERN"),
        ("PATTERN (A) PATTERN (B)", "PATTERN is written twice"),
        ("PATTERN (A{3,1})", "minimum of 3 above its maximum of 1"),
        ("PATTERN (A) DEFINE A AS 'x", "the string is not closed"),
        ("PATTERN (A) DEFINE A AS x = ?", "parameters are not supported"),
        ("-- nothing", "requires PATTERN"),
    ],
)
def test_mistakes_have_a_place_and_a_hint(text: str, message: str) -> None:
    with pytest.raises(QuerySyntaxError, match=f"(?s){message}"):
        parse_rows(text)


def test_a_query_that_starts_with_match_recognize_is_one() -> None:
    assert is_match_recognize("-- why\n/* and */ match_recognize (PATTERN (A))")
    assert not is_match_recognize("MATCH_RECOGNIZER a; B b")


@pytest.mark.parametrize(
    ("statement", "relation", "alias"),
    [
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) WHERE x > 1", "t", None),
        ("SELECT * FROM a.b.t AS x MATCH_RECOGNIZE (PATTERN (A)) AS m JOIN u", "a.b.t", "m"),
        ("SELECT * FROM t x MATCH_RECOGNIZE (PATTERN (A)) m", "t", "m"),
        ("SELECT * FROM (SELECT ')' FROM t) MATCH_RECOGNIZE (PATTERN (A)) m", "(SELECT ')' FROM t)", "m"),
        ("SELECT * FROM u JOIN {t} MATCH_RECOGNIZE (PATTERN (A)) m ON true", "{t}", "m"),
        ("SELECT 'x MATCH_RECOGNIZE (' FROM range(3) MATCH_RECOGNIZE (PATTERN (A))", "range(3)", None),
    ],
)
def test_finds_the_relation_of_a_clause(statement: str, relation: str, alias: str | None) -> None:
    tokens = tokens_of(statement)
    clause = first_clause(tokens, statement)
    assert clause is not None
    assert text_of(tokens[slice(*clause.relation)]) == relation
    assert clause.alias == alias
