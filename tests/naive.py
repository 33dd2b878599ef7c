"""Evaluate a query on a short list of events by brute force, as language.md specifies: the oracle of the tests."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import chain, combinations, pairwise, product
from typing import Any, TypeVar, cast

from streamsift.language import parse, print_expression
from streamsift.language import syntax as ast

T = TypeVar("T")

Value = Any  # int, float, Decimal, str, bool, datetime, date, timedelta or None
EXACT = Context(prec=200)  # enough precision that decimals of 38 digits are never rounded
AS_DOUBLE = "AS DOUBLE"  # internal function: convert an integer to a double
GROUP_AGGREGATES = {"COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST"}


def run(
    script: ast.Script | str,
    events: list[dict[str, object]],
    *,
    time: str,
    type: str | None = None,
    order: str | None = None,
    columns: Iterable[str] | None = None,
) -> list[dict[str, object]]:
    """Return the result rows of a query over `events`, which are in input order.

    `columns` names the columns, in case there are no events. If it maps names to types, it also determines which
    columns are doubles; otherwise, a column that contains a float is a double.
    """
    with localcontext(EXACT):
        script = parse(script) if isinstance(script, str) else script
        stream = Stream.of(events, columns or (events[0] if events else [time]), time, type, order)
        query = Query(script, stream)
        matches = sorted(query.matches(), key=query.tie_key)
        if query.statement.aggregates:
            return list(aggregation(query, matches))
        if query.statement.returns and query.statement.returns.limit is not None:
            return list(ranking(query, matches))
        return [query.output(match) for match in matches]


# --- section 1: events -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Row:
    """An event. Rows are compared by identity: two equal rows are two events."""

    values: dict[str, Value]
    index: int  # position in the input
    time: Value
    key: tuple[Value, ...]  # (time,) or (time, order): defines before, after and end

    def at(self, columns: Iterable[str]) -> tuple[Value, ...]:
        return tuple(self.values[column] for column in columns)


@dataclass(frozen=True, eq=False)
class Stream:
    rows: tuple[Row, ...]  # sorted by key, then input order
    columns: dict[str, str]  # from lower case to the actual column name
    time: str
    type: str | None
    doubles: frozenset[str]

    @staticmethod
    def of(
        events: list[dict[str, Value]], names: Iterable[str], time: str, type: str | None, order: str | None
    ) -> Stream:
        columns = {name.lower(): name for name in names}
        types = names if isinstance(names, Mapping) else {}
        doubles = [name for name, kind in types.items() if str(kind) == "double"]
        doubles += [name for event in events for name, value in event.items() if isinstance(value, float)]

        def row(index: int, event: dict[str, Value]) -> Row:
            when = timestamp(event[columns[time.lower()]])
            key = (when,) if order is None else (when, timestamp(event[columns[order.lower()]]))
            return Row(event, index, when, key)

        rows = sorted((row(*numbered) for numbered in enumerate(events)), key=lambda row: (row.key, row.index))
        return Stream(tuple(rows), columns, columns[time.lower()], type and columns[type.lower()], frozenset(doubles))

    def column(self, name: str) -> str:
        """Resolve a case-insensitive name; `time` and `t` are the bound time column if no column has that name."""
        fallback = {"time": self.time, "t": self.time}
        return {**fallback, **self.columns}[name.lower()]

    def positions(self, partition: tuple[str, ...]) -> dict[Row, int]:
        """Return each row's position in its partition, from 1. A row with a null key is in no partition."""
        seen: dict[object, int] = {}
        place: dict[Row, int] = {}
        for row in self.rows:
            key = row.at(partition)
            if not any(map(missing, key)):
                place[row] = seen[key] = seen.get(key, 0) + 1
        return place


def missing(value: Value) -> bool:
    """Return True for null and NaN, which equal nothing, not even themselves."""
    return value is None or value != value


def timestamp(value: Value) -> Value:
    """Convert dates to timestamps at midnight and timestamps with a zone to UTC; return other values unchanged."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else value


def elapsed(later: Value, earlier: Value) -> Fraction | float:
    """Return `later - earlier`, exact and in seconds for timestamps. Float times give a double, 0 if equal."""
    if isinstance(later, datetime):
        return Fraction((later - earlier) // timedelta(microseconds=1), 1_000_000)
    if isinstance(later, float):
        return 0.0 if later == earlier else later - earlier
    return Fraction(later) - Fraction(earlier)


SECONDS = {
    ast.Unit.MILLISECOND: Fraction(1, 1000),
    ast.Unit.SECOND: Fraction(1),
    ast.Unit.MINUTE: Fraction(60),
    ast.Unit.HOUR: Fraction(3600),
    ast.Unit.DAY: Fraction(86400),
}


def length(duration: ast.Duration) -> Fraction:
    """Return a number of events, a number in the time column's units, or seconds."""
    return Fraction(duration.value) * SECONDS.get(duration.unit, Fraction(1))


# --- section 2: expressions, in SQL's three-valued logic ---------------------------------------------------------

Rows = Mapping[str, Row]  # the row of each variable; "" is the row that a WITH predicate tests
Binding = dict[str, tuple[Row, ...]]  # a group per bound variable; it has one row if the variable has no quantifier


