"""Compile conditions of the match to instructions on words, with static types.

Integers, decimals, instants and durations are exact: a word counts units, such as hundredths or microseconds. Before
two of them are compared or added, the coarser one is scaled. Strings are compared by their codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import gcd

import pyarrow as pa

from streamsift.errors import Span, UnsupportedQuery
from streamsift.logical.bound import Kind, Scalar
from streamsift.logical.durations import units_per_second
from streamsift.logical.row_match.bound import (
    Anchor,
    BoundRows,
    Classifier,
    MatchNumber,
    RowAggregate,
    RowConstant,
    RowExpr,
    RowOperation,
    RowReach,
    RowValue,
)
from streamsift.physical.row_match import opcodes
from streamsift.physical.row_match.registers import NUMBER, PATH, START, Register, Registers

MIN_WORD, MAX_WORD = -(2**63) + 1, 2**63 - 1


class WordKind(Enum):
    """What a word means."""

    EXACT = "exact"  # a count of units
    DOUBLE = "double"
    TEXT = "text"  # the code of a string
    TRUTH = "truth"
    PRESENT = "present"  # 0: only null or not null is known
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Word:
    """The static type of a word; exact ones count `unit`, instants and durations in seconds."""

    kind: WordKind
    unit: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Source:
    """A column that the matcher reads, as words."""

    column: str
    word: Word


@dataclass(frozen=True, slots=True)
class Target:
    """A row that a condition reads: where it starts, a register or an offset, and the shift from there."""

    start: int  # a FROM_* number of `opcodes`
    argument: int
    shift: int


Instruction = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class MatchCode:
    """The conditions of the match of all variables, compiled.

    `code[v]` is empty if variable v has none. Constants are words, or strings whose codes are known with the data.
    """

    code: tuple[tuple[Instruction, ...], ...]
    reads: tuple[frozenset[int], ...]
    registers: tuple[Register, ...]
    sources: tuple[Source, ...]
    targets: tuple[Target, ...]
    constants: tuple[int | float | str, ...]


COMPARISONS = {
    "=": opcodes.EQUAL,
    "!=": opcodes.UNEQUAL,
    "<": opcodes.LESS,
    "<=": opcodes.LESS_EQUAL,
    ">": opcodes.GREATER,
    ">=": opcodes.GREATER_EQUAL,
}
SWAPPED = {
    opcodes.EQUAL: opcodes.EQUAL,
    opcodes.UNEQUAL: opcodes.UNEQUAL,
    opcodes.LESS: opcodes.GREATER,
    opcodes.LESS_EQUAL: opcodes.GREATER_EQUAL,
    opcodes.GREATER: opcodes.LESS,
    opcodes.GREATER_EQUAL: opcodes.LESS_EQUAL,
}
EXACT_OPS = {
    "+": (opcodes.ADD, opcodes.ADD_DOUBLE),
    "-": (opcodes.SUBTRACT, opcodes.SUBTRACT_DOUBLE),
    "*": (opcodes.MULTIPLY, opcodes.MULTIPLY_DOUBLE),
    "%": (opcodes.REMAINDER, opcodes.REMAINDER_DOUBLE),
}
UNARY_DOUBLE = {"sqrt": opcodes.SQUARE_ROOT, "log": opcodes.LOGARITHM, "exp": opcodes.EXPONENTIAL}
EXACT, DOUBLE, TEXT, TRUTH = (Word(kind) for kind in (WordKind.EXACT, WordKind.DOUBLE, WordKind.TEXT, WordKind.TRUTH))
NULL = Word(WordKind.NULL)
NO_VALUE = RowConstant(None, Kind.NULL)


def compile_conditions(bound: BoundRows, parts: tuple[tuple[RowExpr, ...], ...]) -> MatchCode:
    """Compile the parts of the match of every variable; raise UnsupportedQuery for what has no instruction."""
    compiler = _Compiler(bound)
    code, reads = [], []
    for conjuncts in parts:
        instructions, registers = compiler.condition(conjuncts)
        code.append(instructions)
        reads.append(registers)
    return MatchCode(
        tuple(code),
        tuple(reads),
        tuple(compiler.registers.registers),
        tuple(compiler.sources),
        tuple(compiler.targets),
        tuple(compiler.constants),
    )


def word_of(data_type: pa.DataType) -> Word:
    """Return how the values of an Arrow type become words."""
    if pa.types.is_boolean(data_type):
        return TRUTH
    if pa.types.is_integer(data_type):
        return EXACT
    if pa.types.is_floating(data_type):
        return DOUBLE
    if pa.types.is_decimal(data_type):
        return Word(WordKind.EXACT, Fraction(1, 10**data_type.scale))
    if pa.types.is_date32(data_type):
        return Word(WordKind.EXACT, Fraction(86_400))
    if pa.types.is_timestamp(data_type) or pa.types.is_duration(data_type) or pa.types.is_date64(data_type):
        return Word(WordKind.EXACT, Fraction(1, units_per_second(data_type) or 1))
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return TEXT
    return Word(WordKind.PRESENT)


class _Compiler:
    """The tables of all conditions, and the instructions of the current one."""

    def __init__(self, bound: BoundRows) -> None:
        self._text = bound.text
        self._types = {field.name: field.type for field in bound.schema}
        self._types |= {column.name: column.data_type for column in bound.computed}
        self.registers = Registers()
        self.sources: list[Source] = []
        self.targets: list[Target] = []
        self.constants: list[int | float | str] = []
        self._code: list[Instruction] = []
        self._reads: set[int] = set()
        self._words: dict[int, Word] = {}  # by the identity of an expression

    def condition(self, conjuncts: tuple[RowExpr, ...]) -> tuple[tuple[Instruction, ...], frozenset[int]]:
        self._code, self._reads = [], set()
        for at, part in enumerate(conjuncts):
            word = self._compile(part)
            if word.kind not in (WordKind.TRUTH, WordKind.NULL):
                raise self._unsupported(part.span)
            if at:
                self._emit(opcodes.AND)
        return tuple(self._code), frozenset(self._reads)

    def _unsupported(self, span: Span) -> UnsupportedQuery:
        return UnsupportedQuery(
            "a condition that joins rows cannot use this expression",
            self._text,
            span,
            "use comparisons, arithmetic, AND, OR, NOT, IN, IS NULL or CASE; functions of one row may be inside.",
        )

    def _emit(self, op: int, a: int = 0, b: int = 0, c: int = 0) -> None:
        self._code.append((op, a, b, c))

    def _constant(self, value: int | float | str) -> int:
        # Equal numbers of different types are different words.
        for at, other in enumerate(self.constants):
            if type(other) is type(value) and other == value:
                return at
        self.constants.append(value)
        return len(self.constants) - 1

    def _compile(self, node: RowExpr) -> Word:
        """Emit instructions that push the value of an expression, and return its type."""
        match node:
            case RowValue(column=column, reach=reach):
                source = self._source(column)
                self._emit(opcodes.VALUE, source, self._target(reach))
                return self.sources[source].word
            case Classifier(reach=reach):
                self._emit(opcodes.CLASSIFIER, 0, self._target(reach))
                self._reads |= {START, PATH}
                return TEXT
            case MatchNumber():
                self._emit(opcodes.MATCH_NUMBER)
                self._reads.add(NUMBER)
                return EXACT
            case RowAggregate():
                return self._aggregate(node)
            case RowConstant(value=value, kind=kind):
                return self._literal(value, kind, node.span)
            case RowOperation(op=op) if op in COMPARISONS:
                return self._comparison(COMPARISONS[op], node.operands[0], node.operands[1], node.span)
            case RowOperation():
                return self._operation(node)

    def _source(self, column: str) -> int:
        source = Source(column, word_of(self._types[column]))
        if source not in self.sources:
            self.sources.append(source)
        return self.sources.index(source)

    def _target(self, reach: RowReach) -> int:
        start, argument = opcodes.FROM_CURRENT, 0
        if reach.anchor is not Anchor.CURRENT and not reach.labels:
            start = opcodes.FROM_FIRST if reach.anchor is Anchor.FIRST else opcodes.FROM_LAST
            argument = reach.offset
            self._reads.add(START)
        elif reach.anchor is not Anchor.CURRENT:
            labels = tuple(sorted(set(reach.labels)))
            row = self.registers.first_row if reach.anchor is Anchor.FIRST else self.registers.last_row
            start, argument = opcodes.FROM_REGISTER, row(labels, reach.offset)
            self._reads.add(argument)
        target = Target(start, argument, reach.shift)
        if target not in self.targets:
            self.targets.append(target)
        return self.targets.index(target)

    def _aggregate(self, node: RowAggregate) -> Word:
        if node.distinct or node.classifier or node.function not in ("COUNT", "SUM", "AVG", "MIN", "MAX"):
            raise self._unsupported(node.span)
        labels = tuple(sorted(set(node.labels)))
        if node.column is None:
            if not labels:
                self._emit(opcodes.COUNT_ROWS)
                self._reads.add(START)
                return EXACT
            self._push(self.registers.add(Register(opcodes.COUNT_VALUES, labels)))
            return EXACT
        source = self._source(node.column)
        word = self.sources[source].word
        count = self.registers.add(Register(opcodes.COUNT_VALUES, labels, source))
        is_double = word.kind is WordKind.DOUBLE
        if node.function == "COUNT":
            self._push(count)
            return EXACT
        if node.function in ("MIN", "MAX"):
            if word.kind is WordKind.PRESENT:
                raise self._unsupported(node.span)
            exact, double = (
                (opcodes.MINIMUM, opcodes.MINIMUM_DOUBLE)
                if node.function == "MIN"
                else (opcodes.MAXIMUM, opcodes.MAXIMUM_DOUBLE)
            )
            self._push(self.registers.add(Register(double if is_double else exact, labels, source)))
            return word
        if word.kind not in (WordKind.EXACT, WordKind.DOUBLE):
            raise self._unsupported(node.span)
        kind = opcodes.SUM_DOUBLES if is_double else opcodes.SUM_INTEGERS
        total = self.registers.add(Register(kind, labels, source))
        self._reads |= {count, total}
        if node.function == "SUM":
            self._emit(opcodes.SUM, total, count)
            return word
        if node.kind is not Kind.FLOAT and not is_double and word.unit != 1:
            raise self._unsupported(node.span)
        self._emit(opcodes.AVERAGE, total, count, int(is_double))
        self._scale_double(word)
        return DOUBLE

    def _push(self, register: int) -> None:
        self._emit(opcodes.REGISTER, register)
        self._reads.add(register)

    def _literal(self, value: Scalar, kind: Kind, span: Span) -> Word:
        if value is None or kind is Kind.NULL:
            self._emit(opcodes.CONSTANT, self._constant(MIN_WORD - 1))
            return NULL
        word, constant = _constant_word(value, kind)
        if not isinstance(constant, str | float) and not MIN_WORD <= constant <= MAX_WORD:
            raise self._unsupported(span)
        self._emit(opcodes.CONSTANT, self._constant(constant))
        return word

    # --- numbers -------------------------------------------------------------------------------------------------

    def _to_double(self, word: Word, span: Span) -> None:
        if word.kind is WordKind.EXACT:
            top, bottom = self._constant(float(word.unit.numerator)), self._constant(float(word.unit.denominator))
            self._emit(opcodes.TO_DOUBLE, top, bottom)
        elif word.kind not in (WordKind.DOUBLE, WordKind.NULL):
            raise self._unsupported(span)

    def _scale_double(self, word: Word) -> None:
        """Scale a double that counts the units of a word."""
        if word.kind is WordKind.EXACT and word.unit != 1:
            self._emit(opcodes.CONSTANT, self._constant(float(word.unit)))
            self._emit(opcodes.MULTIPLY_DOUBLE)

    def _pair(self, left: RowExpr, right: RowExpr, span: Span, *, doubles: bool = False) -> Word:
        """Push two numbers in one common type, and return it."""
        first = self._word_of(left)
        second = self._word_of(right)
        if doubles or WordKind.DOUBLE in (first.kind, second.kind):
            for operand in (left, right):
                self._to_double(self._compile(operand), span)
            return DOUBLE
        if first.kind is WordKind.NULL or second.kind is WordKind.NULL:
            self._compile(left)
            self._compile(right)
            return first if second.kind is WordKind.NULL else second
        if first.kind is WordKind.EXACT and second.kind is WordKind.EXACT:
            unit = _common_unit(first.unit, second.unit)
            for operand, word in ((left, first), (right, second)):
                self._compile(operand)
                if word.unit != unit:
                    self._emit(opcodes.SCALE, self._constant(int(word.unit / unit)))
            return Word(WordKind.EXACT, unit)
        if first.kind is not second.kind or first.kind is WordKind.PRESENT:
            raise self._unsupported(span)
        self._compile(left)
        self._compile(right)
        return first

    def _word_of(self, node: RowExpr) -> Word:
        """Return the type of an expression without keeping its instructions; tables may grow, which is harmless."""
        if id(node) not in self._words:
            length, reads = len(self._code), set(self._reads)
            self._words[id(node)] = self._compile(node)
            del self._code[length:]
            self._reads = reads
        return self._words[id(node)]

    def _comparison(self, op: int, left: RowExpr, right: RowExpr, span: Span) -> Word:
        first, second = self._word_of(left), self._word_of(right)
        if {first.kind, second.kind} == {WordKind.EXACT, WordKind.DOUBLE}:
            self._mixed(op, left, right, span)
            return TRUTH
        begin = len(self._code)
        word = self._pair(left, right, span)
        if word.kind is WordKind.DOUBLE:
            self._emit(opcodes.COMPARE_DOUBLE, op)
        elif [instruction[0] for instruction in self._code[begin:]] == [opcodes.VALUE, opcodes.VALUE]:
            self._code.insert(begin, (opcodes.COMPARE_VALUES, op, 0, 0))
        else:
            self._emit(opcodes.COMPARE, op)
        return TRUTH

    def _mixed(self, op: int, left: RowExpr, right: RowExpr, span: Span) -> None:
        """Compare an exact number with a double; a constant and fractions of units become doubles."""
        exact, double = (left, right) if self._word_of(left).kind is WordKind.EXACT else (right, left)
        if self._word_of(exact).unit != 1 or isinstance(exact, RowConstant):
            self._pair(left, right, span, doubles=True)
            self._emit(opcodes.COMPARE_DOUBLE, op)
            return
        self._compile(exact)
        self._compile(double)
        self._emit(opcodes.COMPARE_MIXED, op if exact is left else SWAPPED[op])

    def _operation(self, node: RowOperation) -> Word:
        op, operands, span = node.op, node.operands, node.span
        if op in EXACT_OPS and len(operands) == 2:
            return self._arithmetic(op, operands[0], operands[1], node)
        if op in ("/", "^"):
            if node.kind is not Kind.FLOAT:
                raise self._unsupported(span)
            self._pair(operands[0], operands[1], span, doubles=True)
            self._emit(opcodes.DIVIDE_DOUBLE if op == "/" else opcodes.POWER)
            return DOUBLE
        if op in ("negative", "abs"):
            return self._sign(op, operands[0], span)
        if op in UNARY_DOUBLE:
            self._to_double(self._compile(operands[0]), span)
            self._emit(UNARY_DOUBLE[op])
            return DOUBLE
        if op in ("greatest", "least", "coalesce"):
            return self._fold(op, operands, span)
        return self._logic(node)

    def _arithmetic(self, op: str, left: RowExpr, right: RowExpr, node: RowOperation) -> Word:
        exact, double = EXACT_OPS[op]
        if op != "*":
            word = self._pair(left, right, node.span)
        else:
            first, second = self._word_of(left), self._word_of(right)
            if first.kind is second.kind is WordKind.EXACT:
                self._compile(left)
                self._compile(right)
                word = Word(WordKind.EXACT, first.unit * second.unit)
            else:
                if node.kind not in (Kind.FLOAT, Kind.NULL):  # such as a duration times a double
                    raise self._unsupported(node.span)
                word = self._pair(left, right, node.span)
        if word.kind not in (WordKind.EXACT, WordKind.DOUBLE, WordKind.NULL):
            raise self._unsupported(node.span)
        self._emit(double if word.kind is WordKind.DOUBLE else exact, 0, int(word.unit != 1))
        return word

    def _sign(self, op: str, operand: RowExpr, span: Span) -> Word:
        word = self._compile(operand)
        if word.kind not in (WordKind.EXACT, WordKind.DOUBLE, WordKind.NULL):
            raise self._unsupported(span)
        exact, double = (
            (opcodes.NEGATE, opcodes.NEGATE_DOUBLE) if op == "negative" else (opcodes.ABSOLUTE, opcodes.ABSOLUTE_DOUBLE)
        )
        self._emit(double if word.kind is WordKind.DOUBLE else exact)
        return word

    # --- several values of one type, and logic ----------------------------------------------------------------------

    def _push_as(self, operands: tuple[RowExpr, ...], span: Span, emit_after: int) -> Word:
        """Push operands in their common type; emit an instruction after each one but the first."""
        words = [self._word_of(operand) for operand in operands]
        kinds = {word.kind for word in words} - {WordKind.NULL}
        if kinds <= {WordKind.EXACT, WordKind.DOUBLE} and WordKind.DOUBLE in kinds:
            common = DOUBLE
        elif kinds == {WordKind.EXACT}:
            unit = words[0].unit
            for word in words:
                unit = _common_unit(unit, word.unit) if word.kind is WordKind.EXACT else unit
            common = Word(WordKind.EXACT, unit)
        elif len(kinds) <= 1:
            common = next((word for word in words if word.kind is not WordKind.NULL), NULL)
        else:
            raise self._unsupported(span)
        for at, (operand, word) in enumerate(zip(operands, words, strict=True)):
            self._compile(operand)
            if common.kind is WordKind.DOUBLE:
                self._to_double(word, span)
            elif common.kind is WordKind.EXACT and word.kind is WordKind.EXACT and word.unit != common.unit:
                self._emit(opcodes.SCALE, self._constant(int(word.unit / common.unit)))
            if at and emit_after >= 0:
                self._emit(emit_after)
        return common

    def _fold(self, op: str, operands: tuple[RowExpr, ...], span: Span) -> Word:
        if op == "coalesce":
            return self._push_as(operands, span, opcodes.COALESCE)
        words = [self._word_of(operand) for operand in operands]
        if any(word.kind is WordKind.PRESENT for word in words):
            raise self._unsupported(span)
        is_double = any(word.kind is WordKind.DOUBLE for word in words)
        if op == "greatest":
            return self._push_as(operands, span, opcodes.GREATEST_DOUBLE if is_double else opcodes.GREATEST)
        return self._push_as(operands, span, opcodes.LEAST_DOUBLE if is_double else opcodes.LEAST)

    def _logic(self, node: RowOperation) -> Word:
        op, operands = node.op, node.operands
        match op:
            case "and" | "or":
                for at, operand in enumerate(operands):
                    self._truth(operand)
                    if at:
                        self._emit(opcodes.AND if op == "and" else opcodes.OR)
                return TRUTH
            case "not":
                self._truth(operands[0])
                self._emit(opcodes.NOT)
                return TRUTH
            case "is_null":
                self._compile(operands[0])
                self._emit(opcodes.IS_NULL)
                return TRUTH
            case "in":
                for at, item in enumerate(operands[1:]):
                    self._comparison(opcodes.EQUAL, operands[0], item, node.span)
                    if at:
                        self._emit(opcodes.OR)
                return TRUTH
            case "case":
                return self._case(operands, node.span)
        raise self._unsupported(node.span)

    def _truth(self, node: RowExpr) -> None:
        if self._compile(node).kind not in (WordKind.TRUTH, WordKind.NULL):
            raise self._unsupported(node.span)

    def _case(self, operands: tuple[RowExpr, ...], span: Span) -> Word:
        """Compile conditions and values in turn, then the value otherwise; without one it is null."""
        if len(operands) % 2 == 0:
            operands = (*operands, NO_VALUE)
        values = (*operands[1:-1:2], operands[-1])
        common = NULL
        # The values in their common type, each with its condition, innermost case last.
        words = [self._word_of(value) for value in values]
        kinds = {word.kind for word in words} - {WordKind.NULL}
        if len(kinds) > 1 and kinds != {WordKind.EXACT, WordKind.DOUBLE}:
            raise self._unsupported(span)
        units = [word.unit for word in words if word.kind is WordKind.EXACT]
        if WordKind.DOUBLE in kinds:
            common = DOUBLE
        elif units:
            unit = units[0]
            for other in units:
                unit = _common_unit(unit, other)
            common = Word(WordKind.EXACT, unit)
        elif kinds:
            common = next(word for word in words if word.kind is not WordKind.NULL)
        for at, (value, word) in enumerate(zip(values, words, strict=True)):
            if at < len(values) - 1:
                self._truth(operands[2 * at])
            self._compile(value)
            if common.kind is WordKind.DOUBLE:
                self._to_double(word, span)
            elif word.kind is WordKind.EXACT and word.unit != common.unit:
                self._emit(opcodes.SCALE, self._constant(int(word.unit / common.unit)))
        for _ in values[1:]:
            self._emit(opcodes.CASE)
        return common


def _common_unit(one: Fraction, other: Fraction) -> Fraction:
    """Return the greatest unit of which both are multiples."""
    bottom = one.denominator * other.denominator // gcd(one.denominator, other.denominator)
    return Fraction(gcd(int(one * bottom), int(other * bottom)), bottom)


def _constant_word(value: Scalar, kind: Kind) -> tuple[Word, int | float | str]:
    """Return a constant as a word, in the largest unit that holds it."""
    match value:
        case bool():
            return TRUTH, int(value)
        case int():
            return (DOUBLE, float(value)) if kind is Kind.FLOAT else (EXACT, value)
        case float():
            return DOUBLE, value
        case Decimal():
            if kind is Kind.FLOAT:
                return DOUBLE, float(value)
            exponent = value.as_tuple().exponent
            scale = max(0, -exponent) if isinstance(exponent, int) else 0
            return Word(WordKind.EXACT, Fraction(1, 10**scale)), int(value.scaleb(scale))
        case str():
            return TEXT, value
        case timedelta():
            return Word(WordKind.EXACT, Fraction(1, 10**6)), value // timedelta(microseconds=1)
        case datetime():
            zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
            since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
            return Word(WordKind.EXACT, Fraction(1, 10**6)), since // timedelta(microseconds=1)
        case date():
            return Word(WordKind.EXACT, Fraction(86_400)), (value - date(1970, 1, 1)).days
    raise TypeError(value)
