"""Packed arrays and scalars in, arrays out: the loops over events, compiled once by Numba and cached on disk.

Every array has one dtype for every query (int32 for rows, ranks and positions, int64 for codes and offsets), so
no query ever waits for a compiler. No kernel sees a time, a unit or a name.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

UInt8 = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Ticks = Int64 | Float64  # times: one kernel each for whole and for real numbers
Bool = NDArray[np.bool_]

UNKNOWN = np.iinfo(np.int64).min  # the code of null and NaN: no comparison with it holds
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)

# Columns of Buffers.steps.
BASE, AFTER_BASE, UNTIL_BASE, LINK_BASE, LINK_STEP, OFFSETS_BASE = range(6)
ROWS_BASE, PAIRS_START, PAIRS_STOP, CHECK_WINDOW, PLAIN, STEP_FIELDS = range(6, 12)  # PLAIN: nothing to check
# Columns of Buffers.pairs.
EARLIER, OPERATOR, EARLIER_CODES, THIS_CODES, PAIR_FIELDS = range(5)
# Fields of the cursor.
NEXT_PARTIAL, LEVEL, DONE, CURSOR_FIELDS = range(4)


class Buffers(NamedTuple):
    """The events that each step may bind, packed. An entry is numbered within its step.

    The entries of a step are ordered by (lookup group, order of the stream), so the events that may extend a partial
    match are one range of entries. Where the event of the step before tells where that range starts, and the first
    event where the window ends it, both are in `pointers`; where not, they are searched in the group.
    """

    steps: Int64  # [steps, STEP_FIELDS]
    rows: Int32  # ROWS_BASE + entry: the table row of the entry
    pointers: (
        Int32  # AFTER_BASE + entry of the step before: first entry after it; UNTIL_BASE + first entry: window's end
    )
    rank: Int32  # BASE + entry: dense rank of (time, order)
    position: Int32  # BASE + entry: what the window limits
    limit: Int32  # [entries of step 0] the largest position that a match starting there may hold
    links: Int32  # LINK_BASE + entry of the step LINK_STEP: its group in this step, -1 for none
    offsets: Int64  # OFFSETS_BASE + group: where the group's entries start; one more for the end
    hints: Int64  # [2, offsets] where the last searches of a group ended: for the next event, for the window's end
    pairs: Int64  # [pairs, PAIR_FIELDS]
    codes: Int64  # EARLIER_CODES or THIS_CODES + entry: the value of one side of a pair


@njit(cache=True, nogil=True)
def first_above(values: Int32, base: int, low: int, high: int, hint: int, bound: int) -> int:
    """The first i in [low, high) with values[base + i] > bound, or high. Values ascend; low <= hint <= high.

    Galloping from where the last search ended ("An almost optimal algorithm for unbounded searching", Bentley and Yao,
    1976): neighbouring searches end close to each other, so most take two or three comparisons.
    """
    if hint < high and values[base + hint] <= bound:
        low = hint + 1
        step = 1
        while low + step <= high and values[base + low + step - 1] <= bound:
            low += step
            step *= 2
        high = min(high, low + step - 1)
    elif hint > low and values[base + hint - 1] > bound:
        high = hint - 1
        step = 1
        while high - step >= low and values[base + high - step] > bound:
            high -= step
            step *= 2
        low = max(low, high - step + 1)
    else:
        return hint
    while low < high:
        middle = (low + high) // 2
        if values[base + middle] <= bound:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def admits(buffers: Buffers, level: int, match: Int32, entry: int) -> bool:
    """Whether `entry` may extend `match` at `level`: inside the window and true for every pair of the step."""
    steps = buffers.steps
    if steps[level, CHECK_WINDOW] == 1 and buffers.position[steps[level, BASE] + entry] > buffers.limit[match[0]]:
        return False
    for pair in range(steps[level, PAIRS_START], steps[level, PAIRS_STOP]):
        earlier = buffers.codes[buffers.pairs[pair, EARLIER_CODES] + match[buffers.pairs[pair, EARLIER]]]
        this = buffers.codes[buffers.pairs[pair, THIS_CODES] + entry]
        if earlier == UNKNOWN or this == UNKNOWN:
            return False
        operator = buffers.pairs[pair, OPERATOR]
        if operator == EQUAL:
            holds = earlier == this
        elif operator == UNEQUAL:
            holds = earlier != this
        elif operator == LESS:
            holds = earlier < this
        elif operator == LESS_EQUAL:
            holds = earlier <= this
        elif operator == GREATER:
            holds = earlier > this
        else:
            holds = earlier >= this
        if not holds:
            return False
    return True


@njit(cache=True, nogil=True)
def search_range(buffers: Buffers, level: int, match: Int32) -> tuple[int, int]:
    """The entries [start, stop) of the step's group that lie after the last bound event and in the window."""
    steps = buffers.steps
    group = 0
    if steps[level, LINK_BASE] >= 0:
        group = buffers.links[steps[level, LINK_BASE] + match[steps[level, LINK_STEP]]]
        if group < 0:
            return 0, 0
    slot = steps[level, OFFSETS_BASE] + group
    low = buffers.offsets[slot]
    high = buffers.offsets[slot + 1]
    if low == high:
        return 0, 0
    base = steps[level, BASE]
    last_rank = buffers.rank[steps[level - 1, BASE] + match[level - 1]]
    start = first_above(buffers.rank, base, low, high, buffers.hints[0, slot], last_rank)
    buffers.hints[0, slot] = start
    if steps[level, CHECK_WINDOW] == 0:
        high = first_above(buffers.position, base, low, high, buffers.hints[1, slot], buffers.limit[match[0]])
        buffers.hints[1, slot] = high
    return start, high


