"""Search matches row by row, depth first, with a stack that lies beside the rows.

A search at start row s has consumed `depth` rows: the state is the last label and the row s + depth. `stack.cursor` holds,
for each consumed row, the transition that was taken, so a search can stop at any row and continue later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.row_match.opcodes import KEEP_FAILED, KEEP_LIMITS, KEEP_REGISTERS
from streamsift.physical.row_match.program import DONE, NEEDS_END, NEEDS_START
from streamsift.runtime.arrays.dtypes import Bool, Int8, Int32, Int64
from streamsift.runtime.row_match.conditions_kernel import OPEN_ROW, OVERFLOW, TRUE, holds, update_registers

# Results of a search.
NO_MATCH, MATCH, OPEN, NEED_TABLE, TOO_MANY_STEPS, OVERFLOWED = 0, 1, 2, 3, 4, 5
# Results of a run.
FINISHED, OUTPUT_FULL, SKIP_ABSENT, SKIP_TO_FIRST_ROW = 0, 6, 7, 8
# What follows a match.
PAST_LAST_ROW, TO_NEXT_ROW, TO_FIRST, TO_LAST = 0, 1, 2, 3

UNBOUNDED = 2**31 - 1  # an end of the window that limits nothing
STEPS_BEFORE_TABLE = 8  # per row: without so many, keeping states with registers costs more than it saves


class Program(NamedTuple):
    """The pattern and its conditions."""

    begin: Int64  # of the transitions of each state
    target: Int32  # of each transition
    guard: Int8
    variable: Int32  # of each label
    keep: Int8  # of each state
    live_begin: Int64  # of the registers that each state is kept with
    live: Int32
    update_begin: Int64  # of the registers that each variable changes
    update: Int32
    registers: Int64  # kind, column, source
    code_begin: Int64  # of the condition of each variable
    code: Int64  # operation and three arguments
    reach: Int64  # start, argument, shift
    constants: Int64
    label_codes: Int64  # of each variable, as a string
    ahead: Int64  # rows that the condition of each variable reads after the row under test


class Rows(NamedTuple):
    """The rows of all partitions, sorted."""

    bits: Int64  # bit v of the words of a row: the part of the row of variable v's condition
    words: int  # of each row
    data: Int64  # the words of each column that conditions of the match read
    limit: Int64  # of each row: the first row after it that WITHIN excludes; empty without WITHIN


class Memory(NamedTuple):
    """Failed states. The arrays are as large as the largest partition, and cleared for each."""

    failed: Int64  # bits: one for each label
    limits: Int32  # the end of the window up to which a state failed, for each label
    table: Int64  # label and row, start, number, registers; direct-mapped, so it may forget
    labels: int  # including label 0


class Stack(NamedTuple):
    """The search of each partition; index: row + number of the partition."""

    cursor: Int32
    registers: Int64
    touched: Int8  # 1: the state failed because of the window's end
    words: Int64  # the stack of a condition


class Partition(NamedTuple):
    """The rows of a partition."""

    low: int
    high: int
    number: int
    closed: bool  # no further rows can come
    complete: bool  # its first row is the first row of the partition


@njit(cache=True, nogil=True)
def search(
    program: Program,
    rows: Rows,
    memory: Memory,
    stack: Stack,
    part: Partition,
    start: int,
    depth: int,
    number: int,
    max_steps: int,
) -> tuple[int, int, int]:
    """Continue the search of a match at a start row; return the result, the depth and the steps taken.

    One loop on purpose: calls between its parts would cost more than the parts.
    """
    begin, target, cursor = program.begin, program.target, stack.cursor
    offset, high, closed = part.number, part.high, part.closed
    count = program.registers.shape[0]
    failed_words = (memory.labels + 63) >> 6
    has_limit = rows.limit.size > 0
    limit = rows.limit[start] if has_limit else np.int64(UNBOUNDED)
    steps = 0
    row = start + depth
    state = 0 if depth == 0 else target[cursor[row - 1 + offset]]
    t = cursor[row + offset]
    while True:
        if t == begin[state + 1]:
            if depth == 0:
                return NO_MATCH, 0, steps
            keep = program.keep[state]
            if keep == KEEP_FAILED:
                at = (row - part.low) * failed_words + (state >> 6)
                memory.failed[at] |= np.int64(1) << np.int64(state & 63)
            elif keep == KEEP_LIMITS:
                kept = limit if stack.touched[row + offset] else np.int64(UNBOUNDED)
                memory.limits[(row - part.low) * memory.labels + state] = kept
            elif keep == KEEP_REGISTERS and memory.table.shape[0] > 1:
                _keep_failed(program, memory, stack, state, row, offset, start, number)
            depth -= 1
            row -= 1
            if has_limit and stack.touched[row + 1 + offset]:
                stack.touched[row + offset] = 1
            state = 0 if depth == 0 else target[cursor[row - 1 + offset]]
            t = cursor[row + offset] + 1
            continue
        label = target[t]
        guard = program.guard[t]
        if guard != 0:
            if guard & NEEDS_START and not (row == part.low and part.complete):
                t += 1
                continue
            if guard & NEEDS_END:
                if row < high:
                    t += 1
                    continue
                if not closed:
                    cursor[row + offset] = t
                    return OPEN, depth, steps
        if label == DONE:
            cursor[row + offset] = t
            return MATCH, depth, steps
        if row >= limit:
            stack.touched[row + offset] = 1
            t += 1
            continue
        variable = program.variable[label]
        if row + program.ahead[variable] >= high and not closed:
            cursor[row + offset] = t
            return OPEN, depth, steps
        if row >= high:
            t += 1
            continue
        steps += 1
        if not (rows.bits[row * rows.words + (variable >> 6)] >> np.int64(variable & 63)) & 1:
            t += 1
            continue
        keep = program.keep[label]
        if keep == KEEP_FAILED:
            at = (row + 1 - part.low) * failed_words + (label >> 6)
            if (memory.failed[at] >> np.int64(label & 63)) & 1:
                t += 1
                continue
        elif keep == KEEP_LIMITS:
            kept = np.int64(memory.limits[(row + 1 - part.low) * memory.labels + label])
            if kept >= limit:
                if kept != UNBOUNDED:
                    stack.touched[row + offset] = 1
                t += 1
                continue
        if count:
            cursor[row + offset] = t
            overflow = update_registers(program, rows, stack.registers, variable, row, row + offset)
            if overflow:
                return OVERFLOWED, depth, steps
            if program.code_begin[variable + 1] > program.code_begin[variable]:
                truth = holds(program, rows, stack, part, variable, row, start, number)
                if truth != TRUE:
                    if truth == OPEN_ROW:
                        return OPEN, depth, steps
                    if truth == OVERFLOW:
                        return OVERFLOWED, depth, steps
                    t += 1
                    continue
        elif program.code_begin[variable + 1] > program.code_begin[variable]:
            cursor[row + offset] = t
            truth = holds(program, rows, stack, part, variable, row, start, number)
            if truth != TRUE:
                if truth == OPEN_ROW:
                    return OPEN, depth, steps
                if truth == OVERFLOW:
                    return OVERFLOWED, depth, steps
                t += 1
                continue
        if keep == KEEP_REGISTERS and memory.table.shape[0] > 1:
            if _has_failed(program, memory, stack, label, row + 1, offset, start, number):
                t += 1
                continue
        cursor[row + offset] = t
        depth += 1
        row += 1
        state = label
        t = begin[state]
        if has_limit:
            stack.touched[row + offset] = 0
        if steps >= max_steps:
            cursor[row + offset] = t
            return TOO_MANY_STEPS, depth, steps


@njit(cache=True, nogil=True)
def _slot(program: Program, memory: Memory, stack: Stack, state: int, row: int, offset: int, start: int) -> int:
    """Return the place of a state in the table."""
    base = (row + offset) * program.registers.shape[0]
    mixed = np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(state)
    for k in range(program.live_begin[state], program.live_begin[state + 1]):
        register = program.live[k]
        value = np.int64(start) if register < 0 else stack.registers[base + register]
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(value)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed >> np.uint64(33)) & np.uint64(memory.table.shape[0] - 1))


@njit(cache=True, nogil=True)
def _keep_failed(
    program: Program, memory: Memory, stack: Stack, state: int, row: int, offset: int, start: int, number: int
) -> None:
    slot = _slot(program, memory, stack, state, row, offset, start)
    base = (row + offset) * program.registers.shape[0]
    memory.table[slot, 0] = np.int64(row) * memory.labels + state
    for k in range(program.live_begin[state], program.live_begin[state + 1]):
        register = program.live[k]
        value = np.int64(start) if register == -1 else np.int64(number)
        if register >= 0:
            value = stack.registers[base + register]
        memory.table[slot, 1 + k - program.live_begin[state]] = value


@njit(cache=True, nogil=True)
def _has_failed(
    program: Program, memory: Memory, stack: Stack, state: int, row: int, offset: int, start: int, number: int
) -> bool:
    slot = _slot(program, memory, stack, state, row, offset, start)
    if memory.table[slot, 0] != np.int64(row) * memory.labels + state:
        return False
    base = (row + offset) * program.registers.shape[0]
    for k in range(program.live_begin[state], program.live_begin[state + 1]):
        register = program.live[k]
        value = np.int64(start) if register == -1 else np.int64(number)
        if register >= 0:
            value = stack.registers[base + register]
        if memory.table[slot, 1 + k - program.live_begin[state]] != value:
            return False
    return True


class Searches(NamedTuple):
    """Where the search of each partition is."""

    start: Int64  # the row at which a match is searched
    depth: Int64  # -1: no search is open
    number: Int64  # of matches so far
    covered: Int64  # rows before it are in a match
    steps: Int64
    fresh: Int8  # 1: the failed states in memory are those of another partition


class Output(NamedTuple):
    """Matches; those of length 0 are empty, and number 0 is an unmatched row. `sizes`: of matches, and of labels."""

    start: Int64
    length: Int64
    number: Int64
    partition: Int32
    labels: Int32  # of the rows of all matches
    sizes: Int64


class Rules(NamedTuple):
    """How a run goes on after a match."""

    skip: int
    skip_variables: Bool  # by variable
    skip_errors: bool  # False: after SKIP TO an absent row, go on at the next row
    unmatched: bool  # report unmatched rows
    max_steps_per_row: int


@njit(cache=True, nogil=True)
def run(
    program: Program,
    rows: Rows,
    memory: Memory,
    stack: Stack,
    bounds: Int64,
    closed: Bool,
    complete: Bool,
    searches: Searches,
    rules: Rules,
    output: Output,
    first: int,
) -> tuple[int, int]:
    """Search all partitions from the first one on; return the result and the partition at which it came up.

    A run that stops continues when it is called again with that partition.
    """
    count = program.registers.shape[0]
    failed_words = (memory.labels + 63) >> 6
    for p in range(first, bounds.size - 1):
        low, high = bounds[p], bounds[p + 1]
        part = Partition(low, high, p, closed[p], complete[p])
        start, depth = searches.start[p], searches.depth[p]
        if searches.fresh[p]:
            _clear(memory, failed_words, high - low + 1)
            searches.fresh[p] = 0
        max_steps = rules.max_steps_per_row * (high - low + 1)
        while start < high:
            if output.sizes[0] == output.start.size or output.sizes[1] + (high - start) > output.labels.size:
                searches.start[p] = start
                searches.depth[p] = depth
                return OUTPUT_FULL, p
            if depth < 0:
                depth = 0
                stack.cursor[start + p] = program.begin[0]
                if rows.limit.size:
                    stack.touched[start + p] = 0
                for k in range(count):
                    kind = program.registers[k, 0]
                    stack.registers[(start + p) * count + k] = _initial(kind)
            left = max_steps - searches.steps[p]
            if memory.table.shape[0] == 1:
                left = min(left, STEPS_BEFORE_TABLE * (high - low + 128) - searches.steps[p])
            result, depth, steps = search(
                program, rows, memory, stack, part, start, depth, searches.number[p] + 1, max(left, 1)
            )
            searches.steps[p] += steps
            if result == OPEN or result >= NEED_TABLE:
                searches.start[p] = start
                searches.depth[p] = depth
                if result == OPEN:
                    break
                if result == TOO_MANY_STEPS and searches.steps[p] < max_steps:
                    if memory.table.shape[0] == 1:
                        return NEED_TABLE, p
                    continue
                return result, p
            if result == NO_MATCH:
                if rules.unmatched and start >= searches.covered[p]:
                    _report(output, start, 0, 0, p)
                start += 1
            else:
                searches.number[p] += 1
                _report(output, start, depth, searches.number[p], p)
                for i in range(depth):
                    output.labels[output.sizes[1] + i] = program.target[stack.cursor[start + i + p]]
                output.sizes[1] += depth
                searches.covered[p] = max(searches.covered[p], start + max(depth, 1))
                following = _following(program, stack, rules, start, depth, p)
                if following < 0:
                    if rules.skip_errors:
                        searches.start[p] = start
                        return SKIP_ABSENT if following == -1 else SKIP_TO_FIRST_ROW, p
                    following = start + 1
                start = following
            depth = -1
            searches.depth[p] = -1
        searches.start[p] = start
    return FINISHED, bounds.size - 1


@njit(cache=True, nogil=True)
def _clear(memory: Memory, failed_words: int, size: int) -> None:
    if memory.failed.size:
        memory.failed[: size * failed_words] = 0
    if memory.limits.size:
        memory.limits[: size * memory.labels] = -1


@njit(cache=True, nogil=True)
def _initial(kind: int) -> int:
    if kind <= 1:  # LAST_ROW, FIRST_ROW
        return np.int64(-1)
    if kind <= 4:  # counts and sums
        return np.int64(0)
    return np.int64(-(2**63))


@njit(cache=True, nogil=True)
def _report(output: Output, start: int, length: int, number: int, partition: int) -> None:
    n = output.sizes[0]
    output.start[n], output.length[n] = start, length
    output.number[n], output.partition[n] = number, partition
    output.sizes[0] = n + 1


@njit(cache=True, nogil=True)
def _following(program: Program, stack: Stack, rules: Rules, start: int, depth: int, offset: int) -> int:
    """Return the next start row; -1 if the variable to skip to is absent, -2 if it is at the first row."""
    if depth == 0 or rules.skip == TO_NEXT_ROW:
        return start + 1
    if rules.skip == PAST_LAST_ROW:
        return start + depth
    for i in range(depth):
        at = i if rules.skip == TO_FIRST else depth - 1 - i
        label = program.target[stack.cursor[start + at + offset]]
        if rules.skip_variables[program.variable[label]]:
            return -2 if at == 0 else start + at
    return -1