def evaluate(expression: ast.Expression, rows: Rows, groups: Mapping[str, tuple[Row, ...]]) -> Value:
    """Evaluate an expression whose names are resolved to (variable, column); None means null or unknown."""

    def value(inner: ast.Expression) -> Value:
        return evaluate(inner, rows, groups)

    def values(*inner: ast.Expression) -> list[Value]:
        """Return the operands. A literal with a point is a decimal if another operand is, else a float."""
        found = [value(each) for each in inner]
        if any(isinstance(each, Decimal) for each in found):
            literals = [decimal_literal(each) for each in inner]
            found = [old if new is None else new for old, new in zip(found, literals, strict=True)]
        return found

    match expression:
        case ast.Name(parts=(variable, column)):
            return timestamp(rows[variable].values[column]) if variable in rows else None
        case ast.Number(value=number):
            return number if isinstance(number, int) else float(number)
        case ast.String(value=text) | ast.Boolean(value=text):
            return text
        case ast.Null():
            return None
        case ast.Timestamp(text=text):
            return timestamp(datetime.fromisoformat(text))
        case ast.Duration():
            return timedelta(microseconds=round(length(expression) * 1_000_000))
        case ast.Negative(operand=operand):
            found = value(operand)
            return None if found is None else -found
        case ast.Arithmetic(op=op, left=left, right=right):
            return arithmetic(op, *values(left, right))
        case ast.Call(function=name, arguments=(ast.Name(parts=(variable,)),)):
            return len(groups[variable]) if variable in groups else None
        case ast.Call(function=name, arguments=(ast.Name(parts=(variable, column)),)) if name in GROUP_AGGREGATES:
            return aggregate(name, [timestamp(row.values[column]) for row in groups.get(variable, ())])
        case ast.Call(function=name, arguments=arguments):
            return call(name, values(*arguments))
        case ast.Comparison(operands=operands, ops=ops):
            pairs = zip(ops, operands, operands[1:], strict=False)
            return all_of(compare(op, *values(left, right)) for op, left, right in pairs)
        case ast.InList(operand=operand, items=items, negated=negated):
            return negate(any_of(compare("=", *values(operand, item)) for item in items), negated)
        case ast.Between(operand=operand, low=low, high=high, negated=negated):
            inside = all_of([compare("<=", *values(low, operand)), compare("<=", *values(operand, high))])
            return negate(inside, negated)
        case ast.IsNull(operand=operand, negated=negated):
            return (value(operand) is None) != negated
        case ast.Like(operand=operand, pattern=pattern, negated=negated):
            found = value(operand)
            return None if found is None else bool(like(pattern).fullmatch(found)) != negated
        case ast.NotExpression(operand=operand):
            return negate(value(operand))
        case ast.AllOf(operands=operands):
            return all_of(map(value, operands))
        case ast.AnyOf(operands=operands):
            return any_of(map(value, operands))
    raise NotImplementedError(expression)


def decimal_literal(expression: ast.Expression) -> Decimal | None:
    match expression:
        case ast.Number(value=Decimal() as number):
            return number
        case ast.Negative(operand=ast.Number(value=Decimal() as number)):
            return -number
    return None


def negate(truth: bool | None, negated: bool = True) -> bool | None:
    return truth if truth is None or not negated else not truth


def all_of(truths: Iterable[bool | None]) -> bool | None:
    found = list(truths)
    return False if False in found else None if None in found else True


def any_of(truths: Iterable[bool | None]) -> bool | None:
    return negate(all_of(negate(truth) for truth in truths))


COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(op: str, left: Value, right: Value) -> bool | None:
    """Return None for null or NaN operands. Python compares int, float and Decimal by their exact values."""
    return None if missing(left) or missing(right) else bool(COMPARE[op](left, right))


def like(pattern: str) -> re.Pattern[str]:
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    signs = {"%": ".*", "_": "."}
    return re.compile("".join(signs.get(token) or re.escape(token[-1]) for token in tokens), re.DOTALL)


