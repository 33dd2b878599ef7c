"""Evaluate the parts of conditions that read the row alone, and pack them as bits of one word, or several, per row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from streamsift.logical.bound import Column, Constant, Expr, Operation
from streamsift.logical.row_match.bound import RowConstant, RowExpr, RowOperation, RowValue
from streamsift.physical.row_match import RowPlan
from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.expressions.columns import truths
from streamsift.runtime.expressions.evaluate import Rows, evaluate
from streamsift.runtime.row_match.order import SortedRows, shifted

VARIABLES_PER_WORD = 64


def condition_bits(plan: RowPlan, rows: SortedRows) -> tuple[Int64, int]:
    """Return the words of the rows, and how many words a row has: bit v is the part of the row of variable v."""
    words = 1 + (len(plan.conditions) - 1) // VARIABLES_PER_WORD
    bits = np.empty(rows.table.num_rows * words, np.int64)
    always = np.zeros(words, np.int64)
    for variable, condition in enumerate(plan.conditions):
        if not condition.of_row:
            always[variable // VARIABLES_PER_WORD] |= np.int64(-(2**63) if variable % 64 == 63 else 1 << variable % 64)
    bits.reshape(-1, words)[:] = always
    shifts = _Shifts(rows)
    masks: dict[RowExpr, Bool] = {}
    for variable, condition in enumerate(plan.conditions):
        if not condition.of_row:
            continue
        holds = None
        for part in condition.of_row:
            if part not in masks:
                masks[part] = shifts.mask(part, plan.bound.text)
            holds = masks[part] if holds is None else holds & masks[part]
        assert holds is not None
        _set_bits(bits, words, variable // VARIABLES_PER_WORD, variable % VARIABLES_PER_WORD, holds)
    return bits, words


@njit(cache=True, nogil=True)
def _set_bits(bits: Int64, words: int, word: int, bit: int, holds: Bool) -> None:
    for row in range(holds.size):
        bits[row * words + word] |= np.int64(holds[row]) << np.int64(bit)


class _Shifts:
    """The columns that conditions read, each once for each distance."""

    def __init__(self, rows: SortedRows) -> None:
        self._rows = rows
        self._columns: dict[tuple[str, int], pa.Array] = {}

    def mask(self, part: RowExpr, text: str) -> Bool:
        """Return a mask of the rows for which a part is true."""
        array = evaluate(expression(part), Rows(self._column, self._rows.table.num_rows, text))
        if pa.types.is_null(array.type):
            return np.zeros(len(array), np.bool_)
        return truths(pc.fill_null(array, False) if array.null_count else array)

    def _column(self, shift: int, name: str) -> pa.Array:
        if (name, shift) not in self._columns:
            self._columns[name, shift] = shifted(self._rows.column(name), shift, self._rows.bounds)
        return self._columns[name, shift]


def expression(part: RowExpr) -> Expr:
    """Return an expression over columns; the variable of a column is its distance from the row."""
    match part:
        case RowValue(column=column, reach=reach, kind=kind):
            return Column(reach.shift, column, kind, span=part.span)
        case RowConstant(value=value, kind=kind):
            return Constant(value, kind, span=part.span)
        case RowOperation(op=op, operands=operands, kind=kind):
            return Operation(op, tuple(map(expression, operands)), kind, span=part.span)
    raise TypeError(part)
