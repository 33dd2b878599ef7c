"""Files are read without rounding: keys that are written as different numbers stay different."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.errors import BadInputError
from streamsift.runtime.input.files import read_head, read_names, read_schema, read_table

PAIRS = ss.query("PATTERN SEQ(ANY a, ANY b) WHERE [x] RETURN a.t AS first, b.t AS then")


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_integers_beyond_64_bits_are_different_keys(tmp_path: Path, suffix: str) -> None:
    keys = [2**64 - 2, 2**64 - 1, 2**64 - 2]
    lines = [f"{t},{x}" if suffix == "csv" else f'{{"t": {t}, "x": {x}}}' for t, x in enumerate(keys)]
    path = tmp_path / f"events.{suffix}"
    path.write_text("\n".join([*(["t,x"] if suffix == "csv" else []), *lines]), encoding="utf-8")
    events = read_table(path)
    assert events.column("x").to_pylist() == [Decimal(key) for key in keys]
    assert PAIRS.run_local(events, time="t").to_pylist() == [{"first": 0, "then": 2}]


def test_types_do_not_depend_on_the_first_block(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("t,x\n" + "".join(f"{t},{t}\n" for t in range(200_000)) + "200000,abc\n", encoding="utf-8")
    assert read_schema(path) == pa.schema([("t", pa.int64()), ("x", pa.string())])
    assert read_head(path, 5).column("x").to_pylist() == [0, 1, 2, 3, 4]
    assert read_names(path) == ["t", "x"]


def test_columns_without_a_name_are_called_as_on_spark(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(",x\n0,5\n", encoding="utf-8")
    assert read_table(path).to_pydict() == {"_c0": [0], "x": [5]}


def test_files_with_other_headers_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n1,2\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("x,t\n3,4\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"the header of .*b\.csv is x, t; that of .*a\.csv is t, x"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["9007199254740993", "0.5"], pa.decimal128(38, 1)),
        (["1700000000.123456789", "0.5"], pa.decimal128(38, 9)),
        (["0.8444218515250481", "1"], pa.float64()),
        (["1.700000000123456717e+09", "1"], pa.float64()),
        (['"2024-01-02T10:00:00+01:00"', '"2024-01-02"'], pa.string()),
        (['{"a": "2024-01-02"}', "null"], pa.struct([("a", pa.string())])),
        (['["2024-01-02"]', "null"], pa.list_(pa.string())),
    ],
)
def test_numbers_and_strings_of_json_stay_what_they_are(
    tmp_path: Path, values: list[str], expected: pa.DataType
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f'{{"t": 1, "x": {x}, "y": 0}}\n' for x in values), encoding="utf-8")
    found = read_table(path)
    assert found.schema == pa.schema([("t", pa.int64()), ("x", expected), ("y", pa.int64())])


@pytest.mark.parametrize("values", [["1" + "0" * 38, "1"], ["1e5", "9007199254740993"]])
def test_numbers_of_json_that_no_type_holds_are_an_error(tmp_path: Path, values: list[str]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f'{{"x": {x}}}\n' for x in values), encoding="utf-8")
    with pytest.raises(BadInputError, match="the numbers in `x` cannot be read without rounding"):
        read_table(path)


def test_several_json_files_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 9007199254740993}\n', encoding="utf-8")
    (tmp_path / "b.json").write_text('{"x": 0.5, "d": "2024-01-02"}\n', encoding="utf-8")
    assert read_table(tmp_path).column("x").to_pylist() == [Decimal("9007199254740993.0"), Decimal("0.5")]


def test_dates_of_csv_are_dates(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("d\n2024-01-02\n", encoding="utf-8")
    assert read_table(path).column("d").to_pylist() == [date(2024, 1, 2)]
