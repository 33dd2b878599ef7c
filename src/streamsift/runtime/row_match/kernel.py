"""Search matches row by row, depth first, with a stack that lies beside the rows.

A search at start row s has consumed `depth` rows: the state is the last label and the row s + depth. `stack.cursor`
holds, for each consumed row, the transition that was taken, so a search can stop at any row and continue later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.row_match import DONE, NEEDS_END, NEEDS_START, opcodes
from streamsift.runtime.arrays.dtypes import Bool, Int8, Int32, Int64
from streamsift.runtime.row_match.conditions_kernel import (
    NOT_SETTLED,
    NOT_TRUE,
    NULL_WORD,
    OPEN_ROW,
    OVERFLOW,
    TRUE,
    Word,
    add,
    change_double,
    choose,
    combine_doubles,
    compare_doubles,
    compare_mixed,
    compare_words,
    integers,
    multiply,
    row_of,
    without_negative_zero,
)
from streamsift.runtime.row_match.conditions_kernel import (
    is_less as less,
)

# Results of a search.
NO_MATCH, MATCH, OPEN, NEED_TABLE, TOO_MANY_STEPS, OVERFLOWED = 0, 1, 2, 3, 4, 5
# Results of a run.
FINISHED, OUTPUT_FULL, SKIP_ABSENT, SKIP_TO_FIRST_ROW = 0, 6, 7, 8
# What follows a match.
PAST_LAST_ROW, TO_NEXT_ROW, TO_FIRST, TO_LAST = 0, 1, 2, 3

FROM_REGISTER = opcodes.FROM_REGISTER
KEEP_FAILED, KEEP_LIMITS, KEEP_REGISTERS = opcodes.KEEP_FAILED, opcodes.KEEP_LIMITS, opcodes.KEEP_REGISTERS
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


class RowWords(NamedTuple):
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


class PartitionBounds(NamedTuple):
    """The rows of each partition."""

    bounds: Int64  # partition p has rows bounds[p] to bounds[p + 1]
    closed: Bool  # no further rows can come
    complete: Bool  # its first row here is its first row of all


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
def _slot(
    table: Int64, first: Word, end: Word, live: Int32, registers: Int64, base: Word, key: Word, start: Word
) -> Word:
    """Return the place of a state in the table."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    for k in range(first, end):
        value = np.int64(start) if live[k] < 0 else registers[base + live[k]]
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(value)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed >> np.uint64(33)) & np.uint64(table.shape[0] - 1))


@njit(cache=True, nogil=True)
def _keep_failed(
    table: Int64,
    live_begin: Int64,
    live: Int32,
    registers: Int64,
    count: Word,
    labels: Word,
    state: Word,
    row: Word,
    offset: Word,
    start: Word,
    number: Word,
) -> None:
    """Keep a failed state with the registers that the rest reads."""
    first, end, base, key = live_begin[state], live_begin[state + 1], (row + offset) * count, row * labels + state
    slot = _slot(table, first, end, live, registers, base, key, start)
    table[slot, 0] = key
    for k in range(first, end):
        value = np.int64(start) if live[k] == -1 else np.int64(number)
        table[slot, 1 + k - first] = registers[base + live[k]] if live[k] >= 0 else value


@njit(cache=True, nogil=True)
def _has_failed(
    table: Int64,
    live_begin: Int64,
    live: Int32,
    registers: Int64,
    count: Word,
    labels: Word,
    state: Word,
    row: Word,
    offset: Word,
    start: Word,
    number: Word,
) -> bool:
    """Return True if the state is kept as failed with the same registers."""
    first, end, base, key = live_begin[state], live_begin[state + 1], (row + offset) * count, row * labels + state
    slot = _slot(table, first, end, live, registers, base, key, start)
    if table[slot, 0] != key:
        return False
    for k in range(first, end):
        value = np.int64(start) if live[k] == -1 else np.int64(number)
        if table[slot, 1 + k - first] != (registers[base + live[k]] if live[k] >= 0 else value):
            return False
    return True


@njit(cache=True, nogil=True)
def _initial(kind: Word) -> Word:
    if kind <= 1:  # LAST_ROW, FIRST_ROW
        return np.int64(-1)
    if kind <= 4:  # counts and sums
        return np.int64(0)
    return np.int64(-(2**63))


