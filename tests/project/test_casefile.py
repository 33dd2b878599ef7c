"""Case files: cells, types, paths and the failure message."""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import isnan

import pyarrow as pa
import pytest

from casefile import assert_rows, load_cases, parse_cases, parse_table, project

TEXT = """
[[case]]
name = "pairs"
query = "PATTERN SEQ(A a, B+ b)"
time = "t"
type = "kind"
events = '''
t | kind | x:float | d:decimal(10,2) | at:timestamp_tz           | day:date   | flag:bool | s
1 | A    | 2.5     | 1.50            | 2024-05-01T12:00:00+02:00 | 2024-05-01 | true      | ''
2 | B    | nan     | -               | -                         | -          | false     | -
'''
expected = '''
a.t | b.t   | match_end
1   | [2 3] | 3
'''
"""


def test_cells_become_typed_values() -> None:
    first, second = parse_cases(TEXT, "file")[0].rows()
    at = first.pop("at")
    day = date(2024, 5, 1)
    assert first == {"t": 1, "kind": "A", "x": 2.5, "d": Decimal("1.50"), "day": day, "flag": True, "s": ""}
    assert at.astimezone(UTC) == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert isnan(second["x"])
    assert second["s"] is None


def test_column_types_are_found_from_the_cells() -> None:
    columns = parse_table("i | f | g | s | n\n1 | 1 | 1e3 | x | -\n-2 | 2.5 | -inf | 3 | -")
    assert [column.type for column in columns] == ["int", "float", "float", "string", "string"]


def test_an_empty_table_keeps_its_types() -> None:
    case = parse_cases(TEXT.split("1 | A", maxsplit=1)[0] + "'''\nerror = 'QueryError'", "file")[0]
    types = [pa.int64(), pa.string(), pa.float64(), pa.decimal128(10, 2), pa.timestamp("us", "UTC"), pa.date32()]
    assert case.table().num_rows == 0
    assert case.table().schema.types[2:6] == types[2:6]


def test_a_table_holds_the_rows() -> None:
    case = parse_cases(TEXT, "file")[0]
    assert case.table().to_pylist()[0]["d"] == Decimal("1.50")
    assert case.table().column_names == case.columns


def test_paths_reach_into_structs_groups_and_definitions() -> None:
    row = {"a": {"t": 1}, "b": [{"t": 2}, {"t": 3}], "c": None, "S1.A": {"t": 4}, "match_end": 3}
    assert project([row], ["a.t", "b.t", "c.t", "S1.A.t", "match_end"]) == [
        {"a.t": 1, "b.t": [2, 3], "c.t": None, "S1.A.t": 4, "match_end": 3}
    ]


def test_an_unknown_path_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"no column for 'd\.t'"):
        project([{"a": {"t": 1}}], ["d.t"])


def test_a_failure_shows_query_events_and_both_differences() -> None:
    case = parse_cases(TEXT, "file")[0]
    with pytest.raises(AssertionError) as failure:
        assert_rows(case, [{"a": {"t": 1}, "b": [{"t": 2}], "match_end": 2}])
    message = str(failure.value)
    for text in ("PATTERN SEQ(A a, B+ b)", "kind", "missing:", "[2 3]", "unexpected:", "[2]"):
        assert text in message


def test_equal_values_of_other_types_agree() -> None:
    case = parse_cases(TEXT, "file")[0]
    assert_rows(case, [{"a": {"t": Decimal("1.0")}, "b": [{"t": 2.0}, {"t": 3}], "match_end": 3.0}])


def test_names_are_unique_within_a_file() -> None:
    ids = [case.id for case in load_cases()]
    assert len(ids) == len(set(ids))
    with pytest.raises(ValueError, match="share a name: pairs"):
        parse_cases(TEXT + TEXT, "file")
