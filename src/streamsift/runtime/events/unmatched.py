"""Warn about classes of a pattern that no row belongs to, which are often misspelled."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import UnmatchedClassWarning, nearest, warn
from streamsift.logical.bound import BoundQuery, ClassRule
from streamsift.runtime.expressions.columns import plain

MAX_TYPES = 1000  # compared with the name of a class


def warn_unmatched(queries: Iterable[BoundQuery], table: pa.Table) -> None:
    """Warn once for each class, found by name in the type column, that has no row in a table that is not empty.

    The search for a class stops at its first row, so only rare and missing classes cost a pass over the column.
    """
    if not table.num_rows:
        return
    typed = dict.fromkeys(
        (query.binding.type, variable.event_class.name)
        for query in queries
        for variable in query.variables
        if variable.event_class.rule is ClassRule.TYPE
    )
    for column, name in typed:
        assert column is not None
        if not any(_contains(chunk, name) for chunk in table[column].chunks):
            warn(f"class `{name}` matches no row{_suggestion(name, table[column])}", UnmatchedClassWarning)


def _contains(types: pa.Array, name: str) -> bool:
    if pa.types.is_null(types.type):
        return False
    if isinstance(types, pa.DictionaryArray):
        code = _index(plain(types.dictionary), name)
        return code >= 0 and _index(types.indices, code) >= 0
    return _index(plain(types), name) >= 0


def _index(values: pa.Array, value: str | int) -> int:
    """Return the first index of a value, or -1."""
    if pa.types.is_string_view(values.type):  # Arrow cannot search these
        values = values.cast(pa.string())
    return int(pc.index(values, pa.scalar(value, values.type)).as_py())


def _suggestion(name: str, column: pa.ChunkedArray) -> str:
    types = [each for each in pc.unique(column).to_pylist()[:MAX_TYPES] if each is not None]
    hint = nearest(name, types)
    return f"; {hint}" if hint.startswith("did you mean") else ""
