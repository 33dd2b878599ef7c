"""Evaluate conditions of the match on words, and update the registers that they read.

A word is an integer, the bits of a double, a code or a truth value; UNKNOWN is NULL. A double is never -0.0, whose bits
are those of UNKNOWN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from streamsift.physical.row_match import opcodes as op
from streamsift.runtime.arrays.dtypes import LARGEST, UNKNOWN, Float64, Int64

if TYPE_CHECKING:
    from streamsift.runtime.row_match.kernel import Partition, Program, Rows, Stack

NOT_TRUE, TRUE, OPEN_ROW, OVERFLOW = 0, 1, 2, 3
NULL_WORD = np.int64(UNKNOWN)
MAX_WORD = np.int64(LARGEST)
OUTSIDE, NOT_SETTLED = -1, -2


@njit(cache=True, nogil=True, inline="always")
def _null_if_nan(value: float) -> float:
    return value + 0.0  # turn -0.0 into 0.0


@njit(cache=True, nogil=True)
def compare_words(comparison: int, left: int, right: int) -> int:
    """Compare two words that sort like their values; null if one of them is."""
    if left == NULL_WORD or right == NULL_WORD:
        return NULL_WORD
    if comparison == op.EQUAL:
        return np.int64(left == right)
    if comparison == op.UNEQUAL:
        return np.int64(left != right)
    if comparison == op.LESS:
        return np.int64(left < right)
    if comparison == op.LESS_EQUAL:
        return np.int64(left <= right)
    if comparison == op.GREATER:
        return np.int64(left > right)
    return np.int64(left >= right)


@njit(cache=True, nogil=True)
def _compare_doubles(comparison: int, left: float, right: float) -> int:
    """Compare two doubles that are not null; a comparison with NaN is null."""
    if np.isnan(left) or np.isnan(right):
        return NULL_WORD
    if comparison == op.EQUAL:
        return np.int64(left == right)
    if comparison == op.UNEQUAL:
        return np.int64(left != right)
    if comparison == op.LESS:
        return np.int64(left < right)
    if comparison == op.LESS_EQUAL:
        return np.int64(left <= right)
    if comparison == op.GREATER:
        return np.int64(left > right)
    return np.int64(left >= right)


@njit(cache=True, nogil=True)
def _compare_mixed(comparison: int, left: int, right: float) -> int:
    """Compare an integer with a double exactly: with its floor as an integer, then with the rest."""
    if np.isnan(right):
        return NULL_WORD
    if right >= 2.0**63:
        sign = np.int64(-1)
    elif right < -(2.0**63):
        sign = np.int64(1)
    else:
        floor = np.floor(right)
        whole = np.int64(floor)
        sign = np.int64(0)
        if left > whole:
            sign = np.int64(1)
        elif left < whole or right > floor:
            sign = np.int64(-1)
    return compare_words(comparison, sign, np.int64(0))


@njit(cache=True, nogil=True)
def _row_of(
    program: Program, stack: Stack, part: Partition, reach: int, row: int, start: int, base: int
) -> tuple[int, int]:
    """Return the row of a reach, OUTSIDE or NOT_SETTLED; and the row before it is shifted."""
    kind, argument = program.reach[reach, 0], program.reach[reach, 1]
    at = np.int64(row)
    if kind == op.FROM_REGISTER:
        at = stack.registers[base + argument]
        if at < 0:
            return OUTSIDE, OUTSIDE
    elif kind == op.FROM_FIRST:
        at = np.int64(start + argument)
        if at > row:
            return OUTSIDE, OUTSIDE
    elif kind == op.FROM_LAST:
        at = np.int64(row - argument)
        if at < start:
            return OUTSIDE, OUTSIDE
    shifted = at + program.reach[reach, 2]
    if shifted < part.low:
        return OUTSIDE, at
    if shifted >= part.high:
        return (OUTSIDE if part.closed else NOT_SETTLED), at
    return shifted, at


@njit(cache=True, nogil=True)
def holds(
    program: Program, rows: Rows, stack: Stack, part: Partition, variable: int, row: int, start: int, number: int
) -> int:
    """Return TRUE if the condition of a variable holds for the row, which counts as bound.

    One loop over the instructions: a function for each would cost more than the instruction.
    """
    words = stack.words
    doubles = words.view(np.float64)
    base = (row + 1 + part.number) * program.registers.shape[0]
    top = -1
    at, end = program.code_begin[variable], program.code_begin[variable + 1]
    while at < end:
        code = program.code[at, 0]
        a, b = program.code[at, 1], program.code[at, 2]
        at += 1
        if code == op.COMPARE_VALUES:
            left, _ = _row_of(program, stack, part, program.code[at, 2], row, start, base)
            right, _ = _row_of(program, stack, part, program.code[at + 1, 2], row, start, base)
            top += 1
            if left >= 0 and right >= 0:
                words[top] = compare_words(
                    a, rows.data[program.code[at, 1], left], rows.data[program.code[at + 1, 1], right]
                )
            elif left == NOT_SETTLED or right == NOT_SETTLED:
                return OPEN_ROW
            else:
                words[top] = NULL_WORD
            at += 2
        elif code == op.VALUE:
            place, _ = _row_of(program, stack, part, b, row, start, base)
            if place == NOT_SETTLED:
                return OPEN_ROW
            top += 1
            words[top] = rows.data[a, place] if place >= 0 else NULL_WORD
        elif code == op.CONSTANT:
            top += 1
            words[top] = program.constants[a]
        elif code == op.REGISTER:
            top += 1
            words[top] = stack.registers[base + a]
        elif code == op.COUNT_ROWS:
            top += 1
            words[top] = row - start + 1
        elif code == op.MATCH_NUMBER:
            top += 1
            words[top] = number
        elif code == op.SUM:
            top += 1
            words[top] = stack.registers[base + a] if stack.registers[base + b] > 0 else NULL_WORD
        elif code == op.AVERAGE:
            top += 1
            divisor = stack.registers[base + b]
            words[top] = stack.registers[base + a]
            if divisor == 0:
                words[top] = NULL_WORD
            elif program.code[at - 1, 3]:
                doubles[top] = _null_if_nan(doubles[top] / divisor)
            else:
                doubles[top] = words[top] / divisor
        elif code == op.CLASSIFIER:
            place, _ = _row_of(program, stack, part, b, row, start, base)
            top += 1
            words[top] = NULL_WORD
            if start <= place < row:
                label = program.target[stack.cursor[place + part.number]]
                words[top] = program.label_codes[program.variable[label]]
            elif place == row:
                words[top] = program.label_codes[variable]
        elif code == op.COMPARE:
            top -= 1
            words[top] = compare_words(a, words[top], words[top + 1])
        elif code == op.COMPARE_DOUBLE or code == op.COMPARE_MIXED:
            top -= 1
            if words[top] == NULL_WORD or words[top + 1] == NULL_WORD:
                words[top] = NULL_WORD
            elif code == op.COMPARE_MIXED:
                words[top] = _compare_mixed(a, words[top], doubles[top + 1])
            else:
                words[top] = _compare_doubles(a, doubles[top], doubles[top + 1])
        elif code == op.AND:
            top -= 1
            if words[top] == 0 or words[top + 1] == 0:
                words[top] = 0
            elif words[top] == NULL_WORD or words[top + 1] == NULL_WORD:
                words[top] = NULL_WORD
        elif code == op.OR:
            top -= 1
            if words[top] == 1 or words[top + 1] == 1:
                words[top] = 1
            elif words[top] == NULL_WORD or words[top + 1] == NULL_WORD:
                words[top] = NULL_WORD
        elif code == op.NOT:
            if words[top] != NULL_WORD:
                words[top] = 1 - words[top]
        elif code == op.IS_NULL:
            words[top] = np.int64(words[top] == NULL_WORD)
        elif code == op.CASE:
            top -= 2
            words[top] = words[top + 1] if words[top] == 1 else words[top + 2]
        elif code >= op.GREATEST and code <= op.COALESCE:
            top -= 1
            _choose(code, words, doubles, top)
        elif code >= op.NEGATE_DOUBLE and code != op.POWER:
            if words[top] != NULL_WORD:
                _change_double(code, words, doubles, top)
        elif code == op.NEGATE or code == op.ABSOLUTE:
            if words[top] != NULL_WORD and (code == op.NEGATE or words[top] < 0):
                words[top] = -words[top]
        elif code == op.TO_DOUBLE:
            if words[top] != NULL_WORD:
                scaled = np.float64(words[top])
                top_view, bottom = _double(program.constants[a]), _double(program.constants[b])
                doubles[top] = scaled * top_view / bottom
        elif code == op.SCALE:
            if words[top] != NULL_WORD:
                words[top] = _multiply(words[top], program.constants[a])
                if words[top] == NULL_WORD:
                    return OVERFLOW
        else:
            top -= 1
            if words[top] == NULL_WORD or words[top + 1] == NULL_WORD:
                words[top] = NULL_WORD
            elif code <= op.REMAINDER:
                words[top] = _integers(code, words[top], words[top + 1])
                if b and words[top] == NULL_WORD and code != op.REMAINDER:
                    return OVERFLOW
            else:
                _doubles(code, words, doubles, top)
    return TRUE if words[0] == 1 else NOT_TRUE


@njit(cache=True, nogil=True)
def _double(word: int) -> float:
    box = np.empty(1, np.int64)
    box[0] = word
    return box.view(np.float64)[0]


@njit(cache=True, nogil=True)
def _multiply(left: int, right: int) -> int:
    """Return the product; null if it overflows."""
    if right != 0 and abs(left) > MAX_WORD // abs(right):
        return NULL_WORD
    return left * right


@njit(cache=True, nogil=True)
def _add(left: int, right: int) -> int:
    """Return the sum; null if it overflows."""
    if (right > 0 and left > MAX_WORD - right) or (right < 0 and left < -MAX_WORD - right):
        return NULL_WORD
    return left + right


@njit(cache=True, nogil=True)
def _integers(code: int, left: int, right: int) -> int:
    if code == op.ADD:
        return _add(left, right)
    if code == op.SUBTRACT:
        return _add(left, -right)
    if code == op.MULTIPLY:
        return _multiply(left, right)
    if right == 0:
        return NULL_WORD
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


@njit(cache=True, nogil=True)
def _doubles(code: int, words: Int64, doubles: Float64, top: int) -> None:
    left, right = doubles[top], doubles[top + 1]
    if code == op.ADD_DOUBLE:
        result = left + right
    elif code == op.SUBTRACT_DOUBLE:
        result = left - right
    elif code == op.MULTIPLY_DOUBLE:
        result = left * right
    elif code == op.POWER:
        result = np.power(left, right)
        undefined = np.isnan(result) and not np.isnan(left) and not np.isnan(right)
        if undefined or (left == 0.0 and right < 0.0):
            words[top] = NULL_WORD
            return
    else:
        if right == 0.0:
            words[top] = NULL_WORD
            return
        result = left / right if code == op.DIVIDE_DOUBLE else np.fmod(left, right)
    doubles[top] = _null_if_nan(result)


@njit(cache=True, nogil=True)
def _change_double(code: int, words: Int64, doubles: Float64, top: int) -> None:
    value = doubles[top]
    if code == op.NEGATE_DOUBLE:
        doubles[top] = _null_if_nan(-value)
    elif code == op.ABSOLUTE_DOUBLE:
        doubles[top] = abs(value)
    elif code == op.SQUARE_ROOT:
        if value < 0.0:
            words[top] = NULL_WORD
        else:
            doubles[top] = np.sqrt(value)
    elif code == op.LOGARITHM:
        if value <= 0.0:
            words[top] = NULL_WORD
        else:
            doubles[top] = _null_if_nan(np.log(value))
    else:
        doubles[top] = np.exp(value)


@njit(cache=True, nogil=True)
def _choose(code: int, words: Int64, doubles: Float64, top: int) -> None:
    """Replace two words by the one that GREATEST, LEAST or COALESCE returns: nulls are skipped, NaN is greatest."""
    if words[top] == NULL_WORD:
        words[top] = words[top + 1]
    elif words[top + 1] == NULL_WORD or code == op.COALESCE:
        return
    elif code == op.GREATEST:
        words[top] = max(words[top], words[top + 1])
    elif code == op.LEAST:
        words[top] = min(words[top], words[top + 1])
    elif _is_less(doubles[top], doubles[top + 1]) == (code == op.GREATEST_DOUBLE):
        words[top] = words[top + 1]


@njit(cache=True, nogil=True)
def _is_less(left: float, right: float) -> bool:
    """Compare doubles as Spark sorts them: NaN last."""
    return left < right or (np.isnan(right) and not np.isnan(left))


@njit(cache=True, nogil=True)
def update_registers(
    program: Program, rows: Rows, registers: Int64, variable: int, row: int, place: int
) -> bool:
    """Compute the registers after a row is consumed, from those at `place`; return True if a sum overflows."""
    count = program.registers.shape[0]
    old, new = place * count, (place + 1) * count
    for k in range(count):
        registers[new + k] = registers[old + k]
    doubles = registers.view(np.float64)
    for i in range(program.update_begin[variable], program.update_begin[variable + 1]):
        k = program.update[i]
        kind, column, source = program.registers[k, 0], program.registers[k, 1], program.registers[k, 2]
        if kind == op.LAST_ROW:
            registers[new + k] = row if source < 0 else registers[old + source]
            continue
        if kind == op.FIRST_ROW:
            if registers[old + k] < 0 and (source < 0 or registers[old + source] >= 0):
                registers[new + k] = row
            continue
        word = np.int64(0) if column < 0 else rows.data[column, row]
        if word == NULL_WORD:
            continue
        if kind == op.COUNT_VALUES:
            registers[new + k] += 1
        elif kind == op.SUM_INTEGERS:
            registers[new + k] = _add(registers[old + k], word)
            if registers[new + k] == NULL_WORD:
                return True
        elif kind == op.SUM_DOUBLES:
            doubles[new + k] = _null_if_nan(doubles[old + k] + rows.data.view(np.float64)[column, row])
        elif registers[old + k] == NULL_WORD:
            registers[new + k] = word
        elif kind == op.MINIMUM:
            registers[new + k] = min(registers[old + k], word)
        elif kind == op.MAXIMUM:
            registers[new + k] = max(registers[old + k], word)
        else:
            value = rows.data.view(np.float64)[column, row]
            if _is_less(value, doubles[old + k]) == (kind == op.MINIMUM_DOUBLE) and value != doubles[old + k]:
                registers[new + k] = word
    return False
