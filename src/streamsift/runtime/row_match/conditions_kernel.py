"""Apply operators to words: what conditions of the match are evaluated with.

A word is an integer, the bits of a double, a code or a truth value; UNKNOWN is NULL. A double is never -0.0, whose bits
are those of UNKNOWN.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit

from streamsift.physical.row_match import opcodes as op
from streamsift.runtime.arrays.dtypes import LARGEST, UNKNOWN, Float64, Int64

Word: TypeAlias = int | np.int64
NOT_TRUE, TRUE, OPEN_ROW, OVERFLOW = 0, 1, 2, 3
NULL_WORD = np.int64(UNKNOWN)
MAX_WORD = np.int64(LARGEST)
OUTSIDE, NOT_SETTLED = -1, -2


@njit(cache=True, nogil=True, inline="always")
def without_negative_zero(value: float) -> float:
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
def compare_doubles(comparison: Word, left: float, right: float) -> Word:
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
def compare_mixed(comparison: Word, left: Word, right: float) -> Word:
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
def row_of(
    kind: Word,
    argument: Word,
    shift: Word,
    anchored: Word,
    low: Word,
    high: Word,
    closed: bool,
    row: Word,
    start: Word,
) -> Word:
    """Return the row of a reach, OUTSIDE or NOT_SETTLED; `anchored` is the row of its register."""
    at, inside = np.int64(row), True
    if kind == op.FROM_REGISTER:
        at = np.int64(anchored)
        inside = bool(at >= 0)
    elif kind == op.FROM_FIRST:
        at = np.int64(start + argument)
        inside = bool(at <= row)
    elif kind == op.FROM_LAST:
        at = np.int64(row - argument)
        inside = bool(at >= start)
    at += shift
    if not inside or at < low:
        return np.int64(OUTSIDE)
    if at >= high:
        return np.int64(OUTSIDE) if closed else np.int64(NOT_SETTLED)
    return at


@njit(cache=True, nogil=True)
def multiply(left: Word, right: Word) -> Word:
    """Return the product; null if it overflows."""
    if right != 0 and abs(np.int64(left)) > MAX_WORD // abs(np.int64(right)):
        return NULL_WORD
    return left * right


@njit(cache=True, nogil=True)
def add(left: Word, right: Word) -> Word:
    """Return the sum; null if it overflows."""
    if (right > 0 and left > MAX_WORD - right) or (right < 0 and left < -MAX_WORD - right):
        return NULL_WORD
    return left + right


@njit(cache=True, nogil=True)
def integers(code: Word, left: Word, right: Word) -> Word:
    if code == op.ADD:
        return add(left, right)
    if code == op.SUBTRACT:
        return add(left, -right)
    if code == op.MULTIPLY:
        return multiply(left, right)
    if right == 0:
        return NULL_WORD
    rest = abs(np.int64(left)) % abs(np.int64(right))
    return -rest if left < 0 else rest


@njit(cache=True, nogil=True)
def combine_doubles(code: Word, words: Int64, doubles: Float64, top: Word) -> None:
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
    doubles[top] = without_negative_zero(result)


@njit(cache=True, nogil=True)
def change_double(code: Word, words: Int64, doubles: Float64, top: Word) -> None:
    value = doubles[top]
    if code == op.NEGATE_DOUBLE:
        doubles[top] = without_negative_zero(-value)
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
            doubles[top] = without_negative_zero(np.log(value))
    else:
        doubles[top] = np.exp(value)


@njit(cache=True, nogil=True)
def choose(code: Word, words: Int64, doubles: Float64, top: Word) -> None:
    """Replace two words by the one that GREATEST, LEAST or COALESCE returns: nulls are skipped, NaN is greatest."""
    if words[top] == NULL_WORD:
        words[top] = words[top + 1]
    elif words[top + 1] == NULL_WORD or code == op.COALESCE:
        return
    elif code == op.GREATEST:
        words[top] = max(words[top], words[top + 1])
    elif code == op.LEAST:
        words[top] = min(words[top], words[top + 1])
    elif is_less(doubles[top], doubles[top + 1]) == (code == op.GREATEST_DOUBLE):
        words[top] = words[top + 1]


@njit(cache=True, nogil=True)
def is_less(left: float, right: float) -> bool:
    """Compare doubles as Spark sorts them: NaN last."""
    return left < right or (np.isnan(right) and not np.isnan(left))
