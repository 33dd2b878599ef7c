"""Compile a row pattern to a program: instructions in order of preference, and the labels that may follow each label.

The instructions are those of a backtracking matcher. The kernel does not interpret them: between two rows, it needs
only the labels that can come next, in order of preference. These lists are computed here, and a label is listed once: a
second way to it at the same row would fail as the first one did.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import permutations

from streamsift.errors import Span, UnsupportedQuery
from streamsift.logical.row_match.bound import (
    AtEnd,
    AtStart,
    BoundRowPattern,
    Either,
    Exclude,
    Label,
    Loop,
    Permute,
    Then,
)

MAX_INSTRUCTIONS = 10_000
MAX_TRANSITIONS = 4_000_000
DONE = 0  # the target of a transition that ends the match
NEEDS_START = 1  # guard: the row is the first of its partition
NEEDS_END = 2  # guard: the partition has no more rows


class Op(Enum):
    """What an instruction does; an operand is the number of an instruction."""

    LABEL = "label"  # test the row against a variable and consume it
    SPLIT = "split"  # go on at the first operand; if that fails, at the second
    JUMP = "jump"  # go on at the operand
    ENTER = "enter"  # begin an iteration of a loop whose body can be empty
    CHECK = "check"  # end such an iteration: leave the loop if it consumed no row
    START = "start"  # only at the first row of the partition
    END = "end"  # only after the last row of the partition
    DONE = "done"  # the match is complete


@dataclass(slots=True)
class Instruction:
    op: Op
    first: int = -1  # LABEL: the variable; ENTER, CHECK: the loop; SPLIT, JUMP: the target
    second: int = -1  # SPLIT: the second target; CHECK: the exit of the loop
    excluded: bool = False  # LABEL: inside {- -}


@dataclass(frozen=True, slots=True)
class RowProgram:
    """A compiled pattern.

    State 0 is the start of a match, state p > 0 the state after label p has consumed a row. `follow[state]` lists
    (target, guard) in order of preference: the target is a label or DONE.
    """

    instructions: tuple[Instruction, ...]
    variables: tuple[int, ...]  # of each label; label 0 does not exist, its entry is -1
    excluded: tuple[bool, ...]  # of each label
    follow: tuple[tuple[tuple[int, int], ...], ...]


def compile_pattern(pattern: BoundRowPattern, text: str) -> RowProgram:
    """Return the program of a pattern; raise UnsupportedQuery if it is too large."""
    code = _Code(text, pattern.span)
    code.compile(pattern, excluded=False)
    code.emit(Op.DONE)
    labels = [at for at, instruction in enumerate(code.instructions) if instruction.op is Op.LABEL]
    number = {at: p for p, at in enumerate(labels, 1)}
    follow: list[tuple[tuple[int, int], ...]] = []
    total = 0
    for at in (-1, *labels):
        follow.append(_next_labels(code.instructions, at + 1, number, is_start=at < 0))
        total += len(follow[-1])
        if total > MAX_TRANSITIONS:
            raise code.too_large()
    variables = (-1, *(code.instructions[at].first for at in labels))
    excluded = (False, *(code.instructions[at].excluded for at in labels))
    return RowProgram(tuple(code.instructions), variables, excluded, tuple(follow))


class _Code:
    """The instructions emitted so far."""

    def __init__(self, text: str, span: Span) -> None:
        self.instructions: list[Instruction] = []
        self._text, self._span = text, span
        self._loops = 0

    def too_large(self) -> UnsupportedQuery:
        return UnsupportedQuery(
            f"the pattern compiles to more than {MAX_INSTRUCTIONS:,} instructions",
            self._text,
            self._span,
            "use smaller bounds in quantifiers and shorter lists in PERMUTE.",
        )

    def emit(self, op: Op, first: int = -1, second: int = -1, excluded: bool = False) -> int:
        """Append an instruction and return its number."""
        if len(self.instructions) >= MAX_INSTRUCTIONS:
            raise self.too_large()
        self.instructions.append(Instruction(op, first, second, excluded))
        return len(self.instructions) - 1

    def compile(self, node: BoundRowPattern, excluded: bool) -> None:
        match node:
            case Label(variable=variable):
                self.emit(Op.LABEL, variable, excluded=excluded)
            case Then(parts=parts):
                for part in parts:
                    self.compile(part, excluded)
            case Either(branches=branches):
                self._either(branches, excluded)
            case Permute(parts=parts):
                self._permute(parts, excluded)
            case Exclude(part=part):
                self.compile(part, excluded=True)
            case Loop():
                self._loop(node, excluded)
            case AtStart():
                self.emit(Op.START)
            case AtEnd():
                self.emit(Op.END)

    def _either(self, branches: tuple[BoundRowPattern, ...], excluded: bool) -> None:
        jumps = []
        for branch in branches[:-1]:
            split = self.emit(Op.SPLIT)
            self.instructions[split].first = split + 1
            self.compile(branch, excluded)
            jumps.append(self.emit(Op.JUMP))
            self.instructions[split].second = len(self.instructions)
        self.compile(branches[-1], excluded)
        for jump in jumps:
            self.instructions[jump].first = len(self.instructions)

    def _permute(self, parts: tuple[BoundRowPattern, ...], excluded: bool) -> None:
        if len(parts) <= 1:
            for part in parts:
                self.compile(part, excluded)
        elif all(isinstance(part, Label) for part in parts):
            # Orders that begin alike share their beginning: a single label consumes a row in one way only.
            rest = [parts[:i] + parts[i + 1 :] for i in range(len(parts))]
            branches = tuple(Then((part, Permute(others))) for part, others in zip(parts, rest, strict=True))
            self._either(branches, excluded)
        else:
            self._orders(parts, excluded)

    def _orders(self, parts: tuple[BoundRowPattern, ...], excluded: bool) -> None:
        """Compile every order by itself: the first order is tried in all its ways before the second one."""
        jumps, split = [], -1
        for order in permutations(parts):
            if split >= 0:
                self.instructions[split].second = len(self.instructions)
            split = self.emit(Op.SPLIT, len(self.instructions) + 1)
            self.compile(Then(order), excluded)
            jumps.append(self.emit(Op.JUMP))
        # The last order has no alternative.
        self.instructions[split] = Instruction(Op.JUMP, split + 1)
        for jump in jumps:
            self.instructions[jump].first = len(self.instructions)

    def _loop(self, loop: Loop, excluded: bool) -> None:
        """Unroll up to the minimum, then repeat: forever, or once for each iteration up to the maximum."""
        if loop.high == 0:
            return
        leaving: list[tuple[int, str]] = []  # instructions to patch with the end of the loop, and their operand
        empty = _can_be_empty(loop.part)
        for iteration in range(1, loop.low + 1):
            self._iteration(loop, excluded, leaving if empty and iteration == loop.low else None)
        if loop.high is None:
            start = self._choice(loop, leaving)
            self._iteration(loop, excluded, leaving if empty else None)
            self.emit(Op.JUMP, start)
        else:
            for _ in range(loop.high - loop.low):
                self._choice(loop, leaving)
                self._iteration(loop, excluded, leaving if empty else None)
        for at, operand in leaving:
            setattr(self.instructions[at], operand, len(self.instructions))

    def _choice(self, loop: Loop, leaving: list[tuple[int, str]]) -> int:
        """Emit the choice between one more iteration and the end of the loop."""
        split = self.emit(Op.SPLIT)
        stay, leave = ("first", "second") if loop.greedy else ("second", "first")
        setattr(self.instructions[split], stay, split + 1)
        leaving.append((split, leave))
        return split

    def _iteration(self, loop: Loop, excluded: bool, leaving: list[tuple[int, str]] | None) -> None:
        """Compile the body; with `leaving`, an iteration that consumes no row ends the loop."""
        if leaving is None:
            self.compile(loop.part, excluded)
            return
        number, self._loops = self._loops, self._loops + 1
        self.emit(Op.ENTER, number)
        self.compile(loop.part, excluded)
        leaving.append((self.emit(Op.CHECK, number), "second"))


def _can_be_empty(node: BoundRowPattern) -> bool:
    match node:
        case Label():
            return False
        case Then(parts=parts) | Permute(parts=parts):
            return all(map(_can_be_empty, parts))
        case Either(branches=branches):
            return any(map(_can_be_empty, branches))
        case Exclude(part=part):
            return _can_be_empty(part)
        case Loop(part=part, low=low):
            return low == 0 or _can_be_empty(part)
    return True


def _next_labels(
    code: list[Instruction], begin: int, number: dict[int, int], *, is_start: bool
) -> tuple[tuple[int, int], ...]:
    """Return the labels that can follow, and DONE, in order of preference, each with its guard.

    A path is an instruction, the loops in whose current iteration no row was consumed, and a guard. A path that was
    taken before leads nowhere else.
    """
    following: list[tuple[int, int]] = []
    taken: set[tuple[int, frozenset[int], int]] = set()
    paths: list[tuple[int, frozenset[int], int]] = [(begin, frozenset(), 0)]
    guards: dict[int, list[int]] = {}
    while paths:
        path = paths.pop()
        if path in taken:
            continue
        taken.add(path)
        at, entered, guard = path
        instruction = code[at]
        match instruction.op:
            case Op.SPLIT:
                paths.append((instruction.second, entered, guard))
                paths.append((instruction.first, entered, guard))
            case Op.JUMP:
                paths.append((instruction.first, entered, guard))
            case Op.ENTER:
                paths.append((at + 1, entered | {instruction.first}, guard))
            case Op.CHECK:
                is_empty = instruction.first in entered
                paths.append((instruction.second if is_empty else at + 1, entered - {instruction.first}, guard))
            case Op.START:
                if is_start:
                    paths.append((at + 1, entered, guard | NEEDS_START))
            case Op.END:
                paths.append((at + 1, entered, guard | NEEDS_END))
            case Op.LABEL | Op.DONE:
                target = number.get(at, DONE)
                earlier = guards.setdefault(target, [])
                if (target == DONE or not guard & NEEDS_END) and not any(guard & e == e for e in earlier):
                    earlier.append(guard)
                    following.append((target, guard))
                    if target == DONE and guard == 0:
                        break
    return tuple(following)
