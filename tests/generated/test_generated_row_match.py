"""Check that MATCH_RECOGNIZE returns the oracle's rows for generated clauses on generated rows."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import naive_row_match
import streamsift as ss
from row_match_queries import SCHEMA, Sample, sample
from streamsift.language.row_match import parse_rows
from test_generated import EXAMPLES, LARGE

SEEDS = st.integers(0, 2**32)


def expected_rows(one: Sample) -> list[dict[str, Any]] | None:
    """Return the oracle's rows; None if AFTER MATCH SKIP TO has no row to go to."""
    clause = parse_rows(one.text).clause
    try:
        return naive_row_match.run(clause, one.rows, SCHEMA.names, one.on_skip_error)
    except naive_row_match.SkipError:
        return None


def comparable(value: Any) -> Any:
    """Return a hashable value that is equal for equal results; doubles are rounded, instants are in UTC."""
    match value:
        case list():
            return tuple(map(comparable, value))
        case bool() | None:
            return value
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        case int() | float() | Decimal():
            number = float(value)
            return "NaN" if math.isnan(number) else float(f"{number:.9g}")
    return value


def counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((tuple(row), tuple(map(comparable, row.values()))) for row in rows)


def check(one: Sample) -> None:
    note(one.text)
    expected = expected_rows(one)
    try:
        found = ss.match_recognize(one.table(), one.text, on_skip_error=one.on_skip_error).to_pylist()
    except ss.QueryError as error:
        assert "always fails" in str(error), error
        event("SKIP TO always fails")
        return
    except ss.BadInputError as error:
        event("SKIP TO an absent row")
        assert expected is None, error
        return
    assert expected is not None, "the oracle has no row to skip to"
    event("rows" if found else "no row")
    wanted, got = counted(expected), counted(found)
    assert not wanted - got, "rows that only the oracle returns"
    assert not got - wanted, "rows that the oracle does not return"


@settings(max_examples=EXAMPLES or (20_000 if LARGE else 150))
@given(SEEDS)
def test_generated_clauses(seed: int) -> None:
    check(sample(seed))


def test_the_comparison_can_fail() -> None:
    text = "MATCH_RECOGNIZE (ORDER BY t MEASURES n AS m PATTERN (A) DEFINE A AS n > 1)"
    one = Sample(text, [{**dict.fromkeys(SCHEMA.names), "t": 1, "n": 2}], "fail", True)
    check(one)
    wrong = ss.match_recognize(one.table(), text.replace("n > 1", "n > 2")).to_pylist()
    assert counted(expected_rows(one) or []) != counted(wrong)