@njit(cache=True, nogil=True)
def _report(output: Output, start: Word, length: Word, number: Word, partition: Word) -> None:
    n = output.sizes[0]
    output.start[n], output.length[n] = start, length
    output.number[n], output.partition[n] = number, partition
    output.sizes[0] = n + 1


@njit(cache=True, nogil=True)
def run(
    program: Program,
    rows: RowWords,
    memory: Memory,
    stack: Stack,
    partitions: PartitionBounds,
    searches: Searches,
    rules: Rules,
    output: Output,
    first: Word,
) -> tuple[int, int]:
    """Search all partitions from the first one on; return the result and the partition at which it came up.

    A run that stops continues when it is called again with that partition. One function on purpose: arrays that are
    passed on, or read from a tuple, are counted as references each time, which takes longer than a step of the search.
    Registers are updated before the condition is evaluated, so the row under test counts as bound.
    """
    begin, target, guards, variables = program.begin, program.target, program.guard, program.variable
    keeps, live_begin, live, ahead = program.keep, program.live_begin, program.live, program.ahead
    update_begin, update, plans = program.update_begin, program.update, program.registers
    code_begin, code, reach, constants = program.code_begin, program.code, program.reach, program.constants
    label_codes = program.label_codes
    bits, words, data, window = rows.bits, rows.words, rows.data, rows.limit
    data_doubles = data.view(np.float64)
    failed, limits, table, labels = memory.failed, memory.limits, memory.table, memory.labels
    cursor, registers, touched, stack_words = stack.cursor, stack.registers, stack.touched, stack.words
    doubles, stack_doubles = registers.view(np.float64), stack_words.view(np.float64)
    bounds, closed, complete = partitions.bounds, partitions.closed, partitions.complete
    starts, depths, numbers, covered = searches.start, searches.depth, searches.number, searches.covered
    all_steps, fresh = searches.steps, searches.fresh
    out_labels, sizes = output.labels, output.sizes
    count = plans.shape[0]
    failed_words = (labels + 63) >> 6
    has_limit = window.size > 0
    has_table = table.shape[0] > 1
    for p in range(first, bounds.size - 1):
        offset, low, high, is_closed, is_complete = p, bounds[p], bounds[p + 1], closed[p], complete[p]
        start, depth = starts[p], depths[p]
        if fresh[p]:
            failed[: min(failed.size, (high - low + 1) * failed_words)] = 0
            limits[: min(limits.size, (high - low + 1) * labels)] = -1
            fresh[p] = 0
        max_steps = rules.max_steps_per_row * (high - low + 1)
        if not has_table:
            max_steps = min(max_steps, STEPS_BEFORE_TABLE * (high - low + 128))
        steps = all_steps[p]
        number = numbers[p] + 1
        while start < high:
            if sizes[0] == output.start.size or sizes[1] + (high - start) > out_labels.size:
                starts[p], depths[p], numbers[p], all_steps[p] = start, depth, number - 1, steps
                return OUTPUT_FULL, p
            if depth < 0:
                depth = 0
                cursor[start + offset] = begin[0]
                if has_limit:
                    touched[start + offset] = 0
                for k in range(count):
                    registers[(start + offset) * count + k] = _initial(plans[k, 0])
            limit = window[start] if has_limit else np.int64(UNBOUNDED)
            row = start + depth
            state = 0 if depth == 0 else target[cursor[row - 1 + offset]]
            t = cursor[row + offset]
            result = NO_MATCH
            while True:
                if t == begin[state + 1]:
                    if depth == 0:
                        result = NO_MATCH
                        break
                    keep = keeps[state]
                    if keep == KEEP_FAILED:
                        at = (row - low) * failed_words + (state >> 6)
                        failed[at] |= np.int64(1) << np.int64(state & 63)
                    elif keep == KEEP_LIMITS:
                        kept = limit if touched[row + offset] else np.int64(UNBOUNDED)
                        limits[(row - low) * labels + state] = kept
                    elif keep == KEEP_REGISTERS and table.shape[0] > 1:
                        _keep_failed(
                            table, live_begin, live, registers, count, labels, state, row, offset, start, number
                        )
                    depth -= 1
                    row -= 1
                    if has_limit and touched[row + 1 + offset]:
                        touched[row + offset] = 1
                    state = 0 if depth == 0 else target[cursor[row - 1 + offset]]
                    t = cursor[row + offset] + 1
                    continue
                label = target[t]
                guard = guards[t]
                if guard != 0:
                    if guard & NEEDS_START and not (row == low and is_complete):
                        t += 1
                        continue
                    if guard & NEEDS_END:
                        if row < high:
                            t += 1
                            continue
                        if not is_closed:
                            cursor[row + offset] = t
                            result = OPEN
                            break
                if label == DONE:
                    cursor[row + offset] = t
                    result = MATCH
                    break
                if row >= limit:
                    touched[row + offset] = 1
                    t += 1
                    continue
                variable = variables[label]
                if row + ahead[variable] >= high and not is_closed:
                    cursor[row + offset] = t
                    result = OPEN
                    break
                if row >= high:
                    t += 1
                    continue
                steps += 1
                if not (bits[row * words + (variable >> 6)] >> np.int64(variable & 63)) & 1:
                    t += 1
                    continue
                keep = keeps[label]
                if keep == KEEP_FAILED:
                    at = (row + 1 - low) * failed_words + (label >> 6)
                    if (failed[at] >> np.int64(label & 63)) & 1:
                        t += 1
                        continue
                elif keep == KEEP_LIMITS:
                    kept = np.int64(limits[(row + 1 - low) * labels + label])
                    if kept >= limit:
                        if kept != UNBOUNDED:
                            touched[row + offset] = 1
                        t += 1
                        continue
                if count:
                    old, new = (row + offset) * count, (row + 1 + offset) * count
                    overflow = False
                    for k in range(count):
                        registers[new + k] = registers[old + k]
                    for i in range(update_begin[variable], update_begin[variable + 1]):
                        k = update[i]
                        kind, column, source = plans[k, 0], plans[k, 1], plans[k, 2]
                        if kind == opcodes.LAST_ROW:
                            registers[new + k] = row if source < 0 else registers[old + source]
                        elif kind == opcodes.FIRST_ROW:
                            if registers[old + k] < 0 and (source < 0 or registers[old + source] >= 0):
                                registers[new + k] = row
                        else:
                            word = np.int64(0) if column < 0 else data[column, row]
                            if word == NULL_WORD:
                                pass
                            elif kind == opcodes.COUNT_VALUES:
                                registers[new + k] += 1
                            elif kind == opcodes.SUM_INTEGERS:
                                registers[new + k] = add(registers[old + k], word)
                                overflow |= registers[new + k] == NULL_WORD
                            elif kind == opcodes.SUM_DOUBLES:
                                doubles[new + k] = without_negative_zero(doubles[old + k] + data_doubles[column, row])
                            elif registers[old + k] == NULL_WORD:
                                registers[new + k] = word
                            elif kind == opcodes.MINIMUM:
                                registers[new + k] = min(registers[old + k], word)
                            elif kind == opcodes.MAXIMUM:
                                registers[new + k] = max(registers[old + k], word)
                            else:
                                value = data_doubles[column, row]
                                is_less = less(value, doubles[old + k])
                                if is_less == (kind == opcodes.MINIMUM_DOUBLE) and value != doubles[old + k]:
                                    registers[new + k] = word
                    if overflow:
                        result = OVERFLOWED
                        break
                if code_begin[variable + 1] > code_begin[variable]:
                    truth = TRUE
                    base = (row + 1 + offset) * count
                    top = -1
                    at, end = code_begin[variable], code_begin[variable + 1]
                    while at < end:
                        op_code = code[at, 0]
                        a, b = code[at, 1], code[at, 2]
                        at += 1
                        if op_code == opcodes.COMPARE_VALUES:
                            at_reach = code[at, 2]
                            kind, argument, shift = reach[at_reach, 0], reach[at_reach, 1], reach[at_reach, 2]
                            anchored = registers[base + argument] if kind == FROM_REGISTER else start
                            left = row_of(kind, argument, shift, anchored, low, high, is_closed, row, start)
                            at_reach = code[at + 1, 2]
                            kind, argument, shift = reach[at_reach, 0], reach[at_reach, 1], reach[at_reach, 2]
                            anchored = registers[base + argument] if kind == FROM_REGISTER else start
                            right = row_of(kind, argument, shift, anchored, low, high, is_closed, row, start)
                            top += 1
                            if left >= 0 and right >= 0:
                                stack_words[top] = compare_words(
                                    a, data[code[at, 1], left], data[code[at + 1, 1], right]
                                )
                            elif left == NOT_SETTLED or right == NOT_SETTLED:
                                truth = OPEN_ROW
                                break
                            else:
                                stack_words[top] = NULL_WORD
                            at += 2
                        elif op_code == opcodes.VALUE:
                            at_reach = b
                            kind, argument, shift = reach[at_reach, 0], reach[at_reach, 1], reach[at_reach, 2]
                            anchored = registers[base + argument] if kind == FROM_REGISTER else start
                            place = row_of(kind, argument, shift, anchored, low, high, is_closed, row, start)
                            if place == NOT_SETTLED:
                                truth = OPEN_ROW
                                break
                            top += 1
                            stack_words[top] = data[a, place] if place >= 0 else NULL_WORD
                        elif op_code == opcodes.CONSTANT:
                            top += 1
                            stack_words[top] = constants[a]
                        elif op_code == opcodes.REGISTER:
                            top += 1
                            stack_words[top] = registers[base + a]
                        elif op_code == opcodes.COUNT_ROWS:
                            top += 1
                            stack_words[top] = row - start + 1
                        elif op_code == opcodes.MATCH_NUMBER:
                            top += 1
                            stack_words[top] = number
                        elif op_code == opcodes.SUM:
                            top += 1
                            stack_words[top] = registers[base + a] if registers[base + b] > 0 else NULL_WORD
                        elif op_code == opcodes.AVERAGE:
                            top += 1
                            divisor = registers[base + b]
                            stack_words[top] = registers[base + a]
                            if divisor == 0:
                                stack_words[top] = NULL_WORD
                            elif code[at - 1, 3]:
                                stack_doubles[top] = without_negative_zero(stack_doubles[top] / divisor)
                            else:
                                stack_doubles[top] = stack_words[top] / divisor
                        elif op_code == opcodes.CLASSIFIER:
                            at_reach = b
                            kind, argument, shift = reach[at_reach, 0], reach[at_reach, 1], reach[at_reach, 2]
                            anchored = registers[base + argument] if kind == FROM_REGISTER else start
                            place = row_of(kind, argument, shift, anchored, low, high, is_closed, row, start)
                            top += 1
                            stack_words[top] = NULL_WORD
                            if start <= place < row:
                                earlier = target[cursor[place + offset]]
                                stack_words[top] = label_codes[variables[earlier]]
                            elif place == row:
                                stack_words[top] = label_codes[variable]
                        elif op_code == opcodes.COMPARE:
                            top -= 1
                            stack_words[top] = compare_words(a, stack_words[top], stack_words[top + 1])
                        elif op_code == opcodes.COMPARE_DOUBLE or op_code == opcodes.COMPARE_MIXED:
                            top -= 1
                            if stack_words[top] == NULL_WORD or stack_words[top + 1] == NULL_WORD:
                                stack_words[top] = NULL_WORD
                            elif op_code == opcodes.COMPARE_MIXED:
                                stack_words[top] = compare_mixed(a, stack_words[top], stack_doubles[top + 1])
                            else:
                                stack_words[top] = compare_doubles(a, stack_doubles[top], stack_doubles[top + 1])
                        elif op_code == opcodes.AND:
                            top -= 1
                            if stack_words[top] == 0 or stack_words[top + 1] == 0:
                                stack_words[top] = 0
                            elif stack_words[top] == NULL_WORD or stack_words[top + 1] == NULL_WORD:
                                stack_words[top] = NULL_WORD
                        elif op_code == opcodes.OR:
                            top -= 1
                            if stack_words[top] == 1 or stack_words[top + 1] == 1:
                                stack_words[top] = 1
                            elif stack_words[top] == NULL_WORD or stack_words[top + 1] == NULL_WORD:
                                stack_words[top] = NULL_WORD
                        elif op_code == opcodes.NOT:
                            if stack_words[top] != NULL_WORD:
                                stack_words[top] = 1 - stack_words[top]
                        elif op_code == opcodes.IS_NULL:
                            stack_words[top] = np.int64(stack_words[top] == NULL_WORD)
                        elif op_code == opcodes.CASE:
                            top -= 2
                            stack_words[top] = stack_words[top + 1] if stack_words[top] == 1 else stack_words[top + 2]
                        elif op_code >= opcodes.GREATEST and op_code <= opcodes.COALESCE:
                            top -= 1
                            choose(op_code, stack_words, stack_doubles, top)
                        elif op_code >= opcodes.NEGATE_DOUBLE and op_code != opcodes.POWER:
                            if stack_words[top] != NULL_WORD:
                                change_double(op_code, stack_words, stack_doubles, top)
                        elif op_code == opcodes.NEGATE or op_code == opcodes.ABSOLUTE:
                            if stack_words[top] != NULL_WORD and (op_code == opcodes.NEGATE or stack_words[top] < 0):
                                stack_words[top] = -stack_words[top]
                        elif op_code == opcodes.TO_DOUBLE:
                            if stack_words[top] != NULL_WORD:
                                scaled = np.float64(stack_words[top])
                                stack_words[top], stack_words[top + 1] = constants[a], constants[b]
                                stack_doubles[top] = scaled * stack_doubles[top] / stack_doubles[top + 1]
                        elif op_code == opcodes.SCALE:
                            if stack_words[top] != NULL_WORD:
                                stack_words[top] = multiply(stack_words[top], constants[a])
                                if stack_words[top] == NULL_WORD:
                                    truth = OVERFLOW
                                    break
                        else:
                            top -= 1
                            if stack_words[top] == NULL_WORD or stack_words[top + 1] == NULL_WORD:
                                stack_words[top] = NULL_WORD
                            elif op_code <= opcodes.REMAINDER:
                                stack_words[top] = integers(op_code, stack_words[top], stack_words[top + 1])
                                if b and stack_words[top] == NULL_WORD and op_code != opcodes.REMAINDER:
                                    truth = OVERFLOW
                                    break
                            else:
                                combine_doubles(op_code, stack_words, stack_doubles, top)
                    if truth == TRUE and stack_words[0] != 1:
                        truth = NOT_TRUE
                    if truth == NOT_TRUE:
                        t += 1
                        continue
                    if truth != TRUE:
                        cursor[row + offset] = t
                        result = OPEN if truth == OPEN_ROW else OVERFLOWED
                        break
                if (
                    keep == KEEP_REGISTERS
                    and table.shape[0] > 1
                    and _has_failed(
                        table, live_begin, live, registers, count, labels, label, row + 1, offset, start, number
                    )
                ):
                    t += 1
                    continue
                cursor[row + offset] = t
                depth += 1
                row += 1
                state = label
                t = begin[state]
                if has_limit:
                    touched[row + offset] = 0
                if steps >= max_steps:
                    cursor[row + offset] = t
                    result = TOO_MANY_STEPS
                    break
            if result == MATCH:
                _report(output, start, depth, number, p)
                for i in range(depth):
                    out_labels[sizes[1] + i] = target[cursor[start + i + offset]]
                sizes[1] += depth
                covered[p] = max(covered[p], start + max(depth, 1))
                number += 1
                following = np.int64(-1)
                if depth == 0 or rules.skip == TO_NEXT_ROW:
                    following = start + 1
                elif rules.skip == PAST_LAST_ROW:
                    following = start + depth
                else:
                    for i in range(depth):
                        at = i if rules.skip == TO_FIRST else depth - 1 - i
                        if rules.skip_variables[variables[target[cursor[start + at + offset]]]]:
                            following = start + at if at else np.int64(-2)
                            break
                depth = -1
                if following < 0 and rules.skip_errors:
                    starts[p], depths[p] = start, depth
                    return SKIP_ABSENT if following == -1 else SKIP_TO_FIRST_ROW, p
                start = following if following >= 0 else start + 1
            elif result == NO_MATCH:
                if rules.unmatched and start >= covered[p]:
                    _report(output, start, 0, 0, p)
                start += 1
                depth = -1
            else:
                break
        starts[p], depths[p], numbers[p], all_steps[p] = start, depth, number - 1, steps
        if start < high and result > OPEN:
            if result == TOO_MANY_STEPS and steps < rules.max_steps_per_row * (high - low + 1):
                return NEED_TABLE, p
            return result, p
    return FINISHED, bounds.size - 1
