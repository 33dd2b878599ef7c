"""Turn columns and constants into the words that conditions of the match read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.physical.row_match import RowPlan, Source, WordKind
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int64
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import fixed_width, integers, nulls, plain
from streamsift.runtime.row_match.order import SortedRows


def condition_words(plan: RowPlan, rows: SortedRows) -> tuple[Int64, Int64, Int64]:
    """Return the words of the columns (one row each), of the constants, and of the labels as strings."""
    sources, constants = plan.match_code.sources, plan.match_code.constants
    data = np.empty((max(1, len(sources)), rows.table.num_rows if sources else 0), np.int64)
    texts = [number for number, source in enumerate(sources) if source.word.kind is WordKind.TEXT]
    for number, source in enumerate(sources):
        if number not in texts:
            data[number] = _words(source, rows.column(source.column))
    words = np.zeros(max(1, len(constants)), np.int64)
    words[: len(constants)] = [_constant(value) for value in constants]
    labels = np.zeros(len(plan.bound.labels), np.int64)
    strings = [value for value in constants if isinstance(value, str)]
    if texts or strings:
        columns = [rows.column(sources[number].column) for number in texts]
        together = codes([*columns, pa.array(strings, pa.string()), pa.array(plan.bound.labels, pa.string())])
        for number, coded in zip(texts, together, strict=False):
            data[number] = coded
        of_strings = iter(together[-2])
        for number, value in enumerate(constants):
            if isinstance(value, str):
                words[number] = next(of_strings)
        labels = np.ascontiguousarray(together[-1])
    return data, words, labels


def _constant(value: int | float | str) -> int:
    if isinstance(value, float):
        return int(np.array([value + 0.0]).view(np.int64)[0])
    return value if isinstance(value, int) else 0


def _words(source: Source, array: pa.Array) -> Int64:
    array = plain(array)
    missing = nulls(array)
    if source.word.kind is WordKind.DOUBLE:
        doubles = fixed_width(array.cast(pa.float64()), np.dtype(np.float64)) + 0.0  # without -0.0
        values: Int64 | None = doubles.view(np.int64)
    elif source.word.kind is WordKind.PRESENT:
        values = np.zeros(len(array), np.int64)
    else:
        values = _integers(array)
    if values is None or _holds_unknown(values, missing, source):
        raise BadInputError(
            f"column `{source.column}` has values of more than 64 bits, which a condition that joins rows cannot use\n"
            "Hint: cast the column to a type with fewer digits."
        )
    return values if missing is None else np.where(missing, UNKNOWN, values)


def _integers(array: pa.Array) -> Int64 | None:
    if not pa.types.is_uint64(array.type):
        return integers(array)
    values = fixed_width(array, np.dtype(np.int64))
    missing = nulls(array)
    fits = values >= 0 if missing is None else (values >= 0) | missing
    return values if fits.all() else None


def _holds_unknown(values: Int64, missing: np.ndarray | None, source: Source) -> bool:
    if source.word.kind is WordKind.DOUBLE or not values.size:
        return False
    present = values if missing is None else values[~missing]
    return bool(present.size and present.min() == UNKNOWN)
