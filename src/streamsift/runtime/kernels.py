"""Columns of a stream in, its order, groups and limits out: the loops over events, compiled once by Numba.

Every array has one dtype for every query (int32 for rows, ranks and positions, int64 for codes and offsets), so
no query ever waits for a compiler; the compiled code is cached on disk. Only the two-pointer kernels see times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

UInt8 = NDArray[np.uint8]
Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Ticks = Int64 | Float64  # times: one kernel each for whole and for real numbers
Bool = NDArray[np.bool_]
Places = TypeVar("Places", Int32, Int64)

UNKNOWN = np.iinfo(np.int64).min  # the code of null and NaN: no comparison with it holds
LARGEST = np.iinfo(np.int64).max


def entries_from(places: Int32, bounds: Sequence[int] | Int32 | Int64) -> Int64:
    """For each bound the first entry that lies there or later; places ascend.

    Bounds are made 32 bits wide, or NumPy would make all places 64 bits wide for each search.
    """
    return np.searchsorted(places, np.asarray(bounds, np.int32))


def distinct(values: Places) -> Places:
    """Each value once, in ascending order. NumPy's own hashes them: where most differ, ten times as long."""
    ascending = np.sort(values)
    is_first = np.ones(ascending.size, np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return ascending[is_first]


@njit(cache=True, nogil=True)
def group_entries(codes: Int32, groups: int) -> tuple[Int64, Int32]:
    """Counting sort: (offsets [groups + 1], places [kept]).

    The places of code g, ascending, are offsets[g]:offsets[g + 1]. Code -1 is no group: its places are left out.
    """
    # Code c is counted at c + 2, so that after the sums c + 1 is where it starts. No branch on -1: it is sorted too.
    starts = np.zeros(groups + 2, np.int64)
    for i in range(codes.size):
        starts[codes[i] + 2] += 1
    for slot in range(1, groups + 2):
        starts[slot] += starts[slot - 1]
    places = np.empty(codes.size, np.int32)
    for i in range(codes.size):
        slot = codes[i] + 1
        places[starts[slot]] = i
        starts[slot] += 1
    left_out = starts[0]
    return starts[: groups + 1] - left_out, places[left_out:]


@njit(cache=True, nogil=True)
def chosen(values: Int32, keep: Bool) -> Int32:
    """values[keep], without a branch to mispredict: a value that is not kept is overwritten by the next."""
    found = np.empty(values.size, np.int32)
    count = 0
    for i in range(values.size):
        found[count] = values[i]
        count += keep[i]
    return found[:count]


@njit(cache=True, nogil=True)
def successors(bounds: Int32, bound_codes: Int32, values: Int32, codes: Int32, offsets: Int64) -> Int32:
    """For each i the end of the entries of group bound_codes[i] whose value is <= bounds[i]; 0 for code -1.

    One merge of two ascending columns, bounds and values, with a fill count per group that begins at its offset.
    """
    fill = offsets.copy()
    found = np.zeros(bounds.size, np.int32)
    j = 0
    for i in range(bounds.size):
        while j < values.size and values[j] <= bounds[i]:
            if codes[j] >= 0:
                fill[codes[j]] += 1
            j += 1
        if bound_codes[i] >= 0:
            found[i] = fill[bound_codes[i]]
    return found


@njit(cache=True, nogil=True)
def earliest_ends(ranks: Int32, next_ranks: Int32, next_ends: Int32, never: int) -> Int32:
    """For each entry of a step the first place at which a match through it can end; `never` if there is none.

    That is the end of the first entry of the next step with a greater rank. Ranks ascend, so ends do.
    """
    ends = np.empty(ranks.size, np.int32)
    j = 0
    for i in range(ranks.size):
        while j < next_ranks.size and next_ranks[j] <= ranks[i]:
            j += 1
        ends[i] = next_ends[j] if j < next_ranks.size else never
    return ends


@njit(cache=True, nogil=True)
def find_names(
    offsets: Int32, data: UInt8, name_offsets: Int32, letters: UInt8, buckets: Int32, chain: Int32
) -> tuple[Int32, Int32]:
    """The texts that are one of the names: (their numbers, ascending; the number of the name of each).

    Texts and names are UTF-8 end to end, text i = data[offsets[i]:offsets[i + 1]]; no name is empty. A text's mark is
    (31 first byte + 7 last byte + length) mod 256; buckets [256] has a name of that mark or -1, chain [names] the next.
    """
    texts = np.empty(offsets.size - 1, np.int32)
    count = 0
    # First by mark alone, without a branch to mispredict: a text that is not kept is overwritten by the next.
    for i in range(texts.size):
        length = offsets[i + 1] - offsets[i]
        first = int(data[min(offsets[i], data.size - 1)])
        last = int(data[max(offsets[i + 1] - 1, 0)])
        texts[count] = i
        count += buckets[(31 * first + 7 * last + length) & 255] >= 0
    codes = np.empty(count, np.int32)
    kept = 0
    for place in range(count):
        i = texts[place]
        start = offsets[i]
        length = offsets[i + 1] - start
        code = -1
        if length > 0:
            code = buckets[(31 * int(data[start]) + 7 * int(data[start + length - 1]) + length) & 255]
        while code >= 0:
            name = name_offsets[code]
            same = 0
            if name_offsets[code + 1] - name == length:
                while same < length and letters[name + same] == data[start + same]:
                    same += 1
                if same == length:
                    break
            code = chain[code]
        texts[kept] = i
        codes[kept] = code
        kept += code >= 0
    return texts[:kept], codes[:kept]


@njit(cache=True, nogil=True)
def float_codes(values: Float64, bits: Int64) -> Int64:
    """The bits of doubles, such that integers ascend as the numbers do: those of negative ones are turned round."""
    found = np.empty(values.size, np.int64)
    for i in range(values.size):
        code = bits[i]
        if values[i] == 0.0:
            code = 0  # -0.0 is 0.0
        elif code < 0:
            code ^= LARGEST
        found[i] = code if values[i] == values[i] else UNKNOWN
    return found


@njit(cache=True, nogil=True)
def is_ordered(time: Ticks, order: Int64) -> bool:
    """Whether the pairs (time, order) never fall; an empty `order` means time alone."""
    for i in range(1, time.size):
        if time[i] < time[i - 1] or (order.size > 0 and time[i] == time[i - 1] and order[i] < order[i - 1]):
            return False
    return True


@njit(cache=True, nogil=True)
def dense_rank(time: Ticks, order: Int64) -> Int32:
    """The dense rank, from 0, of ascending pairs (time, order); an empty `order` means time alone."""
    rank = np.empty(time.size, np.int32)
    current = 0
    for i in range(time.size):
        if i > 0 and (time[i] != time[i - 1] or (order.size > 0 and order[i] != order[i - 1])):
            current += 1
        rank[i] = current
    return rank


@njit(cache=True, nogil=True)
def limits_by_bound(time: Ticks, starts: Int32, bounds: Int64) -> Int32:
    """For each start the last j with time[j] <= its bound, by two pointers: starts, bounds and times ascend."""
    limit = np.empty(starts.size, np.int32)
    j = 0
    for place in range(starts.size):
        j = max(j, starts[place])
        while j + 1 < time.size and time[j + 1] <= bounds[place]:
            j += 1
        limit[place] = j
    return limit


@njit(cache=True, nogil=True)
def limits_by_float(time: Ticks, starts: Int32, width: float) -> Int32:
    """For each start i the last j with time[j] - time[i] <= width; equal times are 0 apart, infinite ones too.

    Rounded subtraction is monotone, so the pointers only rise.
    """
    limit = np.empty(starts.size, np.int32)
    j = 0
    for place in range(starts.size):
        i = starts[place]
        j = max(j, i)
        while j + 1 < time.size and (time[j + 1] == time[i] or time[j + 1] - time[i] <= width):
            j += 1
        limit[place] = j
    return limit


@njit(cache=True, nogil=True)
def positions_in_group(codes: Int32, groups: int) -> Int32:
    """For each row how many earlier rows have the same code; -1 for rows of no group (negative codes)."""
    seen = np.zeros(groups, np.int32)
    position = np.empty(codes.size, np.int32)
    for i in range(codes.size):
        if codes[i] < 0:
            position[i] = -1
        else:
            position[i] = seen[codes[i]]
            seen[codes[i]] += 1
    return position


@njit(cache=True, nogil=True)
def ascends_in_groups(values: Int32, offsets: Int64) -> bool:
    """Whether the values of each group offsets[g]:offsets[g + 1] never fall."""
    for group in range(offsets.size - 1):
        for i in range(offsets[group] + 1, offsets[group + 1]):
            if values[i] < values[i - 1]:
                return False
    return True


@njit(cache=True, nogil=True)
def exponential(values: Float64) -> Float64:
    """The C library's exp, as Python's own: NumPy's vectorised one differs in the last bit."""
    found = np.empty(values.size, np.float64)
    for i in range(values.size):
        found[i] = np.exp(values[i])
    return found


@njit(cache=True, nogil=True)
def logarithm(values: Float64) -> Float64:
    """The C library's log, of positive numbers; NaN elsewhere."""
    found = np.empty(values.size, np.float64)
    for i in range(values.size):
        found[i] = np.log(values[i]) if values[i] > 0 else np.nan
    return found


@njit(cache=True, nogil=True)
def power(bases: Float64, exponents: Float64) -> Float64:
    """The C library's pow; either side may be one number for all."""
    size = bases.size if exponents.size == 1 else exponents.size
    found = np.empty(size, np.float64)
    for i in range(size):
        base = bases[0] if bases.size == 1 else bases[i]
        found[i] = np.power(base, exponents[0] if exponents.size == 1 else exponents[i])
    return found
