"""Results have the documented schema for any input, and batches of bounded size."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.runtime import execute, output_schema
from streamsift.runtime.matches import output

TABLE = pa.table(
    {
        "ts": pa.array([1, 2, 3], pa.timestamp("ms", "Europe/Paris")),
        "order": pa.array([1, 2, 3], pa.int16()),
        "d": pa.array([Decimal("1.5"), None, Decimal("2.5")], pa.decimal128(10, 2)),
        "u": pa.array([1, 2, 2**64 - 1], pa.uint64()),
        "f": pa.array([1.5, None, 2.5], pa.float32()),
        "s": pa.array(["a", None, "b"]).dictionary_encode(),
        "list": pa.array([[1], None, []], pa.list_(pa.int8())),
    }
)


def plan_of(text: str, table: pa.Table) -> object:
    return ss.query(text).plan(table.schema, "ts", None, None)


def test_whole_events_keep_their_types_and_values() -> None:
    result = ss.query("x; y WITHIN 1 ms").run_local(TABLE, time="ts")
    assert result.schema.field("x").type == pa.struct(list(TABLE.schema))
    assert result.column("x").to_pylist() == TABLE.to_pylist()[:2]
    assert result.column("y").to_pylist() == TABLE.to_pylist()[1:]
    assert result.schema.names == ["x", "y", "match_start", "match_end"]
    assert result.column("match_start").to_pylist() == TABLE.column("ts").to_pylist()[:2]
    assert result.schema.field("match_end").type == TABLE.schema.field("ts").type


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("x.order", TABLE.schema.field("order").type),
        ("x.f", TABLE.schema.field("f").type),
        ("x.d", pa.decimal128(10, 2)),
        ("x.d * y.d", pa.decimal128(21, 4)),
        ("x.u", pa.uint64()),
        ("x.s", TABLE.schema.field("s").type),
        ("x.u + 0", pa.decimal128(21, 0)),
        ("x.ts", pa.timestamp("ms", "Europe/Paris")),
        ("y.ts - x.ts", pa.duration("ms")),
        ("x.list", pa.list_(pa.int8())),
        ("x.f / 2", pa.float64()),
        ("x.order > 1", pa.bool_()),
        ("NULL", pa.null()),
        ("3", pa.int64()),
    ],
)
def test_the_schema_is_the_same_with_and_without_rows(item: str, kind: pa.DataType) -> None:
    query = ss.query(f"x; y RETURN {item} AS item")
    for table in (TABLE, TABLE.slice(0, 0)):
        plan = query.plan(table.schema, "ts", None, None)
        assert output_schema(plan.query) == pa.schema({"item": kind})
        result = query.run_local(table, time="ts")
        assert result.schema == pa.schema({"item": kind})
        result.validate(full=True)
    assert query.run_local(TABLE, time="ts").num_rows == 3


def test_no_match_gives_no_batch() -> None:
    assert list(execute(plan_of("x; y WITHIN 0 s", TABLE), TABLE)) == []


def test_a_batch_too_long_for_arrow_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = output._batch

    def limited(*arguments: object) -> pa.RecordBatch:
        if len(arguments[3]) > 1:  # type: ignore[arg-type]
            raise pa.ArrowInvalid("offset overflow")
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(output, "_batch", limited)
    batches = list(execute(plan_of("x; y", TABLE), TABLE))
    assert [batch.num_rows for batch in batches] == [1, 1, 1]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.date64()])
def test_the_bound_time_keeps_its_type(kind: pa.DataType) -> None:
    table = pa.table({"ts": pa.array([0, 86_400_000] if kind == pa.date64() else [0, 1], kind)})
    result = ss.query("x; y RETURN y.t").run_local(table, time="ts")
    assert result.column("y_t").combine_chunks().equals(table.column("ts").combine_chunks().slice(1))