@njit(cache=True, nogil=True, inline="always")
def flush(out: Int32, step: int, flushed: Int64, written: int, value: int) -> None:
    """out[step, flushed:written] = value."""
    for place in range(flushed[step], written):
        out[step, place] = value
    flushed[step] = written


@njit(cache=True, nogil=True)
def extend(
    buffers: Buffers,
    partials: Int32,
    first: int,
    last: int,
    as_rows: bool,
    cursor: Int64,
    match: Int32,
    ranges: Int64,
    out: Int32,
) -> int:
    """Extends partial matches of steps [0, first) by steps [first, last], depth first; returns how many it wrote.

    partials [first, P] holds entries, out [last + 1, C] receives entries, or table rows if `as_rows`. When `out` is full
    the search stops, with its state in cursor [CURSOR_FIELDS], match [last + 1] and ranges [last + 1, 2]; the next call
    goes on from there. So memory is bounded whatever the number of matches, and matches come in lexicographic order of
    their entries' places in the stream.
    """
    steps = buffers.steps
    rows = buffers.rows
    pointers = buffers.pointers
    capacity = out.shape[1]
    written = 0
    # out[k, :flushed[k]] is written; the matches from there on have match[k], and are written when that changes.
    flushed = np.zeros(last + 1, np.int64)
    partial = cursor[NEXT_PARTIAL]
    level = cursor[LEVEL]
    opened = level >= first
    while True:
        if level < first:
            for k in range(first):
                flush(out, k, flushed, written, rows[steps[k, ROWS_BASE] + match[k]] if as_rows else match[k])
            if partial == partials.shape[1]:
                cursor[DONE] = 1
                break
            for k in range(first):
                match[k] = partials[k, partial]
            partial += 1
            level = first
            opened = False
        if opened:
            entry = ranges[level, 0]
            stop = ranges[level, 1]
        elif steps[level, AFTER_BASE] >= 0:
            entry = np.int64(pointers[steps[level, AFTER_BASE] + match[level - 1]])
            stop = np.int64(pointers[steps[level, UNTIL_BASE] + match[0]])
        else:
            entry, stop = search_range(buffers, level, match)
        plain = steps[level, PLAIN] == 1
        base = steps[level, ROWS_BASE]
        if level < last:
            if flushed[level] < written:
                flush(out, level, flushed, written, rows[base + match[level]] if as_rows else match[level])
            if not plain:
                while entry < stop and not admits(buffers, level, match, entry):
                    entry += 1
            if entry >= stop:
                level -= 1
                opened = True
                continue
            ranges[level, 0] = entry + 1
            ranges[level, 1] = stop
            match[level] = entry
            flushed[level] = written
            level += 1
            opened = False
            continue
        if plain:
            # Every entry of the range is a match: out[last, written:] = entry, entry + 1, ...
            count = max(0, min(stop - entry, capacity - written))
            if as_rows:
                for place in range(count):
                    out[last, written + place] = rows[base + entry + place]
            else:
                for place in range(count):
                    out[last, written + place] = entry + place
            written += count
            entry += count
        else:
            while entry < stop and written < capacity:
                if admits(buffers, level, match, entry):
                    out[last, written] = rows[base + entry] if as_rows else entry
                    written += 1
                entry += 1
        if entry < stop:
            ranges[level, 0] = entry
            ranges[level, 1] = stop
            for k in range(last):
                flush(out, k, flushed, written, rows[steps[k, ROWS_BASE] + match[k]] if as_rows else match[k])
            break
        level -= 1
        opened = True
    cursor[NEXT_PARTIAL] = partial
    cursor[LEVEL] = level
    return written


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
