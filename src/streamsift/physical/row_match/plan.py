"""Plan how a row pattern is matched: its program, which conditions are bits, and which failed states are kept."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from streamsift.language.row_match.syntax import RowsPerMatch
from streamsift.logical.row_match.bound import BoundRows
from streamsift.physical.row_match import opcodes
from streamsift.physical.row_match.conditions import Split, rows_ahead, rows_behind, split
from streamsift.physical.row_match.match_code import MatchCode, compile_conditions
from streamsift.physical.row_match.program import RowProgram, compile_pattern
from streamsift.physical.row_match.registers import PATH, START, live_registers

MAX_STEPS_PER_ROW = 10_000


@dataclass(frozen=True, slots=True)
class RowPlan:
    """How the rows of a clause are matched.

    `conditions[v]` splits the condition of variable v; `live[state]` holds the registers on which the rest of a match
    depends after that state, and `keeps[state]` how failed states are kept (a number of `opcodes`).
    """

    bound: BoundRows
    program: RowProgram
    conditions: tuple[Split, ...]
    match_code: MatchCode
    live: tuple[frozenset[int], ...]
    keeps: tuple[int, ...]
    ahead: tuple[int, ...]  # for each variable: the rows after the row under test that its condition reads
    behind: int  # the rows before the first row of a match that conditions and measures may read
    max_steps_per_row: int = MAX_STEPS_PER_ROW

    @property
    def output(self) -> pa.Schema:
        return self.bound.output

    @property
    def all_rows(self) -> bool:
        return self.bound.rows_per_match is not RowsPerMatch.ONE


def plan_rows(bound: BoundRows, max_steps_per_row: int = MAX_STEPS_PER_ROW) -> RowPlan:
    """Return the plan of a clause; raise UnsupportedQuery if it cannot be evaluated."""
    program = compile_pattern(bound.pattern, bound.text)
    conditions = tuple(split(condition) for condition in bound.conditions)
    match_code = compile_conditions(bound, tuple(condition.of_match for condition in conditions))
    live = live_registers(program, match_code.registers, match_code.reads)
    keeps = tuple(_keep(registers, within=bound.within is not None) for registers in live)
    if bound.within is not None:
        live = tuple(registers | {START} for registers in live)
    parts = [condition.of_row + condition.of_match for condition in conditions]
    measures = tuple(measure.expression for measure in bound.measures)
    return RowPlan(
        bound,
        program,
        conditions,
        match_code,
        live,
        keeps,
        tuple(rows_ahead(part) for part in parts),
        max(rows_behind(part) for part in (*parts, measures)),
        max_steps_per_row,
    )


def _keep(live: frozenset[int], *, within: bool) -> int:
    if PATH in live:
        return opcodes.FORGET
    if live:
        return opcodes.KEEP_REGISTERS
    return opcodes.KEEP_LIMITS if within else opcodes.KEEP_FAILED
