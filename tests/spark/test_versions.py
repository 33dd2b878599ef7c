"""Check that Streamsift uses only what PySpark 4.0 has, by the `versionadded` notes of the installed PySpark.

Notes exist for names, not for arguments: `make test-matrix` runs the Spark tests on the oldest and the newest version.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import Column, DataFrame, GroupedData, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

SOURCE = Path(__file__).resolve().parents[2] / "src" / "streamsift"
OLDEST = (4, 0)
PUBLIC = {
    "pyspark",
    "pyspark.errors",
    "pyspark.sql",
    "pyspark.sql.functions",
    "pyspark.sql.streaming.query",
    "pyspark.sql.streaming.readwriter",
    "pyspark.sql.streaming.stateful_processor",
    "pyspark.sql.types",
    "pyspark.sql.udtf",
}
INTERNAL = {"pyspark.sql.conversion": {"spark/table_function.py"}}  # the same in 4.0 to 4.3
GUARDED = {"transformWithState": {"spark/stream/run.py"}}  # else transformWithStateInPandas
OWNERS = (F, DataFrame, GroupedData, Column, SparkSession, Window, StatefulProcessorHandle, ValueState, MapState)


def added_in(thing: object) -> tuple[int, int]:
    note = re.search(r"\.\. versionadded:: ?(\d+)\.(\d+)", getattr(thing, "__doc__", None) or "")
    return (int(note[1]), int(note[2])) if note else (0, 0)


def uses() -> Iterator[tuple[str, ast.AST]]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path.relative_to(SOURCE).as_posix(), node


def test_modules_of_pyspark_are_public() -> None:
    imported = {
        (node.module, module)
        for module, node in uses()
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pyspark"
    }
    assert imported
    assert {(name, module) for name, module in imported if name not in PUBLIC} == {
        (name, module) for name, modules in INTERNAL.items() for module in modules
    }


def test_names_of_pyspark_are_in_the_oldest_version() -> None:
    newer: dict[str, set[str]] = {}
    for module, node in uses():
        things: list[tuple[str, object]] = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pyspark":
            home = importlib.import_module(node.module or "")
            things = [(alias.name, getattr(home, alias.name, None)) for alias in node.names]
        elif isinstance(node, ast.Attribute) and module.startswith("spark/"):
            things = [(node.attr, getattr(owner, node.attr, None)) for owner in OWNERS]
        for name, thing in things:
            if added_in(thing) > OLDEST:
                newer.setdefault(name, set()).add(module)
    assert newer == {name: modules for name, modules in GUARDED.items() if hasattr(GroupedData, name)}


def test_version_notes_exist() -> None:
    assert added_in(F.arrow_udf) == (4, 1) if hasattr(F, "arrow_udf") else added_in(F.pandas_udf) == (2, 3)
