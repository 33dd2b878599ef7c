"""Search the levels of a join order, in which events are bound in any order; one kernel serves every query.

A level binds a *unit*: an event of one step, or a sub-match of a block (a materialized subplan). An entry of a level
has a first and a last place; entries ascend by first place within each lookup group. Every bound is an interval of
places (`events/reach.py`), so a level scans only the entries that order and window allow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import first_above, holds
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.events.reach import Reach

# Columns of Levels.table.
IS_BLOCK, ENTRIES_BASE, OFFSETS_BASE, LINK_BASE, LINK_STEP, STEPS_START, STEPS_STOP = range(7)
LOWER_START, LOWER_STOP, UPPER_START, UPPER_STOP, PAIRS_START, PAIRS_STOP, OWNS = range(7, 14)
INDEX_BASE, INDEX_LOW, INDEX_HIGH, LIMITS_START, LIMITS_STOP, LEVEL_FIELDS = range(14, 20)
# Columns of Levels.pairs.
LEFT_STEP, OPERATOR, RIGHT_STEP, PAIR_FIELDS = range(4)
# Columns of Levels.limits.
BOUND_STEP, WINDOW_ROW, IS_UPPER, LIMIT_FIELDS = range(4)
# Fields of the cursor.
NEXT_PARTIAL, LEVEL, DONE, SIFTED_FOR, SIFTED, SIFTED_HINT, CURSOR_FIELDS = range(7)


class Levels(NamedTuple):
    """A packed join order. All events are places."""

    table: Int64  # [levels, LEVEL_FIELDS]
    steps: Int64  # at STEPS_START:STEPS_STOP of a level: the steps that it binds
    bounds: Int64  # at LOWER_START:LOWER_STOP and UPPER_START:UPPER_STOP: the steps before and after the level
    places: Int32  # at ENTRIES_BASE + entry, for a level of single events
    offsets: Int64  # at OFFSETS_BASE + group: where the group's entries start; one more for the end
    hints: Int64  # [2, offsets] where the last searches in a group ended: for the start and the end of a range
    first_entry: Int32  # at INDEX_BASE + place - INDEX_LOW: the first entry from that place on, if there is no lookup
    links: Int32  # at LINK_BASE + place - low of the event of LINK_STEP: its group, -1 for none
    pairs: Int64  # [pairs, PAIR_FIELDS]
    codes: Int64  # [2 * pairs, places from `low` on] the two sides of each pair
    limits: Int64  # [limits, LIMIT_FIELDS] bounds from definition windows; WINDOW_ROW is a row of Reach.own_windows
    low: int  # the first place that is packed


class Block(NamedTuple):
    """The packed sub-matches of all levels that bind a block; the entries of a level start at ENTRIES_BASE.

    `inside_keys` and `inside` are buffers for the entries of the last level that share a window with the first event.
    If they are empty, these entries are not filtered in advance.
    """

    starts: Int32  # [entries] the first place
    ends: Int32  # [entries] the last place
    members: Int32  # [steps, entries] the place of each step, for the steps of the entry's level
    inside_keys: Int32  # [entries] their first places, or last places if `by_end`
    inside: Int32  # [steps, entries] their members
    by_end: bool  # True if the entries of the last level ascend by last place


class Slice(NamedTuple):
    """The slice whose matches are searched for."""

    low: int  # the first event of a match lies in [low, high)
    high: int
    end: int  # the end of the places of such matches


class JoinState(NamedTuple):
    """The state of a search, created by `new_state`; a search resumes from it after the output was full."""

    cursor: Int64  # [CURSOR_FIELDS]
    entries: Int64  # [levels] the next entry to try
    stops: Int64  # [levels] the end of the entries
    highs: Int64  # [levels] upper bound (exclusive) of the last place of an entry
    chosen: Int64  # [levels] the bound entry
    bound: Int32  # [steps] the bound place
    span: Int32  # [levels, 2] the first and the last place bound up to this level
    rows: Int64  # [levels] how many partial matches each level built


def new_state(levels: int, steps: int) -> JoinState:
    cursor, rows = np.zeros(CURSOR_FIELDS, np.int64), np.zeros(levels, np.int64)
    entries, stops, highs, chosen = np.zeros((4, levels), np.int64)
    bound, span = np.full(steps, -1, np.int32), np.zeros((levels, 2), np.int32)
    return JoinState(cursor, entries, stops, highs, chosen, bound, span, rows)


@njit(cache=True, nogil=True)
def join(
    levels: Levels,
    block: Block,
    reach: Reach,
    within: Slice,
    state: JoinState,
    partials: Int32,
    first: int,
    last: int,
    distinct: bool,
    as_places: bool,
    out: Int32,
) -> int:
    """Extend partial matches of levels [0, first) by levels [first, last], depth first; return how many were written.

    partials [first, P] holds entries; out [.., C] receives the entry of each level, or the place of each step if
    `as_places`. When `out` is full, the search stops and can be resumed from `state`; it is done when cursor[DONE].
    This is one function without views of rows, because Numba counts references for every array in a call or a view.
    """
    table, steps, bounds, pairs, codes = levels.table, levels.steps, levels.bounds, levels.pairs, levels.codes
    places, offsets, hints, links, index = levels.places, levels.offsets, levels.hints, levels.links, levels.first_entry
    starts, ends, members = block.starts, block.ends, block.members
    inside_keys, inside, by_end, sifts = block.inside_keys, block.inside, block.by_end, block.inside_keys.size > 0
    place_after, place_since = reach.place_after, reach.place_since
    window_low, window_high = reach.window_low, reach.window_high
    own_windows, limits = reach.own_windows, levels.limits
    entries, stops, highs, bound, span = state.entries, state.stops, state.highs, state.bound, state.span
    chosen, cursor = state.chosen, state.cursor
    capacity, written = out.shape[1], 0
    flushed = np.zeros(last + 1, np.int64)  # rows of level k written so far; later rows get its current binding
    partial, level = cursor[NEXT_PARTIAL], cursor[LEVEL]
    opened = partial > 0
    if partial == 0:
        level = first - 1
    full = False
    while not full and not cursor[DONE]:
        if level < first:
            for number in range(first):
                _flush(table, steps, bound, chosen, number, as_places, flushed, written, out)
            if partial == partials.shape[1]:
                cursor[DONE] = 1
                break
            for number in range(first):
                entry = int(partials[number, partial])
                at = table[number, ENTRIES_BASE] + entry
                chosen[number] = entry
                if table[number, IS_BLOCK] == 1:
                    low, high = starts[at], ends[at]
                    for k in range(table[number, STEPS_START], table[number, STEPS_STOP]):
                        bound[steps[k]] = members[steps[k], at]
                else:
                    low = high = places[at]
                    bound[steps[table[number, STEPS_START]]] = low
                span[number, 0] = low if number == 0 else min(low, span[number - 1, 0])
                span[number, 1] = high if number == 0 else max(high, span[number - 1, 1])
            partial += 1
            level = first
            opened = False
        base = table[level, ENTRIES_BASE]
        is_block = table[level, IS_BLOCK] == 1
        if not opened:
            # Between its neighbors, and in one window with all bound events.
            least, last_high, first_high = within.low, within.end, within.end
            if level > 0:
                least = max(least, window_low[span[level - 1, 1]])
                last_high = min(last_high, window_high[span[level - 1, 0]] + 1)
            for k in range(table[level, LOWER_START], table[level, LOWER_STOP]):
                least = max(least, place_after[bound[bounds[k]]])
            for k in range(table[level, UPPER_START], table[level, UPPER_STOP]):
                last_high = min(last_high, place_since[bound[bounds[k]]])
            if table[level, OWNS] == 1:
                first_high = within.high
            for k in range(table[level, LIMITS_START], table[level, LIMITS_STOP]):
                edge = own_windows[limits[k, WINDOW_ROW], bound[limits[k, BOUND_STEP]]]
                if limits[k, IS_UPPER] == 1:
                    first_high = min(first_high, edge + 1)
                else:
                    least = max(least, edge)
            first_high = min(first_high, last_high)
            entry = stop = 0
            if table[level, INDEX_BASE] >= 0:
                offset = table[level, INDEX_BASE] - table[level, INDEX_LOW]
                least = max(least, table[level, INDEX_LOW])
                outside = min(first_high, table[level, INDEX_HIGH])
                if least < outside:
                    entry, stop = int(index[offset + least]), int(index[offset + outside])
                if level == last and sifts:
                    # All matches with the same first event share the window end: filter its entries once.
                    if cursor[SIFTED_FOR] != span[0, 0] + 1:
                        cursor[SIFTED_FOR] = span[0, 0] + 1
                        lowest, highest = table[level, INDEX_LOW], table[level, INDEX_HIGH]
                        window_end = min(within.end, window_high[span[0, 0]] + 1)
                        after = place_after[span[0, 0]]
                        kept = 0
                        begin = index[offset + min(max(span[0, 0], lowest), highest)]
                        finish = index[offset + min(max(window_end, lowest), highest)]
                        for k in range(begin, finish):
                            at = base + k
                            inside_keys[kept] = ends[at] if by_end else starts[at]
                            for number in range(table[level, STEPS_START], table[level, STEPS_STOP]):
                                inside[steps[number], kept] = members[steps[number], at]
                            kept += starts[at] >= after and ends[at] < window_end
                        cursor[SIFTED], cursor[SIFTED_HINT] = kept, 0
                    entry, stop = 0, cursor[SIFTED]
                    hint = min(cursor[SIFTED_HINT], stop)
                    if by_end:
                        stop = first_above(inside_keys, 0, 0, stop, hint, last_high - 1)
                        cursor[SIFTED_HINT] = stop
                    else:
                        entry = first_above(inside_keys, 0, 0, stop, hint, least - 1)
                        cursor[SIFTED_HINT] = entry
            elif least < first_high:
                group = links[table[level, LINK_BASE] + bound[table[level, LINK_STEP]] - levels.low]
                slot = table[level, OFFSETS_BASE] + group
                begin, stop = (int(offsets[slot]), int(offsets[slot + 1])) if group >= 0 else (0, 0)
                entry = begin
                if begin < stop:
                    order = starts if is_block else places
                    entry = first_above(order, base, begin, stop, hints[0, slot], least - 1)
                    hints[0, slot] = entry
                    stop = first_above(order, base, begin, stop, hints[1, slot], first_high - 1)
                    hints[1, slot] = stop
            entries[level], stops[level], highs[level] = entry, stop, last_high
        entry, stop, last_high = entries[level], stops[level], highs[level]
        low_before = span[level - 1, 0] if level > 0 else place_after.size
        high_before = span[level - 1, 1] if level > 0 else -1
        pairs_start, pairs_stop = table[level, PAIRS_START], table[level, PAIRS_STOP]
        steps_start, steps_stop = table[level, STEPS_START], table[level, STEPS_STOP]
        descended = False
        if level < last and flushed[level] < written:
            _flush(table, steps, bound, chosen, level, as_places, flushed, written, out)
        plain = not distinct and not is_block and pairs_start == pairs_stop
        if plain and level < last:
            if entry < stop:
                place = places[base + entry]
                bound[steps[steps_start]] = place
                span[level, 0], span[level, 1] = min(place, low_before), max(place, high_before)
                chosen[level] = entry
                entries[level] = entry + 1
                flushed[level] = written
                state.rows[level] += 1
                descended = True
        elif plain or (level == last and sifts):
            # Every entry of the range is a match.
            count = max(0, min(stop - entry, capacity - written))
            if is_block:
                for number in range(steps_start, steps_stop):
                    step = steps[number]
                    for k in range(count):
                        out[step, written + k] = inside[step, entry + k]
            elif as_places:
                step = steps[steps_start]
                for k in range(count):
                    out[step, written + k] = places[base + entry + k]
            else:
                for k in range(count):
                    out[last, written + k] = entry + k
            written += count
            entry += count
            state.rows[level] += count
            entries[level] = entry
            full = entry < stop
        else:
            while entry < stop:
                at = base + entry
                if is_block:
                    if ends[at] >= last_high:
                        entry += 1
                        continue
                    low, high = starts[at], ends[at]
                    for k in range(steps_start, steps_stop):
                        bound[steps[k]] = members[steps[k], at]
                else:
                    low = high = places[at]
                    bound[steps[steps_start]] = low
                low, high = min(low, low_before), max(high, high_before)
                fits = True
                if distinct:
                    for k in range(steps_start, steps_stop):
                        for other in range(steps_start):
                            fits = fits and bound[steps[other]] != bound[steps[k]]
                pair = pairs_start
                while fits and pair < pairs_stop:
                    left = codes[2 * pair, bound[pairs[pair, LEFT_STEP]] - levels.low]
                    right = codes[2 * pair + 1, bound[pairs[pair, RIGHT_STEP]] - levels.low]
                    fits = holds(pairs[pair, OPERATOR], left, right)
                    pair += 1
                if fits:
                    if level == last and written == capacity:
                        full = True
                        break
                    state.rows[level] += 1
                    chosen[level] = entry
                    if level < last:
                        span[level, 0], span[level, 1] = low, high
                        flushed[level] = written
                        descended = True
                        entry += 1
                        break
                    if as_places:
                        for k in range(steps_start, steps_stop):
                            out[steps[k], written] = bound[steps[k]]
                    else:
                        out[last, written] = entry
                    written += 1
                entry += 1
            entries[level] = entry
        if full:
            for number in range(last):
                _flush(table, steps, bound, chosen, number, as_places, flushed, written, out)
        elif descended:
            level += 1
            opened = False
        else:
            level -= 1
            opened = True
    cursor[NEXT_PARTIAL], cursor[LEVEL] = partial, level
    return written


@njit(cache=True, nogil=True, inline="always")
def _flush(
    table: Int64,
    steps: Int64,
    bound: Int32,
    chosen: Int64,
    level: int,
    as_places: bool,
    flushed: Int64,
    written: int,
    out: Int32,
) -> None:
    """Write the current binding of a level to all rows since its last change."""
    if as_places:
        for k in range(table[level, STEPS_START], table[level, STEPS_STOP]):
            step = steps[k]
            value = bound[step]
            for row in range(flushed[level], written):
                out[step, row] = value
    else:
        number = chosen[level]
        for row in range(flushed[level], written):
            out[level, row] = number
    flushed[level] = written
