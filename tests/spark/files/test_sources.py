"""A file has the same columns and values on Spark and in this process, or an error says why it cannot."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from streamsift.errors import BadInputError
from streamsift.runtime.input.files import read_table
from streamsift.spark.files.sources import read_events, stream_events
from text_columns import COLUMNS

ON_SPARK_TOO_FINE = "nanoseconds"


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by("row").combine_chunks()


def test_csv_has_the_same_columns_on_both_engines(utc: SparkSession, tmp_path: Path) -> None:
    columns = {name: texts for name, (texts, _) in COLUMNS.items() if name != ON_SPARK_TOO_FINE and len(texts) < 10}
    columns |= {"quotes": ['a "b" c', "a\\", "a,b"], "unicode": ["é", "ü", "NA"]}
    height = max(map(len, columns.values()))
    # In two files: a column's type is that of all of them.
    for part in range(2):
        lines = [",".join(["row", *(f'"{name}"' for name in columns)])]
        for row in range(part, height, 2):
            texts = [texts[row] if row < len(texts) else None for texts in columns.values()]
            quoted = ["" if text is None else '"' + text.replace('"', '""') + '"' for text in texts]
            lines.append(",".join([str(row), *quoted]))
        (tmp_path / f"{part}.csv").write_text("\n".join(lines), encoding="utf-8")
    local, on_spark = in_order(read_table(tmp_path)), in_order(read_events(utc, tmp_path).toArrow())
    assert on_spark.schema == local.schema
    assert on_spark.drop_columns(["not numbers"]) == local.drop_columns(["not numbers"])  # NaN is not equal to NaN
    assert str(on_spark["not numbers"]) == str(local["not numbers"])


def test_files_that_spark_splits_have_one_header(utc: SparkSession, tmp_path: Path) -> None:
    utc.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    for name in ("a", "b"):
        rows = "".join(f"{row},{'x' * (row % 7)},{row}.5\n" for row in range(2_000))
        (tmp_path / f"{name}.csv").write_text(f"row,text,number\n{rows}", encoding="utf-8")
    events = read_events(utc, tmp_path)
    assert events.rdd.getNumPartitions() > 2
    assert in_order(events.toArrow()) == in_order(read_table(tmp_path))
    lines = "".join(f'{{"row": {row}, "number": {row}.5}}\n' for row in range(2_000))
    (tmp_path / "e.json").write_text(lines + '{"row": 2000, "number": 9007199254740993}\n', encoding="utf-8")
    events = read_events(utc, tmp_path / "e.json")
    assert in_order(events.toArrow()) == in_order(read_table(tmp_path / "e.json"))
    assert events.schema["number"].dataType.simpleString() == "decimal(38,1)"


def test_times_finer_than_microseconds_are_an_error(utc: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("t\n2024-01-02T10:00:00.000000001\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="column `t` has times finer than microseconds"):
        read_events(utc, path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # rows that do not fit the header
        ("e.csv", "a,b\n1\n"),
        ("e.csv", "a,b\n1,2,3\n"),
        ("e.csv", "a,b\n1,2\n3\n"),
        # a broken object, and numbers that no column type holds exactly
        ("e.json", '{"x": 1}\n{"x"\n'),
        ("e.json", '{"x": %s}\n' % ("9" * 39)),
        ("e.json", '{"x": 1e5}\n{"x": 9007199254740993}\n'),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(utc: SparkSession, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError):
        read_table(path)
    with pytest.raises(BadInputError):
        read_events(utc, path)


def test_json_has_the_same_columns_on_both_engines(utc: SparkSession, tmp_path: Path) -> None:
    columns = {
        "integer": ["1", "2"],
        "beyond 64 bits": ["18446744073709551614", "18446744073709551615"],
        "integer and fraction": ["9007199254740993", "0.5"],
        "long fraction": ["1700000000.123456789", "0.5"],
        "double": ["0.8444218515250481", "1e5"],
        "time": ['"2024-01-02T10:00:00+01:00"', '"2024-01-02"'],
        "text": ['""', '"7"'],
        "boolean": ["true", "null"],
    }
    path = tmp_path / "e.json"
    rows = range(2)
    lines = ["{" + ", ".join(f'"{name}": {texts[row]}' for name, texts in columns.items()) for row in rows]
    path.write_text("".join(f'{line}, "row": {row}}}\n' for row, line in enumerate(lines)), encoding="utf-8")
    local = in_order(read_table(path))
    on_spark = in_order(read_events(utc, path).toArrow()).select(local.column_names)  # Spark sorts them by name
    assert on_spark.schema == local.schema
    assert on_spark == local


def test_parquet_integers_beyond_64_bits(utc: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pyarrow.parquet.write_table(pa.table({"x": pa.array([2**64 - 2, 2**64 - 1], pa.uint64())}), path)
    assert [int(x) for x in read_table(path)["x"].to_pylist()] == [2**64 - 2, 2**64 - 1]
    assert [int(x) for x in read_events(utc, path).toArrow()["x"].to_pylist()] == [2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize(
    ("later", "reason"), [("2,9007199254740993", "would change it to decimal"), ("2,abc", "change it to string")]
)
def test_a_stream_does_not_round_what_comes_later(utc: SparkSession, tmp_path: Path, later: str, reason: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "1.csv").write_text("t,x\n1,0.5\n", encoding="utf-8")
    events = stream_events(utc, data)
    (data / "2.csv").write_text(f"t,x\n{later}\n", encoding="utf-8")
    stream = events.writeStream.format("memory").queryName("read").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(Exception, match=reason):
        stream.trigger(availableNow=True).start().awaitTermination()
