"""Describe the plan of a row pattern: its program, and how each condition is evaluated and why."""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.logical.row_match.bound import RowExpr
from streamsift.physical.row_match import opcodes
from streamsift.physical.row_match.conditions import reason
from streamsift.physical.row_match.plan import RowPlan
from streamsift.physical.row_match.program import Instruction, Op
from streamsift.physical.row_match.registers import NUMBER, START

MAX_LINES = 60  # of a program
REGISTER_NAMES = {
    opcodes.LAST_ROW: "last row",
    opcodes.FIRST_ROW: "first row",
    opcodes.COUNT_VALUES: "count",
    opcodes.SUM_INTEGERS: "sum",
    opcodes.SUM_DOUBLES: "sum",
    opcodes.MINIMUM: "minimum",
    opcodes.MINIMUM_DOUBLE: "minimum",
    opcodes.MAXIMUM: "maximum",
    opcodes.MAXIMUM_DOUBLE: "maximum",
}


def explain_rows(plan: RowPlan) -> list[str]:
    """Return the lines of the plan: Program, Conditions and Failed states."""
    return ["Program", *_program(plan), "Conditions", *_conditions(plan), "Failed states", *_failed_states(plan)]


def _program(plan: RowPlan) -> Iterator[str]:
    instructions = plan.program.instructions
    for at, instruction in enumerate(instructions[:MAX_LINES]):
        yield f"  {at:>3} {_instruction(plan, at, instruction)}"
    if len(instructions) > MAX_LINES:
        yield f"  … {len(instructions) - MAX_LINES:,} more instructions"


def _instruction(plan: RowPlan, at: int, instruction: Instruction) -> str:
    first, second = instruction.first, instruction.second
    match instruction.op:
        case Op.LABEL:
            return f"label {plan.bound.labels[first]}{', excluded' if instruction.excluded else ''}"
        case Op.SPLIT:
            return f"split {first}, else {second}"
        case Op.JUMP:
            return f"jump {first}"
        case Op.ENTER:
            return f"enter loop {first}"
        case Op.CHECK:
            return f"check loop {first}: without a row, jump {second}"
        case _:
            return str(instruction.op.value)


def _conditions(plan: RowPlan) -> Iterator[str]:
    for variable, condition in enumerate(plan.conditions):
        label = plan.bound.labels[variable]
        if not condition.of_row and not condition.of_match:
            yield f"  {label}: true of every row"
        if condition.of_row:
            texts = " AND ".join(_text(plan, part) for part in condition.of_row)
            yield f"  {label}: a bit of the row: {texts}"
        for part in condition.of_match:
            yield f"  {label}: tested in the match, because {reason(part)}: {_text(plan, part)}"
    if plan.bound.within is not None:
        yield f"  every label: WITHIN {plan.bound.within.text}, an end of the window for each first row"
    registers = plan.match_code.registers
    if registers:
        yield "  registers: " + ", ".join(_register(plan, number) for number in range(len(registers)))


def _text(plan: RowPlan, part: RowExpr) -> str:
    text = plan.bound.text[part.span.start : part.span.end]
    return " ".join(text.split()) or "(condition)"


def _register(plan: RowPlan, number: int) -> str:
    if number == START:
        return "first row of the match"
    if number == NUMBER:
        return "number of the match"
    register = plan.match_code.registers[number]
    labels = ", ".join(plan.bound.labels[v] for v in register.labels) or "any row"
    column = f" of {plan.match_code.sources[register.column].column}" if register.column >= 0 else ""
    before = " before it" if register.source >= 0 else ""
    return f"{REGISTER_NAMES[register.kind]}{column} ({labels}){before}"


def _failed_states(plan: RowPlan) -> Iterator[str]:
    if opcodes.KEEP_FAILED in plan.keeps:
        yield "  kept across starts, because what follows depends on the rows alone"
    if opcodes.KEEP_LIMITS in plan.keeps:
        yield "  kept across starts, with the end of the WITHIN interval up to which they failed"
    if opcodes.KEEP_REGISTERS in plan.keeps:
        live = sorted(set().union(*plan.live))
        yield "  kept with the values that the rest reads: " + ", ".join(_register(plan, n) for n in live)
    if opcodes.FORGET in plan.keeps:
        yield "  not kept, because CLASSIFIER() depends on all labels so far"
