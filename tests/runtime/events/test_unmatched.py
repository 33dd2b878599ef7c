"""Test the warning about classes that no row belongs to."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import streamsift as ss

KINDS = pa.array(["Order", "Payment", None, "Order"])
EVENTS = pa.table({"t": [1, 2, 3, 4], "kind": KINDS})
TYPES = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))


def messages(query: str, events: pa.Table, **binding: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ss.query(query).run_local(events, time="t", **binding)
    assert all(warning.category is ss.UnmatchedClassWarning for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_class_without_rows_gets_a_warning_with_the_nearest_name(kind: pa.DataType) -> None:
    kinds = KINDS.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else KINDS.cast(kind)
    events = EVENTS.set_column(1, "kind", kinds)
    query = "SEQ(Order a, !Refund r, Paymnt p, Paymnt q) WITHIN 5"
    expected = ["class `Refund` matches no row", "class `Paymnt` matches no row; did you mean `Payment`?"]
    assert messages(query, events, type="kind") == expected


@pytest.mark.parametrize(
    ("query", "events", "binding"),
    [
        ("SEQ(Order a, Payment p, ANY x)", EVENTS, {"type": "kind"}),
        ("SEQ(Order a, Large b) WITH Large = (t > 9)", EVENTS, {"type": "kind"}),
        ("SEQ(First a, Second b)", EVENTS, {}),
        ("SEQ(Order a, Refund r)", EVENTS.slice(0, 0), {"type": "kind"}),
    ],
    ids=["all classes have rows", "a class of WITH", "no type column", "no rows"],
)
def test_there_is_no_warning(query: str, events: pa.Table, binding: dict[str, str]) -> None:
    assert messages(query, events, **binding) == []


def test_many_queries_warn_once_for_each_class() -> None:
    queries = {"one": "SEQ(Order a, Paymnt p)", "two": "SEQ(Order a, Paymnt p) AGG COUNT"}
    with pytest.warns(ss.UnmatchedClassWarning) as caught:
        results = ss.run_many(queries, EVENTS, time="t", type="kind")
    assert [str(warning.message) for warning in caught] == ["class `Paymnt` matches no row; did you mean `Payment`?"]
    assert [table.num_rows for table in results.values()] == [0, 0]
