"""Read the worked examples in `tests/cases/*.toml` as cases with typed events and expected rows.

A table is written with a header and one row per line, cells separated by `|`. `-` is null, `''` is the empty string.
A column's type follows its name (`x:float`, `price:decimal(10,2)`, `at:timestamp_tz`). Without a type, it is inferred
from the cells: all integers, all numbers (including `nan`, `inf`, `-inf`), otherwise strings. An expected column is a
path into the result row: `a.t`, `match_end`. For a Kleene group it is a list, written `[1 2]`.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

CASES = Path(__file__).parents[1] / "cases"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # int, float, string, bool, decimal(p,s), timestamp, timestamp_tz or date
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Case:
    file: str  # the file's stem
    name: str
    query: str
    time: str
    events: tuple[Column, ...]
    type: str | None = None
    order: str | None = None
    source: str | None = None
    ordered: bool = False  # rows are compared as a list, not as a multiset
    expected: tuple[Column, ...] | None = None
    error: str | None = None
    message: str = ""

    @property
    def id(self) -> str:
        return f"{self.file}: {self.name}"

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self.events]

    def rows(self) -> list[Row]:
        """Return the events as one dict per row, in input order."""
        return rows_of(self.events)

    def table(self) -> pa.Table:
        """Return the events as an Arrow table, which has the column types even if it is empty."""
        arrays = {column.name: pa.array(column.values, arrow_type(column.type)) for column in self.events}
        return pa.table(arrays)


@cache
def load_cases() -> list[Case]:
    """Return all cases, sorted by file name and in the order of each file."""
    return [case for path in sorted(CASES.glob("*.toml")) for case in parse_cases(path.read_text("utf-8"), path.stem)]


def parse_cases(text: str, file: str) -> list[Case]:
    cases = [parse_case(entry, file) for entry in tomllib.loads(text)["case"]]
    repeated = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if repeated:
        raise ValueError(f"{file}: cases share a name: {', '.join(repeated)}")
    return cases


def parse_case(entry: dict[str, Any], file: str) -> Case:
    tables = {name: parse_table(entry[name]) for name in ("events", "expected") if name in entry}
    case = Case(**{**entry, **tables, "file": file})
    if (case.expected is None) == (case.error is None):
        raise ValueError(f"{case.id}: set either `expected` or `error`")
    return case


# --- cells -------------------------------------------------------------------------------------------------------


def parse_table(text: str) -> tuple[Column, ...]:
    lines = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    header, body = lines[0], lines[1:]
    for line in body:
        if len(line) != len(header):
            raise ValueError(f"{len(line)} cells under {len(header)} columns: {' | '.join(line)}")
    return tuple(parse_column(head, [line[index] for line in body]) for index, head in enumerate(header))


def parse_column(head: str, cells: list[str]) -> Column:
    name, _, type_name = (part.strip() for part in head.partition(":"))
    type_name = type_name or inferred_type([item for cell in cells for item in items_of(cell)])
    read = READERS[type_name.partition("(")[0]]
    return Column(name, type_name, tuple(parse_cell(cell, read) for cell in cells))


def items_of(cell: str) -> list[str]:
    """Return the values of a cell; a list has several."""
    return cell[1:-1].split() if cell.startswith("[") and cell.endswith("]") else [cell]


def inferred_type(cells: list[str]) -> str:
    known = [cell for cell in cells if cell != "-"]
    if not known:
        return "string"
    if all(re.fullmatch(r"[+-]?\d+", cell) for cell in known):
        return "int"
    number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|[+-]?inf"
    return "float" if all(re.fullmatch(number, cell) for cell in known) else "string"


def parse_cell(cell: str, read: Callable[[str], Any]) -> Any:
    values = [None if item == "-" else read(item) for item in items_of(cell)]
    return values if cell.startswith("[") and cell.endswith("]") else values[0]


def zoned(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


READERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "string": lambda text: "" if text == "''" else text,
    "bool": lambda text: {"true": True, "false": False}[text],
    "decimal": Decimal,
    "timestamp": datetime.fromisoformat,
    "timestamp_tz": zoned,
    "date": date.fromisoformat,
}


def arrow_type(type_name: str) -> pa.DataType:
    if type_name.startswith("decimal"):
        precision, scale = (int(number) for number in re.findall(r"\d+", type_name))
        return pa.decimal128(precision, scale)
    return {
        "int": pa.int64(),
        "float": pa.float64(),
        "string": pa.string(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us"),
        "timestamp_tz": pa.timestamp("us", "UTC"),
        "date": pa.date32(),
    }[type_name]


# --- comparing ---------------------------------------------------------------------------------------------------


def rows_of(columns: tuple[Column, ...]) -> list[Row]:
    names = [column.name for column in columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*(c.values for c in columns), strict=True)]


def project(rows: list[Row], paths: list[str]) -> list[Row]:
    """Return the values at the paths. The longest matching column name wins: `S1.A.t` is `t` in column `S1.A`."""
    return [{path: value_at(row, path) for path in paths} for row in rows]


def value_at(row: Any, path: str) -> Any:
    if row is None or not path:
        return row
    if isinstance(row, list):
        return [value_at(element, path) for element in row]
    fitting = [name for name in row if path == name or path.startswith(f"{name}.")]
    if not fitting:
        raise KeyError(f"no column for {path!r}; the columns are {', '.join(map(repr, row))}")
    name = max(fitting, key=len)
    return value_at(row[name], path[len(name) + 1 :])


def plain(value: Any) -> Any:
    """Normalize a value for comparing and sorting: times in UTC, one NaN, floats to twelve digits."""
    if isinstance(value, list | tuple):
        return tuple(plain(element) for element in value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return int(value) if value.is_integer() and abs(value) < 2**53 else float(f"{value:.12g}")
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else plain(float(value))
    return value


def frozen(value: Any) -> Any:
    """Return the value in a hashable form."""
    match value:
        case dict():
            return tuple((name, frozen(value[name])) for name in sorted(value))
        case list():
            return tuple(map(frozen, value))
        case _:
            return plain(value)


def assert_rows(case: Case, actual_rows: list[Row]) -> None:
    """Compare the case's expected columns with the result: as a multiset of rows, or as a list if it is `ordered`."""
    assert case.expected is not None, f"{case.id} expects an error"
    paths = [column.name for column in case.expected]
    expected = [tuple(map(plain, row.values())) for row in rows_of(case.expected)]
    actual = [tuple(map(plain, row.values())) for row in project(actual_rows, paths)]
    missing = list((Counter(expected) - Counter(actual)).elements())
    unexpected = list((Counter(actual) - Counter(expected)).elements())
    wrong_order = case.ordered and not missing and not unexpected and expected != actual
    if missing or unexpected or wrong_order:
        parts = [case.id, case.query.strip(), show(case.columns, [tuple(row.values()) for row in case.rows()])]
        parts += [f"missing:\n{show(paths, missing)}"] if missing else []
        parts += [f"unexpected:\n{show(paths, unexpected)}"] if unexpected else []
        parts += [f"the order differs:\n{show(paths, actual)}"] if wrong_order else []
        raise AssertionError("\n\n".join(parts))


def show(header: list[str], rows: list[tuple[Any, ...]]) -> str:
    lines = [header, *([shown(value) for value in row] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(header))]
    return "\n".join(" | ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(shown, value)) + "]"
    return "-" if value is None else "''" if value == "" else str(value)
