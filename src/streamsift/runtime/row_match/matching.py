"""Run the matcher over sorted rows, and return matches in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from streamsift.errors import BadInputError, QueryError
from streamsift.language.row_match.syntax import RowsPerMatch, SkipTo
from streamsift.physical.row_match import RowPlan, opcodes
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.resources import reserve
from streamsift.runtime.row_match import kernel
from streamsift.runtime.row_match.bits import condition_bits
from streamsift.runtime.row_match.order import SortedRows, descriptive_key
from streamsift.runtime.row_match.window import window_limits
from streamsift.runtime.row_match.words import condition_words

CHUNK_LABELS = 1 << 21  # rows of the matches of a chunk, unless one match has more
CHUNK_MATCHES = 1 << 20
MAX_TABLE = 1 << 21  # states that are kept with registers
STACK_WORDS = 256
SKIPS = {
    SkipTo.PAST_LAST_ROW: kernel.PAST_LAST_ROW,
    SkipTo.NEXT_ROW: kernel.TO_NEXT_ROW,
    SkipTo.FIRST: kernel.TO_FIRST,
    SkipTo.LAST: kernel.TO_LAST,
}


@dataclass(frozen=True, slots=True)
class RowMatches:
    """Matches and unmatched rows, within a partition in order of their first row.

    Length 0 is an empty match, number 0 an unmatched row. `labels` holds the labels of the program of the rows of all
    matches; those of match m begin at offsets[m].
    """

    start: Int64
    length: Int64
    number: Int64
    partition: Int32
    labels: Int32
    offsets: Int64


def compiled(plan: RowPlan, constants: Int64, label_codes: Int64) -> kernel.Program:
    """Return the arrays of a program."""
    program, code = plan.program, plan.match_code
    transitions = [transition for follow in program.follow for transition in follow]
    variables = range(len(plan.conditions))
    changes = [_updates(plan, variable) for variable in variables]
    live = [sorted(registers) for registers in plan.live]
    return kernel.Program(
        begin=_begins(program.follow),
        target=np.array([target for target, _ in transitions], np.int32),
        guard=np.array([guard for _, guard in transitions], np.int8),
        variable=np.array(program.variables, np.int32),
        keep=np.array(plan.keeps, np.int8),
        live_begin=_begins(live),
        live=np.array([register for registers in live for register in registers] or [0], np.int32),
        update_begin=_begins(changes),
        update=np.array([register for registers in changes for register in registers] or [0], np.int32),
        registers=np.array([(r.kind, r.column, r.source) for r in code.registers], np.int64).reshape(-1, 3),
        code_begin=_begins(code.code),
        code=np.array([i for instructions in code.code for i in instructions] or [(0, 0, 0, 0)], np.int64),
        reach=np.array([(t.start, t.argument, t.shift) for t in code.targets] or [(0, 0, 0)], np.int64),
        constants=constants,
        label_codes=label_codes,
        ahead=np.array(plan.ahead, np.int64),
    )


def _updates(plan: RowPlan, variable: int) -> list[int]:
    return [k for k, register in enumerate(plan.match_code.registers) if register.reads_label(variable)]


def _begins(lists: object) -> Int64:
    assert isinstance(lists, tuple | list)
    return np.concatenate(([0], np.cumsum([len(each) for each in lists]))).astype(np.int64)


def prepare(plan: RowPlan, rows: SortedRows) -> tuple[kernel.Program, kernel.RowWords]:
    """Evaluate all that does not depend on the match."""
    bits, words = condition_bits(plan, rows)
    data, constants, label_codes = condition_words(plan, rows)
    limit = np.zeros(0, np.int64)
    if plan.bound.within is not None:
        limit = window_limits(rows, plan.bound.order_by[0].column, plan.bound.within)
    return compiled(plan, constants, label_codes), kernel.RowWords(bits, words, data, limit)


def memory_for(plan: RowPlan, longest: int, table_rows: int = 1) -> kernel.Memory:
    """Return memory for failed states of partitions of up to `longest` rows."""
    labels = len(plan.program.variables)
    failed = limits = 0
    if opcodes.KEEP_FAILED in plan.keeps:
        failed = (longest + 1) * ((labels + 63) // 64)
    if opcodes.KEEP_LIMITS in plan.keeps:
        limits = (longest + 1) * labels
    reserve(
        8 * failed + 4 * limits, "the failed states of a row pattern", "use a shorter pattern or smaller partitions"
    )
    table_rows = table_rows if opcodes.KEEP_REGISTERS in plan.keeps else 2
    width = 1 + max(map(len, plan.live))
    table = np.full((table_rows, width if table_rows > 1 else 1), -1, np.int64)
    return kernel.Memory(np.zeros(failed, np.int64), np.zeros(limits, np.int32), table, labels)


def stack_for(plan: RowPlan, rows: int, partitions: int) -> kernel.Stack:
    """Return an empty stack beside the rows."""
    size, registers = rows + partitions + 1, len(plan.match_code.registers)
    within = plan.bound.within is not None
    reserve(size * (4 + 8 * registers), "the rows and aggregates of open matches", "use smaller partitions")
    return kernel.Stack(
        np.zeros(size, np.int32),
        np.empty(max(1, size * registers), np.int64),
        np.ones(size if within else 1, np.int8),
        np.zeros(STACK_WORDS, np.int64),
    )


def rules_of(plan: RowPlan) -> kernel.Rules:
    skip_variables = np.zeros(len(plan.conditions), np.bool_)
    skip_variables[list(plan.bound.skip_labels)] = True
    return kernel.Rules(
        skip=SKIPS[plan.bound.skip_to],
        skip_variables=skip_variables,
        skip_errors=plan.bound.skip_error != "next",
        unmatched=plan.bound.rows_per_match is RowsPerMatch.WITH_UNMATCHED,
        max_steps_per_row=plan.max_steps_per_row,
    )


@dataclass(slots=True)
class Run:
    """A run over the rows of some partitions."""

    plan: RowPlan
    rows: SortedRows
    program: kernel.Program
    columns: kernel.RowWords
    memory: kernel.Memory
    stack: kernel.Stack
    searches: kernel.Searches
    closed: Bool
    complete: Bool

    def matches(self) -> Iterator[RowMatches]:
        """Yield matches in chunks; raise if the pattern takes too many steps, or if there is no row to skip to."""
        bounds, first, result = self.rows.bounds, 0, kernel.OUTPUT_FULL
        longest = int(np.diff(bounds).max(initial=0))
        rows = int(bounds[-1])
        labels = max(longest, min(CHUNK_LABELS, rows))
        while result != kernel.FINISHED:
            output = _output(min(CHUNK_MATCHES, rows + 1), labels + longest)
            result, first = kernel.run(
                self.program,
                self.columns,
                self.memory,
                self.stack,
                kernel.PartitionBounds(bounds, self.closed, self.complete),
                self.searches,
                rules_of(self.plan),
                output,
                first,
            )
            if result == kernel.NEED_TABLE:
                size = 1 << max(10, min(MAX_TABLE, 8 * longest).bit_length())
                width = 1 + max(map(len, self.plan.live))
                self.memory = self.memory._replace(table=np.full((size, width), -1, np.int64))
            elif result not in (kernel.FINISHED, kernel.OUTPUT_FULL):
                self._fail(result, int(self.searches.start[first]))
            if output.sizes[0]:
                yield _trimmed(output)

    def _fail(self, result: int, row: int) -> NoReturn:
        bound = self.plan.bound
        key = descriptive_key(self.rows, bound.partition_by, row)
        if result == kernel.TOO_MANY_STEPS:
            raise QueryError(
                f"the pattern takes more than {self.plan.max_steps_per_row:,} steps per row, in {key}",
                bound.text,
                bound.pattern.span,
                "limit its loops, add conditions or WITHIN, or raise max_steps_per_row.",
            )
        if result == kernel.OVERFLOWED:
            raise BadInputError(
                f"arithmetic overflow: a value of a condition does not fit in 64 bits, in {key}, in the match that"
                f" begins at {self._describe(row)}\nHint: cast the columns to DOUBLE."
            )
        names = [bound.labels[variable] for variable in bound.skip_labels]
        where = "is absent from" if result == kernel.SKIP_ABSENT else "is at the first row of"
        raise BadInputError(
            f"AFTER MATCH SKIP TO {' or '.join(names)}: the variable {where} the match in {key} that begins at"
            f" {self._describe(row)}\n"
            'Hint: skip to a variable that every match has after its first row, or set on_skip_error="next".'
        )

    def _describe(self, row: int) -> str:
        """Return the order values of a row."""
        names = [key.column for key in self.plan.bound.order_by]
        return ", ".join(f"{n} = {self.rows.table.column(n)[row].as_py()}" for n in names) or f"row {row}"


def start_run(plan: RowPlan, rows: SortedRows) -> Run:
    """Prepare a run over complete partitions."""
    program, columns = prepare(plan, rows)
    bounds = rows.bounds
    count = bounds.size - 1
    searches = kernel.Searches(
        start=bounds[:-1].copy(),
        depth=np.full(count, -1, np.int64),
        number=np.zeros(count, np.int64),
        covered=bounds[:-1].copy(),
        steps=np.zeros(count, np.int64),
        fresh=np.ones(count, np.int8),
    )
    memory = memory_for(plan, int(np.diff(bounds).max(initial=0)))
    stack = stack_for(plan, int(bounds[-1]), count)
    always = np.ones(count, np.bool_)
    return Run(plan, rows, program, columns, memory, stack, searches, always, always)


def _output(matches: int, labels: int) -> kernel.Output:
    return kernel.Output(
        np.empty(matches, np.int64),
        np.empty(matches, np.int64),
        np.empty(matches, np.int64),
        np.empty(matches, np.int32),
        np.empty(labels, np.int32),
        np.zeros(2, np.int64),
    )


def _trimmed(output: kernel.Output) -> RowMatches:
    count, labels = int(output.sizes[0]), int(output.sizes[1])
    length = output.length[:count]
    offsets = np.concatenate(([0], np.cumsum(length)))
    return RowMatches(
        output.start[:count], length, output.number[:count], output.partition[:count], output.labels[:labels], offsets
    )


def empty_matches() -> RowMatches:
    return _trimmed(_output(1, 1))
