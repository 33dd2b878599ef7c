"""Plan the registers that conditions of the match read: the rows of labels, and running aggregates.

A register belongs to a depth of the search: it has a value for each number of consumed rows, so that going back costs
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamsift.physical.row_match import opcodes
from streamsift.physical.row_match.program import DONE, RowProgram

START = -1  # in a set of registers: the first row of the match
NUMBER = -2  # the number of the match
PATH = -3  # all labels so far


@dataclass(frozen=True, slots=True)
class Register:
    """A value along a match. Labels are sorted variables; none means every row."""

    kind: int  # one of the numbers in `opcodes`
    labels: tuple[int, ...]
    column: int = -1  # the column that is aggregated
    source: int = -1  # another register

    def reads_label(self, variable: int) -> bool:
        return not self.labels or variable in self.labels


class Registers:
    """The registers of all conditions of a clause; equal ones are shared."""

    def __init__(self) -> None:
        self.registers: list[Register] = []

    def add(self, register: Register) -> int:
        """Return the number of a register, a new one if there is none."""
        if register not in self.registers:
            self.registers.append(register)
        return self.registers.index(register)

    def last_row(self, labels: tuple[int, ...], offset: int) -> int:
        source = -1
        for _ in range(offset + 1):
            source = self.add(Register(opcodes.LAST_ROW, labels, source=source))
        return source

    def first_row(self, labels: tuple[int, ...], offset: int) -> int:
        source = -1
        for _ in range(offset + 1):
            source = self.add(Register(opcodes.FIRST_ROW, labels, source=source))
        return source


def updates(registers: tuple[Register, ...], variable: int) -> tuple[int, ...]:
    """Return the registers that change when the variable consumes a row; a register comes before those it reads."""
    return tuple(k for k in reversed(range(len(registers))) if registers[k].reads_label(variable))


def live_registers(
    program: RowProgram, registers: tuple[Register, ...], reads: tuple[frozenset[int], ...]
) -> tuple[frozenset[int], ...]:
    """Return, for each state, the registers on which the rest of a match depends.

    `reads[variable]` are those that its condition reads, with the row under test counted as bound. A state depends on
    what the next labels read, as it was before they consumed their row.
    """
    live: list[frozenset[int]] = [frozenset()] * len(program.follow)
    if not any(reads):
        return tuple(live)
    changed = True
    while changed:
        changed = False
        for state in reversed(range(len(live))):
            needed: set[int] = set()
            for target, _ in program.follow[state]:
                if target != DONE:
                    variable = program.variables[target]
                    for register in reads[variable] | live[target]:
                        needed |= _before(registers, register, variable)
            if not needed <= live[state]:
                live[state] = live[state] | needed
                changed = True
    return tuple(live)


def _before(registers: tuple[Register, ...], register: int, variable: int) -> set[int]:
    """Return the registers from which a register is computed when the variable consumes a row."""
    if register < 0 or not registers[register].reads_label(variable):
        return {register}
    plan = registers[register]
    if plan.kind == opcodes.LAST_ROW:
        return set() if plan.source < 0 else {plan.source}
    if plan.kind == opcodes.FIRST_ROW and plan.source >= 0:
        return {register, plan.source}
    return {register}
