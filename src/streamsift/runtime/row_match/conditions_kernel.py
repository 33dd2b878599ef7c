"""Evaluate conditions of the match on words, and update the registers that they read.

A word is an integer, the bits of a double, a code or a truth value; UNKNOWN is NULL. A double is never -0.0, whose bits
are those of UNKNOWN.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit

from streamsift.physical.row_match import opcodes as op
from streamsift.runtime.arrays.dtypes import LARGEST, UNKNOWN, Float64, Int32, Int64

Word: TypeAlias = int | np.int64
NOT_TRUE, TRUE, OPEN_ROW, OVERFLOW = 0, 1, 2, 3
NULL_WORD = np.int64(UNKNOWN)
MAX_WORD = np.int64(LARGEST)
OUTSIDE, NOT_SETTLED = -1, -2


@njit(cache=True, nogil=True, inline="always")
def _without_negative_zero(value: float) -> float:
    return value + 0.0


@njit(cache=True, nogil=True)
def compare_words(comparison: Word, left: Word, right: Word) -> Word:
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
def _compare_doubles(comparison: Word, left: float, right: float) -> Word:
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
def _compare_mixed(comparison: Word, left: Word, right: float) -> Word:
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


@njit(cache=True, nogil=True, inline="always")
def _row_of(
    reach: Int64,
    registers: Int64,
    low: Word,
    high: Word,
    closed: bool,
    target: Word,
    row: Word,
    start: Word,
    base: Word,
) -> Word:
    """Return the row of a reach, OUTSIDE or NOT_SETTLED."""
    kind, argument = reach[target, 0], reach[target, 1]
    at, inside = np.int64(row), True
    if kind == op.FROM_REGISTER:
        at = registers[base + argument]
        inside = bool(at >= 0)
    elif kind == op.FROM_FIRST:
        at = np.int64(start + argument)
        inside = bool(at <= row)
    elif kind == op.FROM_LAST:
        at = np.int64(row - argument)
        inside = bool(at >= start)
    at += reach[target, 2]
    if not inside or at < low:
        at = np.int64(OUTSIDE)
    elif at >= high:
        at = np.int64(OUTSIDE) if closed else np.int64(NOT_SETTLED)
    return at


@njit(cache=True, nogil=True, inline="always")
def holds(
    code_begin: Int64,
    code: Int64,
    reach: Int64,
    constants: Int64,
    label_codes: Int64,
    target: Int32,
    variables: Int32,
    cursor: Int32,
    data: Int64,
    registers: Int64,
    words: Int64,
    doubles: Float64,
    count: Word,
    low: Word,
    high: Word,
    closed: bool,
    offset: Word,
    variable: Word,
    row: Word,
    start: Word,
    number: Word,
) -> Word:
    """Return TRUE if the condition of a variable holds for the row, which counts as bound.

    One loop over the instructions, inlined into the search: calls with arrays would take longer than an instruction.
    """
    base = (row + 1 + offset) * count
    top = -1
    at, end = code_begin[variable], code_begin[variable + 1]
    while at < end:
        op_code = code[at, 0]
        a, b = code[at, 1], code[at, 2]
        at += 1
        if op_code == op.COMPARE_VALUES:
            left = _row_of(reach, registers, low, high, closed, code[at, 2], row, start, base)
            right = _row_of(reach, registers, low, high, closed, code[at + 1, 2], row, start, base)
            top += 1
            if left >= 0 and right >= 0:
                words[top] = compare_words(a, data[code[at, 1], left], data[code[at + 1, 1], right])
            elif left == NOT_SETTLED or right == NOT_SETTLED:
                return OPEN_ROW
            else:
                words[top] = NULL_WORD
            at += 2
        elif op_code == op.VALUE:
            place = _row_of(reach, registers, low, high, closed, b, row, start, base)
            if place == NOT_SETTLED:
                return OPEN_ROW
            top += 1
            words[top] = data[a, place] if place >= 0 else NULL_WORD
        elif op_code == op.CONSTANT:
            top += 1
            words[top] = constants[a]
        elif op_code == op.REGISTER:
            top += 1
            words[top] = registers[base + a]
        elif op_code == op.COUNT_ROWS:
            top += 1
            words[top] = row - start + 1
        elif op_code == op.MATCH_NUMBER:
            top += 1
            words[top] = number
        elif op_code == op.SUM:
            top += 1
            words[top] = registers[base + a] if registers[base + b] > 0 else NULL_WORD
        elif op_code == op.AVERAGE:
            top += 1
            divisor = registers[base + b]
            words[top] = registers[base + a]
            if divisor == 0:
                words[top] = NULL_WORD
            elif code[at - 1, 3]:
                doubles[top] = _without_negative_zero(doubles[top] / divisor)
            else:
                doubles[top] = words[top] / divisor
        elif op_code == op.CLASSIFIER:
            place = _row_of(reach, registers, low, high, closed, b, row, start, base)
            top += 1
            words[top] = NULL_WORD
            if start <= place < row:
                label = target[cursor[place + offset]]
                words[top] = label_codes[variables[label]]
            elif place == row:
                words[top] = label_codes[variable]
        elif op_code == op.COMPARE:
            top -= 1
            words[top] = compare_words(a, words[top], words[top + 1])
        elif op_code == op.COMPARE_DOUBLE or op_code == op.COMPARE_MIXED:
            top -= 1
            if words[top] == NULL_WORD or words[top + 1] == NULL_WORD:
                words[top] = NULL_WORD
            elif op_code == op.COMPARE_MIXED:
                words[top] = _compare_mixed(a, words[top], doubles[top + 1])
            else:
                words[top] = _compare_doubles(a, doubles[top], doubles[top + 1])
        elif op_code == op.AND:
            top -= 1
            if words[top] == 0 or words[top + 1] == 0:
                words[top] = 0
            elif words[top] == NULL_WORD or words[top + 1] == NULL_WORD:
                words[top] = NULL_WORD
        elif op_code == op.OR:
            top -= 1
            if words[top] == 1 or words[top + 1] == 1:
                words[top] = 1
            elif words[top] == NULL_WORD or words[top + 1] == NULL_WORD:
                words[top] = NULL_WORD
        elif op_code == op.NOT:
            if words[top] != NULL_WORD:
                words[top] = 1 - words[top]
        elif op_code == op.IS_NULL:
            words[top] = np.int64(words[top] == NULL_WORD)
        elif op_code == op.CASE:
            top -= 2
            words[top] = words[top + 1] if words[top] == 1 else words[top + 2]
        elif op_code >= op.GREATEST and op_code <= op.COALESCE:
            top -= 1
            _choose(op_code, words, doubles, top)
        elif op_code >= op.NEGATE_DOUBLE and op_code != op.POWER:
            if words[top] != NULL_WORD:
                _change_double(op_code, words, doubles, top)
        elif op_code == op.NEGATE or op_code == op.ABSOLUTE:
            if words[top] != NULL_WORD and (op_code == op.NEGATE or words[top] < 0):
                words[top] = -words[top]
        elif op_code == op.TO_DOUBLE:
            if words[top] != NULL_WORD:
                scaled = np.float64(words[top])
                words[top], words[top + 1] = constants[a], constants[b]
                doubles[top] = scaled * doubles[top] / doubles[top + 1]
        elif op_code == op.SCALE:
            if words[top] != NULL_WORD:
                words[top] = _multiply(words[top], constants[a])
                if words[top] == NULL_WORD:
                    return OVERFLOW
        else:
            top -= 1
            if words[top] == NULL_WORD or words[top + 1] == NULL_WORD:
                words[top] = NULL_WORD
            elif op_code <= op.REMAINDER:
                words[top] = _integers(op_code, words[top], words[top + 1])
                if b and words[top] == NULL_WORD and op_code != op.REMAINDER:
                    return OVERFLOW
            else:
                _doubles(op_code, words, doubles, top)
    return TRUE if words[0] == 1 else NOT_TRUE


@njit(cache=True, nogil=True)
def _multiply(left: Word, right: Word) -> Word:
    """Return the product; null if it overflows."""
    if right != 0 and abs(np.int64(left)) > MAX_WORD // abs(np.int64(right)):
        return NULL_WORD
    return left * right


@njit(cache=True, nogil=True)
def _add(left: Word, right: Word) -> Word:
    """Return the sum; null if it overflows."""
    if (right > 0 and left > MAX_WORD - right) or (right < 0 and left < -MAX_WORD - right):
        return NULL_WORD
    return left + right


@njit(cache=True, nogil=True)
def _integers(code: Word, left: Word, right: Word) -> Word:
    if code == op.ADD:
        return _add(left, right)
    if code == op.SUBTRACT:
        return _add(left, -right)
    if code == op.MULTIPLY:
        return _multiply(left, right)
    if right == 0:
        return NULL_WORD
    rest = abs(np.int64(left)) % abs(np.int64(right))
    return -rest if left < 0 else rest


@njit(cache=True, nogil=True)
def _doubles(code: Word, words: Int64, doubles: Float64, top: Word) -> None:
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
    doubles[top] = _without_negative_zero(result)


@njit(cache=True, nogil=True)
def _change_double(code: Word, words: Int64, doubles: Float64, top: Word) -> None:
    value = doubles[top]
    if code == op.NEGATE_DOUBLE:
        doubles[top] = _without_negative_zero(-value)
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
            doubles[top] = _without_negative_zero(np.log(value))
    else:
        doubles[top] = np.exp(value)


@njit(cache=True, nogil=True)
def _choose(code: Word, words: Int64, doubles: Float64, top: Word) -> None:
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


@njit(cache=True, nogil=True, inline="always")
def update_registers(
    update_begin: Int64,
    update: Int32,
    plans: Int64,
    data: Int64,
    data_doubles: Float64,
    registers: Int64,
    doubles: Float64,
    count: Word,
    variable: Word,
    row: Word,
    place: Word,
) -> bool:
    """Compute the registers after a row is consumed, from those at `place`; return True if a sum overflows."""
    old, new = place * count, (place + 1) * count
    overflow = False
    for k in range(count):
        registers[new + k] = registers[old + k]
    for i in range(update_begin[variable], update_begin[variable + 1]):
        k = update[i]
        kind, column, source = plans[k, 0], plans[k, 1], plans[k, 2]
        if kind == op.LAST_ROW:
            registers[new + k] = row if source < 0 else registers[old + source]
        elif kind == op.FIRST_ROW:
            if registers[old + k] < 0 and (source < 0 or registers[old + source] >= 0):
                registers[new + k] = row
        else:
            word = np.int64(0) if column < 0 else data[column, row]
            if word == NULL_WORD:
                pass
            elif kind == op.COUNT_VALUES:
                registers[new + k] += 1
            elif kind == op.SUM_INTEGERS:
                registers[new + k] = _add(registers[old + k], word)
                overflow |= registers[new + k] == NULL_WORD
            elif kind == op.SUM_DOUBLES:
                doubles[new + k] = _without_negative_zero(doubles[old + k] + data_doubles[column, row])
            elif registers[old + k] == NULL_WORD:
                registers[new + k] = word
            elif kind == op.MINIMUM:
                registers[new + k] = min(registers[old + k], word)
            elif kind == op.MAXIMUM:
                registers[new + k] = max(registers[old + k], word)
            else:
                value = data_doubles[column, row]
                is_less = _is_less(value, doubles[old + k])
                if is_less == (kind == op.MINIMUM_DOUBLE) and value != doubles[old + k]:
                    registers[new + k] = word
    return overflow
