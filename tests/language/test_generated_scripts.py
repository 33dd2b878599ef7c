"""Test that generated scripts survive printing and parsing, and bind to their schema."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given

from strategies import COLUMNS, Event, bindings, flat_queries, queries, streams
from streamsift.language import parse, print_script
from streamsift.language.syntax import Event as PatternEvent
from streamsift.language.syntax import Script, Seq
from streamsift.logical.binder import bind, sketch
from streamsift.logical.bound import ROOT_SCOPE

SCHEMA = pa.schema([(name, pa.type_for_alias(data_type)) for name, data_type in COLUMNS.items()])


def assert_sound(script: Script, binding: dict[str, str]) -> None:
    text = print_script(script)
    parsed = parse(text)
    assert parsed == script, text
    sketch(parsed)
    query = bind(parsed, SCHEMA, **binding)  # type: ignore[arg-type]
    assert query == bind(script, SCHEMA, **binding)  # type: ignore[arg-type]
    assert any(variable.scope == ROOT_SCOPE for variable in query.variables)


@given(queries(), bindings())
def test_any_script(script: Script, binding: dict[str, str]) -> None:
    assert_sound(script, binding)


@given(queries(kleene_pairs=True, max_variables=8, max_depth=4), bindings())
def test_large_scripts(script: Script, binding: dict[str, str]) -> None:
    assert_sound(script, binding)


@given(queries(windows=False, aggregates=False, ranking=False), bindings())
def test_scripts_without_windows(script: Script, binding: dict[str, str]) -> None:
    assert script.statement.window is None
    assert_sound(script, binding)


@given(flat_queries(), bindings())
def test_flat_scripts(script: Script, binding: dict[str, str]) -> None:
    assert isinstance(script.statement.pattern, Seq | PatternEvent)
    assert not script.definitions
    assert_sound(script, binding)


@given(streams())
def test_streams_fit_their_columns(rows: list[Event]) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    assert table.num_rows == len(rows) <= 14
    assert table.column("t").null_count == table.column("seq").null_count == 0
