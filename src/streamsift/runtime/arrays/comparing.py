"""Compare two codes: the operators of predicates as numbers that kernels read."""

from __future__ import annotations

from numba import njit

from streamsift.runtime.arrays.dtypes import UNKNOWN

EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)


@njit(cache=True, nogil=True)
def holds(operator: int, earlier: int, this: int) -> bool:
    """Whether `earlier operator this` is true of two codes; with an unknown one it is not."""
    if earlier == UNKNOWN or this == UNKNOWN:
        return False
    if operator == EQUAL:
        return earlier == this
    if operator == UNEQUAL:
        return earlier != this
    if operator == LESS:
        return earlier < this
    if operator == LESS_EQUAL:
        return earlier <= this
    if operator == GREATER:
        return earlier > this
    return earlier >= this


OPERATORS = {
    "=": EQUAL,
    "!=": UNEQUAL,
    "<": LESS,
    "<=": LESS_EQUAL,
    ">": GREATER,
    ">=": GREATER_EQUAL,
}
