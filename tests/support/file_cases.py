"""List files that readers tend to disagree on, with the rows or the error that both engines return.

`docs/how-to/files.md` has a line for each title.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from streamsift.runtime.input import FileInput, TimeNotation

MAY = datetime(2024, 5, 1, 10)
ISO_TIME = int(MAY.replace(tzinfo=UTC).timestamp())


@dataclass(frozen=True, slots=True)
class FileCase:
    title: str
    files: Mapping[str, bytes]
    rows: list[dict[str, Any]] | None = None
    error: str = ""  # part of the error message, if there are no rows
    source: FileInput = field(default_factory=lambda: FileInput(""))

    def write(self, folder: Path) -> FileInput:
        """Write the files and return the input path: the file, or the directory if there are several."""
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        location = self.source.location or (next(iter(self.files)) if len(self.files) == 1 else "")
        return replace(self.source, location=str(folder / location))


def csv(title: str, text: str | bytes, rows: list[dict[str, Any]] | None = None, error: str = "") -> FileCase:
    return FileCase(title, {"e.csv": text.encode() if isinstance(text, str) else text}, rows, error)


def json(title: str, text: str | bytes, rows: list[dict[str, Any]] | None = None, error: str = "") -> FileCase:
    return FileCase(title, {"e.json": text.encode() if isinstance(text, str) else text}, rows, error)


def parquet(**columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def epoch(unit: str) -> FileInput:
    return FileInput("", times=TimeNotation("t", unit=unit))


def written(time_format: str) -> FileInput:
    return FileInput("", times=TimeNotation("t", time_format))


CASES = [
    csv("Ragged rows", "a,b\n1,2\n3\n", error="a row has 1 field, but the header has 2: 3"),
    csv("Ragged rows", "a,b\n1,2,3\n", error="a row has 3 fields, but the header has 2: 1,2,3"),
    csv("Text that is not UTF-8", "a\ncafé\n".encode("latin1"), error="it is not UTF-8 text"),
    json("Text that is not UTF-8", '{"a": "café"}'.encode("latin1"), error="it is not UTF-8 text"),
    csv("Duplicate columns", "a,b,a\n1,2,3\n", error="has two columns named `a`"),
    csv("Duplicate columns", "a,A\n1,2\n", error="has two columns named `a`"),
    json("Duplicate columns", '{"a": 1, "a": 2}\n', error="an object has the key `a` twice"),
    csv("Columns without a name", ",a\n0,1\n", [{"_c0": 0, "a": 1}]),
    csv("Empty fields", 'a,b\n,x\n"",NA\n', [{"a": None, "b": "x"}, {"a": None, "b": "NA"}]),
    csv("Newlines in quoted fields", 'a,b\n1,"x\ny"\n2,z\n', [{"a": 1, "b": "x\ny"}, {"a": 2, "b": "z"}]),
    csv("Quotes that are not closed", 'a,b\n1,"x\n2,y\n', error="a quoted field is not closed"),
    csv("Large integers", f"a\n{2**64}\n1\n", [{"a": Decimal(2**64)}, {"a": Decimal(1)}]),
    json("Large integers", f'{{"a": {2**64}}}\n{{"a": 1}}\n', [{"a": Decimal(2**64)}, {"a": Decimal(1)}]),
    json("Large integers", '{"a": 1e5}\n{"a": 9007199254740993}\n', error="cannot be read without rounding"),
    json(
        "Nested JSON numbers",
        '{"a": {"b": [9007199254740993, 0.5]}}\n',
        [{"a": {"b": [Decimal("9007199254740993.0"), Decimal("0.5")]}}],
    ),
    csv("Numbers and strings in a column", "a\n1\nx\n", [{"a": "1"}, {"a": "x"}]),
    json("Numbers and strings in a column", '{"a": 1}\n{"a": "x"}\n', error="`a` contains numbers and strings"),
    csv("Blank lines", "\na,b\n\n1,2\n\n", [{"a": 1, "b": 2}]),
    json("Blank lines", '\n{"a": 1}\n\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
    csv("Byte order marks", b"\xef\xbb\xbfa,b\n1,2\n", [{"a": 1, "b": 2}]),
    json("Byte order marks", b'\xef\xbb\xbf{"a": 1}\n', [{"a": 1}]),
    csv("Windows line ends", "a,b\r\n1,2\r\n", [{"a": 1, "b": 2}]),
    json("Windows line ends", '{"a": 1}\r\n{"a": 2}\r\n', [{"a": 1}, {"a": 2}]),
    csv("A header without rows", "a,b\n", []),
    csv("Empty files", "", error="it is empty"),
    json("Empty files", "", error="it is empty"),
    FileCase("Empty files", {"1.csv": b"", "2.csv": b"a\n1\n"}, [{"a": 1}]),
    FileCase(
        "Files with different headers",
        {"1.csv": b"a,b\n1,2\n", "2.csv": b"b,a\n2,1\n"},
        error="2.csv is b, a; that of",
    ),
    json("JSON arrays", '[{"a": 1},\n {"a": 2.5}]', [{"a": 1.0}, {"a": 2.5}]),
    json("JSON objects that span lines", '{\n  "a": 1\n}\n{\n  "a": 2\n}\n', [{"a": 1}, {"a": 2}]),
    json("Broken JSON", '{"a": 1}\n{"a"\n', error="Expecting ':' delimiter (column 5) in {\"a\""),
    json("Missing JSON keys", '{"a": 1}\n{"b": "x"}\n', [{"a": 1, "b": None}, {"a": None, "b": "x"}]),
    FileCase(
        "`key=value` folders",
        {"day=2024-05-01/room=a%20b/1.csv": b"a\n1\n", "day=2024-05-02/room=7/1.csv": b"a\n2\n"},
        [{"a": 1, "day": date(2024, 5, 1), "room": "a b"}, {"a": 2, "day": date(2024, 5, 2), "room": "7"}],
    ),
    FileCase(
        "`key=value` folders",
        {"n=1/1.json": b'{"a": 1}', "n=__HIVE_DEFAULT_PARTITION__/1.json": b'{"a": 2}'},
        [{"a": 1, "n": 1}, {"a": 2, "n": None}],
    ),
    FileCase(
        "`key=value` folders",
        {"day=2024-05-01/1.parquet": parquet(a=[1]), "day=2024-05-02/1.parquet": parquet(a=[2])},
        [{"a": 1, "day": date(2024, 5, 1)}, {"a": 2, "day": date(2024, 5, 2)}],
    ),
    FileCase("`key=value` folders", {"a=1/1.csv": b"a\n1\n", "a=2/1.csv": b"a\n1\n"}, error="two columns named `a`"),
    FileCase("Compressed files", {"e.csv.gz": gzip.compress(b'a,b\n1,"x\ny"\n')}, [{"a": 1, "b": "x\ny"}]),
    FileCase("Compressed files", {"e.jsonl.gz": gzip.compress(b'{"a": 1}\n')}, [{"a": 1}]),
    FileCase("Other delimiters", {"e.tsv": b"a\tb\n1\tx,y\n"}, [{"a": 1, "b": "x,y"}]),
    FileCase("Other delimiters", {"e.csv": b"a;b\n1;x,y\n"}, [{"a": 1, "b": "x,y"}], source=FileInput("", None, ";")),
    FileCase(
        "Glob patterns",
        {"1.csv": b"a\n1\n", "2.csv": b"a\n2\n", "b.txt": b""},
        [{"a": 1}, {"a": 2}],
        source=FileInput("[0-9].csv"),
    ),
    FileCase("Glob patterns", {"a[1]*.csv": b"a\n1\n"}, [{"a": 1}]),
    FileCase(
        "Numbers as times", {"e.csv": f"t\n{ISO_TIME}\n".encode()}, [{"t": MAY.replace(tzinfo=UTC)}], source=epoch("s")
    ),
    FileCase(
        "Numbers as times",
        {"e.parquet": parquet(t=[ISO_TIME * 1000])},
        [{"t": MAY.replace(tzinfo=UTC)}],
        source=epoch("ms"),
    ),
    FileCase(
        "Times in other formats", {"e.csv": b"t\n01/05/2024 10:00\n"}, [{"t": MAY}], source=written("%d/%m/%Y %H:%M")
    ),
    FileCase(
        "Times in other formats",
        {"e.json": b'{"t": "01.05.24 12:00 +0200"}'},
        [{"t": MAY.replace(tzinfo=UTC)}],
        source=written("%d.%m.%y %H:%M %z"),
    ),
]
TITLES = list(dict.fromkeys(case.title for case in CASES))