def arithmetic(op: str, left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if isinstance(left, datetime | timedelta) or isinstance(right, datetime | timedelta):
        left, right = (float(side) if isinstance(side, Decimal) else side for side in (left, right))
        return {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[op](left, right)
    if op == "^":
        return call("POW", [left, right])
    if op == "/":
        return None if float(right) == 0 else float(left) / float(right)
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    if op == "%":
        return remainder(left, right)
    return {"+": operator.add, "-": operator.sub, "*": operator.mul}[op](left, right)


def remainder(left: Value, right: Value) -> Value:
    """Return the remainder with the sign of the dividend, or None for a zero divisor."""
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    return Decimal(left) % Decimal(right)


def call(name: str, arguments: list[Value]) -> Value:
    known = [argument for argument in arguments if argument is not None]
    if name in ("COALESCE", "LEAST", "GREATEST"):
        choose = {"COALESCE": lambda found: found[0], "LEAST": least, "GREATEST": greatest}[name]
        chosen = choose(known) if known else None
        # With doubles and integers, the result is a double.
        return as_double(chosen) if any(isinstance(value, float) for value in known) else chosen
    if name == AS_DOUBLE:
        return as_double(*arguments)
    if len(known) < len(arguments):
        return None
    try:
        return {
            "ABS": abs,
            "SQRT": math.sqrt,
            "POW": math.pow,
            "LOG": math.log,
            "EXP": math.exp,
            "LOWER": str.lower,
            "UPPER": str.upper,
        }[name](*arguments)
    except ValueError:  # outside the function's domain
        return None
    except OverflowError:
        odd = name == "POW" and arguments[0] < 0 and float(arguments[1]) % 2 == 1
        return -math.inf if odd else math.inf


def as_double(value: Value) -> Value:
    return float(value) if isinstance(value, int) else value


def nan_last(value: Value) -> tuple[bool, Value]:
    return (value != value, 0 if value != value else value)


def least(values: list[Value]) -> Value:
    return min(values, key=nan_last)


def greatest(values: list[Value]) -> Value:
    return max(values, key=nan_last)


def aggregate(function: str, values: list[Value]) -> Value:
    """Aggregate the elements of a group, or matches. Nulls are ignored, except by FIRST and LAST."""
    if function in ("FIRST", "LAST"):
        return values[0 if function == "FIRST" else -1] if values else None
    known = [value for value in values if value is not None]
    if function == "COUNT":
        return len(known)
    if not known:
        return None
    if function in ("MIN", "MAX"):
        return least(known) if function == "MIN" else greatest(known)
    total = sum(known[1:], known[0])
    if function == "SUM":
        return total
    return (total if isinstance(total, timedelta) else float(total)) / len(known)


# --- resolved names and patterns ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """A variable with the rows of its class, in stream order."""

    variable: str
    rows: tuple[Row, ...]
    quantifier: ast.Quantifier | None
    nearest: ast.Nearest | None = None

    @property
    def grows(self) -> bool:
        return self.quantifier is not None and self.quantifier.repeat is not ast.Repeat.EXACTLY

    @property
    def size(self) -> int:
        return self.quantifier.count or 1 if self.quantifier else 1

    @property
    def may_be_empty(self) -> bool:
        return self.quantifier is not None and self.quantifier.repeat is ast.Repeat.ANY_NUMBER


@dataclass(frozen=True)
class Scope:
    """The pattern of the statement or a definition, with the predicates of WHERE, PARTITION BY and GROUP BY."""

    operand: Pattern
    predicates: tuple[ast.Expression, ...]
    window: ast.Window | None
    position: Mapping[Row, int] = field(compare=False)
    outermost: bool  # its window bounds leading and trailing negations: the statement, or a definition with WITHIN


Pattern = Leaf | Scope | ast.Seq | ast.And | ast.Or | ast.Not  # operators have resolved operands and predicates
Negation = frozenset[str]  # a negated sub-pattern, identified by its variables; the match itself is the empty set
MATCH: Negation = frozenset()


@dataclass(frozen=True)
class Piece:
    """A conjunct of a predicate, and the innermost negated sub-pattern whose variables it uses."""

    expression: ast.Expression
    variables: frozenset[str]
    owner: Negation
    over_group: bool  # contains an aggregate over a group, so that it filters complete matches


@dataclass(frozen=True)
class Same:
    """The predicate `[attr]`: all events of these variables are equal in this column."""

    column: str
    variables: frozenset[str]


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """Cache a function of a node by the node's identity; the cache keeps the node, so that its id is not reused."""
    results: dict[Any, tuple[Any, T]] = {}

    def remember(node: Any, **options: Any) -> T:
        key = (id(node), *options.items())
        if key not in results:
            if len(results) > 10_000:
                results.clear()
            results[key] = node, function(node, **options)
        return results[key][1]

    return remember


def operands(node: Pattern) -> tuple[Pattern, ...]:
    return () if isinstance(node, Leaf) else (node.operand,) if isinstance(node, Scope | ast.Not) else node.operands


def leaves(node: Pattern, *, negated: bool = False) -> Iterator[Leaf]:
    """Yield the positive leaves in order of appearance; with `negated`, also the negated ones."""
    if isinstance(node, Leaf):
        yield node
    for operand in operands(node):
        if negated or not isinstance(operand, ast.Not):
            yield from leaves(operand, negated=negated)


def variables(node: Pattern) -> frozenset[str]:
    return frozenset(leaf.variable for leaf in leaves(node, negated=True))


def nodes_in(node: Any, *, into_aggregates: bool = True) -> Iterator[Any]:
    """Yield all nodes of an expression, optionally without the arguments of group aggregates."""
    yield node
    if is_dataclass(node):
        closed = not into_aggregates and isinstance(node, ast.Call) and node.function in GROUP_AGGREGATES
        node = () if closed else tuple(getattr(node, part.name) for part in fields(node))
    for inner in node if isinstance(node, tuple) else ():
        yield from nodes_in(inner, into_aggregates=into_aggregates)


@remembered
def mentioned(expression: ast.Expression, *, into_aggregates: bool = True) -> frozenset[str]:
    nodes = nodes_in(expression, into_aggregates=into_aggregates)
    return frozenset(node.parts[0] for node in nodes if isinstance(node, ast.Name))


def rewritten(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return the expression with `change` applied to every node, bottom-up."""
    if isinstance(node, tuple):
        return tuple(rewritten(item, change) for item in node)
    if not is_dataclass(node):
        return node
    parts = {part.name: rewritten(getattr(node, part.name), change) for part in fields(node) if part.name != "span"}
    return change(replace(node, **parts))


def split(predicate: ast.Expression) -> Iterator[ast.Expression]:
    """Split a predicate at its top-level ANDs, and comparison chains into pairs."""
    match predicate:
        case ast.AllOf(operands=parts):
            for part in parts:
                yield from split(part)
        case ast.Comparison(operands=parts, ops=ops):
            for index, op in enumerate(ops):
                yield ast.Comparison(parts[index : index + 2], (op,))
        case _:
            yield predicate


class Query:
    """A script with its names resolved against a stream. A definition's variable A is named `S1.A`."""

    def __init__(self, script: ast.Script, stream: Stream) -> None:
        self.stream = stream
        self.statement = script.statement
        self.definitions = {definition.name: definition.statement for definition in script.definitions}
        self.objectives = {
            f"{name}.{objective.name}": (objective.expression, f"{name}.")
            for name, definition in self.definitions.items()
            for objective in (definition.preference.objectives if definition.preference else ())
        }
        self.names = {
            prefix + (event.variable or event.class_name)
            for prefix, statement in self.prefixed()
            for event in (*written_events(statement.pattern), *((statement.until,) if statement.until else ()))
            if event.class_name not in self.definitions
        }
        self.partition = self.columns(self.statement.partition_by)
        self.group = self.columns(self.statement.group_by)
        self.pattern = negating_nearest(self.scope(self.statement, "", ()))
        self.leaves = tuple(leaves(self.pattern))
        self.groups = {leaf.variable for leaf in self.leaves if leaf.quantifier}
        self.enclosing = negation_paths(self.pattern)
        self.until = self.until_leaf()
        self.pieces, self.sames = self.predicates()
        self.pieces += list(self.pieces_of_nearest())

    def prefixed(self) -> Iterator[tuple[str, ast.Statement]]:
        yield from ((f"{name}.", definition) for name, definition in self.definitions.items())
        yield "", self.statement

    def columns(self, names: tuple[ast.Name, ...]) -> tuple[str, ...]:
        return tuple(self.stream.column(name.parts[-1]) for name in names)

    # Names: `A.x` inside S1 and `S1.A.x` anywhere mean the variable S1.A; `S1.exp` is a named objective of S1. The
    # statement's variables are also visible in S1.

    def resolve(self, expression: Any, prefix: str) -> Any:
        def change(node: Any) -> Any:
            return self.typed(self.resolve_name(node, prefix) if isinstance(node, ast.Name) else node)

        return rewritten(expression, change)

    def typed(self, node: Any) -> Any:
        """Convert the choice between a double and an integer to a double, even if the double is null."""
        match node:
            case ast.Call(function="COALESCE" | "LEAST" | "GREATEST") if self.is_double(node):
                return ast.Call(AS_DOUBLE, (node,))
        return node

    def is_double(self, expression: ast.Expression) -> bool:
        match expression:
            case ast.Name(parts=(_, column)):
                return column in self.stream.doubles
            case ast.Negative(operand=operand):
                return self.is_double(operand)
            case ast.Arithmetic(op=op, left=left, right=right):
                return op in "/^" or self.is_double(left) or self.is_double(right)
            case ast.Call(function=name, arguments=arguments):
                return name in ("SQRT", "POW", "LOG", "EXP", "AVG") or any(map(self.is_double, arguments))
        return False

    def resolve_name(self, name: ast.Name, prefix: str) -> ast.Expression:
        first, *rest = name.parts
        for variable, attribute in ((prefix + first, rest), (first, rest), (".".join(name.parts[:2]), rest[1:])):
            if variable in self.names:
                return ast.Name((variable, *map(self.stream.column, attribute)))
        return cast(ast.Expression, self.resolve(*self.objectives[".".join(name.parts)]))

    def resolve_bare_name(self, node: Any) -> Any:
        return self.typed(ast.Name(("", self.stream.column(node.parts[-1]))) if isinstance(node, ast.Name) else node)

    def scope(self, statement: ast.Statement, prefix: str, around: tuple[str, ...]) -> Scope:
        own = self.columns(statement.partition_by)
        attributes = own + self.columns(statement.group_by)
        written = () if statement.where is None else (self.resolve(statement.where, prefix),)
        return Scope(
            self.resolve_pattern(statement.pattern, prefix, around + own),
            written + tuple(map(ast.SameAttribute, attributes)),
            statement.window,
            self.stream.positions(own or self.partition),
            outermost=not prefix or statement.window is not None,
        )

    def resolve_pattern(self, pattern: ast.Pattern, prefix: str, partition: tuple[str, ...]) -> Pattern:
        match pattern:
            case ast.Event(class_name=name) if name in self.definitions:
                return self.scope(self.definitions[name], f"{name}.", partition)
            case ast.Event(class_name=name, variable=variable, quantifier=quantifier, nearest=nearest):
                rows = [row for row in self.class_rows(pattern, prefix) if not any(map(missing, row.at(partition)))]
                return Leaf(prefix + (variable or name), tuple(rows), quantifier, nearest)
            case ast.Not(operand=operand):
                return ast.Not(self.resolve_pattern(operand, prefix, partition))
        inner = tuple(self.resolve_pattern(operand, prefix, partition) for operand in pattern.operands)
        return replace(pattern, operands=inner, predicates=self.resolve(pattern.predicates, prefix))

    def class_rows(self, event: ast.Event, prefix: str) -> Iterable[Row]:
        """Return the rows of an event class by the four rules of section 1, in their order."""
        inner = self.definitions[prefix[:-1]].classes if prefix else ()
        for defined in inner + self.statement.classes:
            if defined.name == event.class_name:
                predicate = rewritten(defined.predicate, self.resolve_bare_name)
                return [row for row in self.stream.rows if evaluate(predicate, {"": row}, {}) is True]
        if event.any_row or self.stream.type is None:
            return self.stream.rows
        return [row for row in self.stream.rows if row.values[self.stream.type] == event.class_name]

    def predicates(self) -> tuple[list[Piece], list[Same]]:
        pieces, sames = [], []
        for predicate, node in written_predicates(self.pattern):
            for part in split(predicate):
                if isinstance(part, ast.SameAttribute):
                    until = {self.until.variable} if self.until is not None and node is self.pattern else frozenset()
                    sames.append(Same(self.stream.column(part.attribute), variables(node) | until))
                else:
                    pieces.append(self.piece(part, node))
        return pieces, sames

    # NEXT B b is `!B b', B b`, and LATEST A a is `A a, !A a'`; UNTIL D d forbids d between the match's ends.

    def until_leaf(self) -> Leaf | None:
        if self.statement.until is None:
            return None
        leaf = self.resolve_pattern(self.statement.until, "", self.partition)
        assert isinstance(leaf, Leaf)
        self.enclosing[leaf.variable] = (MATCH, frozenset({leaf.variable}))
        return leaf

    def pieces_of_nearest(self) -> Iterator[Piece]:
        """Yield the conjuncts on b, and else only on variables written before b (LATEST: after it), for b'."""
        order = [leaf.variable for leaf in leaves(self.pattern, negated=True)]
        for leaf in (leaf for leaf in leaves(self.pattern, negated=True) if leaf.nearest):
            at, other = order.index(leaf.variable), f"{leaf.variable}'"
            given = order[:at] if leaf.nearest is ast.Nearest.NEXT else order[at + 1 :]
            around = self.enclosing[leaf.variable]
            visible = {name for name in given if self.enclosing[name] == around[: len(self.enclosing[name])]}
            for piece in self.pieces:
                if leaf.variable in piece.variables <= visible | {leaf.variable} and not piece.over_group:

                    def renamed(node: Any, old: str = leaf.variable, new: str = other) -> Any:
                        is_old = isinstance(node, ast.Name) and node.parts[0] == old
                        return ast.Name((new, *node.parts[1:])) if is_old else node

                    expression = rewritten(piece.expression, renamed)
                    owner = max((self.enclosing[name] for name in mentioned(expression)), key=len)[-1]
                    yield Piece(expression, mentioned(expression), owner, over_group=False)

    def piece(self, expression: ast.Expression, node: Pattern) -> Piece:
        def pairs(inner: Any) -> Any:  # under OR or NOT, `[attr]` compares the positive variables of the operator
            if not isinstance(inner, ast.SameAttribute):
                return inner
            column = self.stream.column(inner.attribute)
            named = [ast.Name((leaf.variable, column)) for leaf in leaves(node)]
            return ast.AllOf(tuple(ast.Comparison(pair, ("=",)) for pair in combinations(named, 2)))

        expression = rewritten(expression, pairs)
        paths = [self.enclosing[variable] for variable in mentioned(expression)]
        owner = max(paths, key=len, default=(MATCH,))[-1]
        calls = [inner.function for inner in nodes_in(expression) if isinstance(inner, ast.Call)]
        return Piece(expression, mentioned(expression), owner, not GROUP_AGGREGATES.isdisjoint(calls))

    # Output of a match.

    def matches(self) -> Iterator[Binding]:
        each = self.statement.emit is not None and self.statement.emit.mode is ast.Emit.EACH
        everywhere = Bounds(lambda row: True, lambda row: True)
        return matches(self, self.pattern, MATCH, {}, everywhere, each_end=each)

    def tie_key(self, match: Binding) -> tuple[Value, ...]:
        """Return the tie-breaking key of section 4: times, `order`, input order, each by variable, absent first."""

        def by(value: Callable[[Row], Value]) -> tuple[Value, ...]:
            return tuple(tuple(map(value, match.get(leaf.variable, ()))) for leaf in self.leaves)

        return by(lambda row: row.time), by(lambda row: row.key), by(lambda row: row.index)

    def value(self, expression: ast.Expression, match: Binding) -> Value:
        rows = {variable: group[0] for variable, group in match.items() if variable not in self.groups}
        return evaluate(expression, rows, match)

    def output(self, match: Binding) -> dict[str, object]:
        """Return the row of a match (section 4, detection): its events as columns, or its RETURN items."""
        if self.statement.returns and self.statement.returns.items:
            return dict(self.item(item, match) for item in self.statement.returns.items)
        columns = {leaf.variable: self.event(leaf.variable, match) for leaf in self.leaves}
        times = [row.values[self.stream.time] for row in rows_of(match)]
        return {**columns, "match_start": min(times), "match_end": max(times)}

    def event(self, variable: str, match: Binding) -> object:
        if variable not in match:
            return None
        events = [dict(row.values) for row in match[variable]]
        return events if variable in self.groups else events[0]

    def item(self, item: ast.ReturnItem, match: Binding) -> tuple[str, object]:
        written, resolved = item.expression, self.resolve(item.expression, "")
        if isinstance(resolved, ast.Name) and len(resolved.parts) == 1:
            return item.alias or resolved.parts[0], self.event(resolved.parts[0], match)
        name = "_".join(written.parts) if isinstance(written, ast.Name) else print_expression(written)
        return item.alias or name, self.value(resolved, match)


def written_events(pattern: ast.Pattern) -> Iterator[ast.Event]:
    if isinstance(pattern, ast.Event):
        yield pattern
    else:
        for operand in operands(pattern):
            yield from written_events(operand)


def written_predicates(node: Pattern) -> Iterator[tuple[ast.Expression, Pattern]]:
    """Yield every predicate with the operator, definition or statement that contains it."""
    for predicate in getattr(node, "predicates", ()):
        yield predicate, node
    for operand in operands(node):
        yield from written_predicates(operand)


def negating_nearest(node: Pattern) -> Pattern:
    """Put the negated variable of NEXT before, and that of LATEST after, its component of a SEQ."""
    if isinstance(node, Leaf):
        return node
    if isinstance(node, Scope | ast.Not):
        return replace(node, operand=negating_nearest(node.operand))
    components: list[Pattern] = []
    for operand in map(negating_nearest, node.operands):
        nearest = operand.nearest if isinstance(operand, Leaf) else None
        other = [ast.Not(Leaf(f"{operand.variable}'", operand.rows, None))] if isinstance(operand, Leaf) else []
        components += other * (nearest is ast.Nearest.NEXT) + [operand] + other * (nearest is ast.Nearest.LATEST)
    return replace(node, operands=tuple(components))


def negation_paths(node: Pattern, path: tuple[Negation, ...] = (MATCH,)) -> dict[str, tuple[Negation, ...]]:
    """Return for each variable the negated sub-patterns around it, outermost first."""
    if isinstance(node, Leaf):
        return {node.variable: path}
    inner = (*path, variables(node)) if isinstance(node, ast.Not) else path
    return {variable: found for each in operands(node) for variable, found in negation_paths(each, inner).items()}


# --- section 3: matches ------------------------------------------------------------------------------------------


@remembered
def bound_variables(node: Pattern) -> list[str]:
    return [leaf.variable for leaf in leaves(node)]


def rows_of(binding: Binding, node: Pattern | None = None) -> list[Row]:
    wanted = binding if node is None else bound_variables(node)
    return [row for variable in wanted for row in binding.get(variable, ())]


def alternatives(node: Pattern) -> Iterator[Pattern]:
    """Yield the pattern once for every choice of one operand per OR. Negated sub-patterns are not expanded here."""
    match node:
        case Leaf() | ast.Not():
            yield node
        case Scope(operand=operand):
            yield from (replace(node, operand=taken) for taken in alternatives(operand))
        case ast.Or():
            yield from (replace(node, operands=(taken,)) for each in node.operands for taken in alternatives(each))
        case _:
            yield from (replace(node, operands=taken) for taken in product(*map(alternatives, node.operands)))


@dataclass(frozen=True)
class Bounds:
    """Predicates for rows after the lower bound and before the upper one."""

    lower: Callable[[Row], bool]
    upper: Callable[[Row], bool]

    def hold(self, row: Row) -> bool:
        return self.lower(row) and self.upper(row)


def matches(
    query: Query, pattern: Pattern, owner: Negation, outer: Binding, bounds: Bounds, *, each_end: bool = False
) -> Iterator[Binding]:
    """Yield every match of the statement's pattern, or of a negated sub-pattern within the assignment `outer`."""
    for tree in alternatives(pattern):
        search = Search(query, tree, owner, outer, bounds)
        for fixed in search.fixed_bindings({}, [leaf for leaf in leaves(tree) if not leaf.grows]):
            ends = {row.key for row in query.stream.rows} if each_end else [None]
            for end in ends:
                yield from filter(search.group_aggregates_hold, search.maximal(fixed, end))


@dataclass(frozen=True)
class Search:
    query: Query
    tree: Pattern  # every OR has one operand
    owner: Negation
    outer: Binding
    bounds: Bounds

    def candidates(self, leaf: Leaf) -> list[Row]:
        """Return the rows of the class within the bounds that the enclosing assignment does not bind."""
        return [row for row in leaf.rows if self.bounds.hold(row) and row not in rows_of(self.outer)]

    def fixed_bindings(self, binding: Binding, rest: list[Leaf]) -> Iterator[Binding]:
        """Yield every assignment of the variables with a fixed number of events."""
        if not rest:
            yield binding
            return
        for group in combinations(self.candidates(rest[0]), rest[0].size):
            longer = {**binding, rest[0].variable: group}
            if self.consistent(longer):
                yield from self.fixed_bindings(longer, rest[1:])

    def maximal(self, fixed: Binding, end: tuple[Value, ...] | None) -> Iterator[Binding]:
        """Yield the valid assignments whose `+` and `*` groups are maximal: no other valid assignment contains them.

        An element is a pair of variable and row. The search starts with the maximal sets of pairwise consistent
        elements and removes elements one by one until the rest is valid. A subset of a valid set is not maximal.
        """
        growing = [leaf for leaf in leaves(self.tree) if leaf.grows]

        def bind(elements: Iterable[tuple[str, Row]]) -> Binding:
            groups: Binding = {leaf.variable: () for leaf in growing}
            for variable, row in sorted(elements, key=lambda element: (element[1].key, element[1].index)):
                groups[variable] += (row,)
            return {**fixed, **groups}

        elements = [
            (leaf.variable, row)
            for leaf in growing
            for row in self.candidates(leaf)
            if (end is None or row.key <= end) and self.consistent(bind([(leaf.variable, row)]))
        ]
        agree = {one: {two for two in elements if one != two and self.consistent(bind([one, two]))} for one in elements}
        levels: dict[int, set[frozenset[tuple[str, Row]]]] = {size: set() for size in range(len(elements) + 1)}
        for clique in cliques(agree, frozenset(), set(elements), set()):
            levels[len(clique)].add(clique)
        found: list[frozenset[tuple[str, Row]]] = []
        for size in reversed(levels):
            for group in levels[size]:
                if any(group <= larger for larger in found):
                    continue
                binding = bind(group)
                if self.valid(binding) and (end is None or span(rows_of(binding))[1] == end):
                    found.append(group)
                    yield binding
                elif group:
                    levels[size - 1].update(group - {element} for element in group)

    def valid(self, binding: Binding) -> bool:
        """Return True if an event is bound, no required group is empty, and all conditions and negations hold."""
        return (
            bool(rows_of(binding))
            and all(binding[leaf.variable] or leaf.may_be_empty for leaf in leaves(self.tree))
            and self.consistent(binding)
            and self.negations_hold(self.tree, binding, self.bounds)
            and (self.owner != MATCH or not any(self.ends_match(row, binding) for row in self.until_rows(binding)))
        )

    def until_rows(self, binding: Binding) -> list[Row]:
        """Return the rows of UNTIL's class strictly between the start and the end of the match, but not of it."""
        if self.query.until is None:
            return []
        start, end = span(rows_of(binding))
        return [row for row in self.query.until.rows if start < row.key < end and row not in rows_of(binding)]

    def ends_match(self, row: Row, binding: Binding) -> bool:
        """Return True if a row satisfies all conditions on the variable of UNTIL."""
        assert self.query.until is not None
        variable = self.query.until.variable
        visible = {**binding, variable: (row,)}
        return all(
            holds(piece.expression, visible)
            for piece in self.query.pieces
            if variable in piece.variables and piece.variables <= visible.keys()
        ) and all(
            compare("=", row.values[same.column], other.values[same.column])
            for same in self.query.sames
            if variable in same.variables
            for other in rows_of({name: visible[name] for name in same.variables if name in binding})
        )

    def consistent(self, binding: Binding) -> bool:
        """Return True if events are distinct and order, windows and predicates hold, as in every part of a match."""
        rows = rows_of(binding)
        if len(rows) != len(set(rows)) or not in_order(self.tree, binding):
            return False
        visible = {**self.outer, **binding}
        return all(
            holds(piece.expression, visible)
            for piece in self.query.pieces
            if piece.owner == self.owner and not piece.over_group and piece.variables <= visible.keys()
        ) and all(
            compare("=", one.values[same.column], two.values[same.column])
            for same in self.query.sames
            for one, two in combinations(
                rows_of({variable: visible[variable] for variable in same.variables if variable in visible}), 2
            )
        )

    def group_aggregates_hold(self, binding: Binding) -> bool:
        visible = {**self.outer, **binding}
        return all(
            holds(piece.expression, visible)
            for piece in self.query.pieces
            if piece.owner == self.owner and piece.over_group and piece.variables <= visible.keys()
        )

    def negations_hold(self, node: Pattern, binding: Binding, bounds: Bounds) -> bool:
        """Return True if no negated component matches between its neighbors; `bounds` apply at the ends."""
        if isinstance(node, Scope) and node.outermost and rows_of(binding, node):
            bounds = edges(node, binding)
        for index, operand in enumerate(operands(node)):
            inner = neighbours(node, index, binding, bounds) if isinstance(node, ast.Seq) else bounds
            if isinstance(operand, ast.Not):
                around = {**self.outer, **binding}
                if any(True for _ in matches(self.query, operand.operand, variables(operand), around, inner)):
                    return False
            elif not self.negations_hold(operand, binding, inner):
                return False
        return True


def holds(expression: ast.Expression, binding: Binding) -> bool:
    """Return True if the predicate holds for each element of every Kleene variable; aggregates use the whole group."""
    names = sorted(mentioned(expression, into_aggregates=False))
    choices = product(*(binding[name] for name in names))
    return all(evaluate(expression, dict(zip(names, rows, strict=True)), binding) is True for rows in choices)


def cliques(agree: Mapping[Any, set[Any]], chosen: frozenset[Any], rest: set[Any], done: set[Any]) -> Iterator[Any]:
    """Yield the maximal cliques of pairwise consistent elements (Bron and Kerbosch)."""
    if not rest and not done:
        yield chosen
    for element in sorted(rest, key=lambda pair: (pair[1].key, pair[1].index, pair[0])):
        yield from cliques(agree, chosen | {element}, rest & agree[element], done & agree[element])
        rest, done = rest - {element}, done | {element}


def span(rows: list[Row]) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    return min(row.key for row in rows), max(row.key for row in rows)


def in_order(node: Pattern, binding: Binding) -> bool:
    """Return True if SEQ, AND with Kleene classes, and the windows are satisfied; skip operands without events."""
    positive = [operand for operand in operands(node) if not isinstance(operand, ast.Not)]
    parts = [rows_of(binding, operand) for operand in positive]
    match node:
        case Scope():
            if parts[0] and not inside(node, *first_and_last(node, parts[0])):
                return False
        case ast.Seq():
            spans = [span(part) for part in parts if part]
            if any(one[1] >= two[0] for one, two in pairwise(spans)):
                return False
        case ast.And():
            for step in range(1, len(parts)):
                kleene = is_kleene(positive[step]) or (step == 1 and is_kleene(positive[0]))
                left, right = list(chain(*parts[:step])), parts[step]
                if kleene and left and right and not apart(span(left), span(right)):
                    return False
    return all(in_order(operand, binding) for operand in positive)


def is_kleene(node: Pattern) -> bool:
    return isinstance(node, Leaf) and node.quantifier is not None


def apart(one: tuple[Value, Value], two: tuple[Value, Value]) -> bool:
    return bool(one[1] < two[0] or two[1] < one[0])


def first_and_last(scope: Scope, rows: list[Row]) -> tuple[Row, Row]:
    in_stream_order = sorted(rows, key=lambda row: (row.key, scope.position[row]))
    return in_stream_order[0], in_stream_order[-1]


def inside(scope: Scope, start: Row, end: Row) -> bool:
    """Return True if `end` is within the window that begins at `start`."""
    if scope.window is None:
        return True
    if scope.window.length.unit is ast.Unit.EVENT:
        return fits(scope.window, scope.position[end] - scope.position[start])
    return fits(scope.window, elapsed(end.time, start.time))


def fits(window: ast.Window, distance: Fraction | float) -> bool:
    """Compare a distance with the window exactly; for float times, compare it with the double nearest to the bound."""
    strict = window.exclusive or window.length.unit is ast.Unit.EVENT
    bound: Fraction | float = length(window.length)
    if isinstance(distance, float):
        bound = nearest_double(bound)
        if bound == math.inf:  # beyond the range of the column
            return True
    return distance < bound if strict else distance <= bound


def nearest_double(number: Fraction | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def neighbours(node: ast.Seq, index: int, binding: Binding, bounds: Bounds) -> Bounds:
    """Return the bounds between the nearest positive components before and after the operand."""
    before = rows_of(binding, replace(node, operands=node.operands[:index]))
    after = rows_of(binding, replace(node, operands=node.operands[index + 1 :]))
    return Bounds(
        (lambda row: row.key > span(before)[1]) if before else bounds.lower,
        (lambda row: row.key < span(after)[0]) if after else bounds.upper,
    )


def edges(scope: Scope, binding: Binding) -> Bounds:
    """Return the bounds of edge negations: from `end - w` to `start + w`, or to `end` for an outermost AND."""
    start, end = first_and_last(scope, rows_of(binding, scope))
    outermost: Pattern = scope
    while isinstance(outermost, Scope | ast.Or):
        (outermost,) = operands(outermost)
    return Bounds(
        lambda row: inside(scope, row, end),
        lambda row: row.key <= end.key if isinstance(outermost, ast.And) else inside(scope, start, row),
    )


# --- section 4: aggregation --------------------------------------------------------------------------------------


def grouped(query: Query, matches: list[Binding]) -> dict[tuple[Value, ...], list[Binding]]:
    """Return the matches by GROUP BY value, without those that have a null value."""
    groups: dict[tuple[Value, ...], list[Binding]] = {}
    for match in matches:
        key = rows_of(match)[0].at(query.group)
        if not any(map(missing, key)):
            groups.setdefault(key, []).append(match)
    return groups


def group_columns(query: Query, key: tuple[Value, ...]) -> dict[str, object]:
    return {name.parts[-1]: value for name, value in zip(query.statement.group_by, key, strict=True)}


def aggregates(query: Query, matches: list[Binding]) -> dict[str, object]:
    row: dict[str, object] = {}
    for item in query.statement.aggregates:
        written = item.argument.parts if item.argument else ()
        name = item.alias or "_".join([item.function.lower(), *written])
        if item.argument is None:
            row[name] = len(matches)
        else:
            variable, column = query.resolve(item.argument, "").parts
            values = [each.values[column] for match in matches for each in match.get(variable, ())]
            row[name] = aggregate(item.function, values)
    return row


def aggregation(query: Query, matches: list[Binding]) -> Iterator[dict[str, object]]:
    for key, members in grouped(query, matches).items():
        if query.statement.update:
            for time, chosen in ticks(query, members):
                yield {"time": time, **group_columns(query, key), **aggregates(query, chosen)}
            continue
        ends = {span(rows_of(match))[1] for match in members}
        changes = query.statement.emit is not None and query.statement.emit.mode is ast.Emit.CHANGES
        previous = aggregates(query, [])
        for end in sorted(ends | relevant_times(query) if changes else ends):
            values = aggregates(query, [match for match in members if in_last_window(query, match, end)])
            if end in ends or list(map(nan_last, values.values())) != list(map(nan_last, previous.values())):
                time = next(row.values[query.stream.time] for row in query.stream.rows if row.key == end)
                yield {"time": time, **group_columns(query, key), **values}
            previous = values


def in_last_window(query: Query, match: Binding, end: tuple[Value, ...]) -> bool:
    """Return True if the events are in `[t - w, t]`, or in the last n positions of the partition up to t."""
    rows, window, position = rows_of(match), query.statement.window, query.pattern.position
    start, last = span(rows)
    if window is None or last > end:
        return last <= end
    if window.length.unit is not ast.Unit.EVENT:
        return fits(window, elapsed(end[0], start[0]))
    partition = rows[0].at(query.partition)
    reached = max(position[row] for row in position if row.at(query.partition) == partition and row.key <= end)
    return fits(window, reached - min(position[row] for row in rows))


def relevant_times(query: Query) -> set[tuple[Value, ...]]:
    """Return the times of rows of the pattern's classes, including negated ones, that pass single-event predicates."""
    return {
        row.key
        for leaf in leaves(query.pattern, negated=True)
        for row in leaf.rows
        if all(
            holds(piece.expression, {leaf.variable: (row,)})
            for piece in query.pieces
            if piece.variables == {leaf.variable} and not piece.over_group
        )
    }


# --- section 4: UPDATE -------------------------------------------------------------------------------------------


def ticks(query: Query, matches: list[Binding]) -> Iterator[tuple[Value, list[Binding]]]:
    """Yield each tick whose window contains a match, with its matches."""
    update, window = query.statement.update, query.statement.window
    assert update is not None
    assert window is not None, "UPDATE without WITHIN is an error"
    moves = count_ticks if update.unit is ast.Unit.EVENT else time_ticks
    return moves(query, matches, length(update), length(window.length))


def time_ticks(
    query: Query, matches: list[Binding], step: Fraction, width: Fraction
) -> Iterator[tuple[Value, list[Binding]]]:
    """Yield ticks at multiples T of the step, with matches in `[T - w, T)`; float times use the nearest doubles."""
    spans = [(match, *(key[0] for key in span(rows_of(match)))) for match in matches]
    spans = [each for each in spans if not any(isinstance(t, float) and math.isinf(t) for t in each[1:])]
    is_float = any(isinstance(start, float) for _, start, _ in spans)

    def edges(number: int) -> tuple[Fraction | float, Fraction | float]:
        begin, tick = number * step - width, number * step
        return (nearest_double(begin), nearest_double(tick)) if is_float else (begin, tick)

    def held(start: Value, end: Value, number: int) -> bool:
        begin, tick = edges(number)
        return begin <= (start if is_float else instant(start)) and (end if is_float else instant(end)) < tick

    reach: set[int] = set()
    for _, start, end in spans:
        # Rounding moves a bound by less than this.
        spare = (abs(instant(start)) + abs(instant(end)) + width) / 2**50 if is_float else Fraction(0)
        near = range((instant(end) - spare) // step - 1, (instant(start) + width + spare) // step + 2)
        reach |= {number for number in near if held(start, end, number)}
    for number in sorted(reach):
        chosen = [match for match, start, end in spans if held(start, end, number)]
        yield tick_value(query, number * step, step), chosen


def instant(time: Value) -> Fraction:
    """Return a time as a number: seconds since the epoch for timestamps."""
    return Fraction(elapsed(time, datetime(1970, 1, 1))) if isinstance(time, datetime) else Fraction(time)


def tick_value(query: Query, tick: Fraction, step: Fraction) -> Value:
    """Return a tick in the time column's type; for dates a timestamp, for a fractional step of integers a float."""
    sample = query.stream.rows[0].values[query.stream.time]
    if isinstance(sample, date):
        moment = datetime(1970, 1, 1) + timedelta(microseconds=int(tick * 1_000_000))
        return moment.replace(tzinfo=UTC) if isinstance(sample, datetime) and sample.tzinfo else moment
    if isinstance(sample, Decimal):
        return Decimal(tick.numerator) / Decimal(tick.denominator)
    return int(tick) if isinstance(sample, int) and step.denominator == 1 else float(tick)


def count_ticks(
    query: Query, matches: list[Binding], step: Fraction, width: Fraction
) -> Iterator[tuple[Value, list[Binding]]]:
    """Yield ticks after every n-th row of a partition, with matches among its last w rows."""
    position = query.pattern.position
    for tick in (row for row in position if position[row] % step == 0):

        def held(row: Row, tick: Row = tick) -> bool:
            same_partition = row.at(query.partition) == tick.at(query.partition)
            return same_partition and 0 <= position[tick] - position[row] < width

        chosen = [match for match in matches if all(map(held, rows_of(match)))]
        if chosen:
            yield tick.values[query.stream.time], chosen


# --- section 4: ranking ------------------------------------------------------------------------------------------

MERGE: dict[str, Callable[[list[float]], float]] = {
    "MIN": min,
    "MAX": max,
    "SUM": sum,
    "AVG": lambda scores: sum(scores) / len(scores),
    "PRODUCT": math.prod,
}


def ranking(query: Query, matches: list[Binding]) -> list[dict[str, object]]:
    """Return the k best matches, per tick with UPDATE and per group with GROUP BY."""
    assert query.statement.returns is not None
    rows: list[dict[str, object]] = []
    for key, members in grouped(query, matches).items():
        windows = ticks(query, members) if query.statement.update else [(None, members)]
        for time, chosen in windows:
            scored = [(match, *scoring(query, match)) for match in chosen]
            best = [each for each in scored if not missing(each[1])]
            best.sort(key=lambda each: (-each[1], query.tie_key(each[0])))
            for rank, (match, score, values) in enumerate(best[: query.statement.returns.limit], start=1):
                window_end = {"window_end": time} if query.statement.update else {}
                place = {**window_end, **group_columns(query, key), "rank": rank, "score": score}
                rows.append({**place, **values, **query.output(match)})
    return sorted(rows, key=lambda row: row["window_end"]) if query.statement.update else rows


def scoring(query: Query, match: Binding) -> tuple[float | None, dict[str, Value]]:
    """Return the score, or None if an objective is null or NaN, and the value of each objective.

    If the statement has no PREF, the objectives of each definition are merged by its own function, then all by MIN.
    """
    values: dict[str, Value] = {}
    merged: list[float] = []
    own = query.statement.preference
    for prefix, statement in [("", query.statement)] if own else query.prefixed():
        scores: list[float] = []
        for objective in statement.preference.objectives if statement.preference else ():
            name = prefix + objective.name if objective.name else f"objective_{len(values) + 1}"
            value = query.value(query.resolve(objective.expression, prefix), match)
            values[name] = value = value.total_seconds() if isinstance(value, timedelta) else value
            if missing(value):
                return None, {}
            scores.append(float(value) if objective.maximise else -float(value))
        if statement.preference:
            merged.append(MERGE[statement.preference.merge or "MIN"](scores))
    return min(merged), values
