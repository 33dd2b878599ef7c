"""Evaluate MATCH_RECOGNIZE on a few rows by brute force, as SQL:2016 and the language's definition say: the oracle.

The pattern is tried depth first in its order of preference, with backtracking into every choice. Nothing is cached, and
conditions are evaluated again for each attempt. The oracle imports only the parser and the expressions of `naive.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cmp_to_key
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import naive
from streamsift.language import syntax as ast
from streamsift.language.row_match import syntax as row

Value = Any
Values = dict[str, Value]


class SkipError(Exception):
    """AFTER MATCH SKIP TO a variable without rows, or to the first row of the match."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A row of a match: its index in the partition, its label, and whether an exclusion contains it."""

    index: int
    label: str
    is_excluded: bool


Match = tuple[Mapped, ...]


def run(
    clause: row.MatchRecognize, rows: list[Values], columns: list[str], on_skip_error: str = "fail"
) -> list[Values]:
    """Return the result rows over `rows`, which are in input order and have these columns."""
    query = Query(clause, columns, on_skip_error)
    groups: dict[tuple[Value, ...], list[Values]] = {}
    for values in rows:
        key = tuple(query.alone(expression, values) for expression in clause.partition_by)
        groups.setdefault(tuple(map(grouping_value, key)), []).append(values)
    return [result for group in groups.values() for result in Partition(query, query.sorted(group)).results()]


def grouping_value(value: Value) -> Value:
    """Return what GROUP BY and PARTITION BY compare: NaN equals NaN, and -0.0 equals 0.0."""
    return "NaN" if value != value else value + 0.0 if isinstance(value, float) else value


# --- names, order, columns ---------------------------------------------------------------------------------------


class Query:
    """A clause with its labels, subsets and columns."""

    def __init__(self, clause: row.MatchRecognize, columns: list[str], on_skip_error: str) -> None:
        self.clause, self.on_skip_error = clause, on_skip_error
        self.columns = {name.lower(): name for name in columns}
        self.labels = {node.label for node in pattern_nodes(clause.pattern) if isinstance(node, row.RowVariable)}
        self.subsets = {subset.label: frozenset(subset.members) for subset in clause.subsets}
        self.conditions = {define.label: define.condition for define in clause.defines}

    def members(self, label: str) -> frozenset[str]:
        """Return the variables that a variable or a subset stands for."""
        return self.subsets.get(label, frozenset({label}))

    def label(self, written: str) -> str | None:
        """Return the variable or subset of a qualifier: as written if it was quoted, or in upper case."""
        known = self.labels | set(self.subsets) | set(self.conditions)
        return next((label for label in (written, written.upper()) if label in known), None)

    def column(self, name: str) -> str:
        return self.columns[name.lower()]

    def alone(self, expression: ast.Expression, values: Values) -> Value:
        """Evaluate an expression of one row."""
        alone = Partition(self, [values])
        return Scene(alone, (), 0, 1).value(expression)

    def sorted(self, rows: list[Values]) -> list[Values]:
        def compare(left: Values, right: Values) -> int:
            for key in self.clause.order_by:
                a, b = (self.alone(key.expression, values) for values in (left, right))
                nulls_first = not key.descending if key.nulls_first is None else key.nulls_first
                if (a is None) != (b is None):
                    return -1 if (a is None) == nulls_first else 1
                if a is not None and (order := three_way(a, b)):
                    return -order if key.descending else order
            return 0

        return sorted(rows, key=cmp_to_key(compare))


def three_way(left: Value, right: Value) -> int:
    """Compare two values that are not null; NaN is the greatest, as in Spark."""
    if left != left or right != right:
        return int(left != left) - int(right != right)
    return int(left > right) - int(left < right)


def pattern_nodes(pattern: row.RowPattern) -> Iterator[row.RowPattern]:
    yield pattern
    match pattern:
        case row.Concatenation(parts=inner) | row.Permutation(parts=inner) | row.Alternation(branches=inner):
            for part in inner:
                yield from pattern_nodes(part)
        case row.Exclusion(pattern=part) | row.Repetition(pattern=part):
            yield from pattern_nodes(part)


# --- expressions -------------------------------------------------------------------------------------------------

NAVIGATIONS = ("FIRST", "LAST", "PREV", "NEXT")
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG", "COLLECT_LIST")


@dataclass(frozen=True, slots=True)
class Scene:
    """What an expression sees: the rows bound so far or the whole match, and the current row (None: an empty match)."""

    partition: Partition
    mapped: Match
    current: int | None
    number: int
    semantics: row.Semantics = row.Semantics.RUNNING

    def value(self, expression: ast.Expression) -> Value:
        """Replace everything that reads rows by its value, and evaluate the rest as any expression."""
        values: Values = {}

        def constant(value: Value) -> ast.Name:
            values[str(len(values))] = value
            return ast.Name(("$", str(len(values) - 1)))

        def resolved(node: Any) -> Any:
            match node:
                case ast.Name(parts=parts):
                    return constant(self.at(self.base(node), parts[-1]))
                case row.Case():
                    return constant(self.chosen(node))
                case row.WithSemantics(semantics=semantics, operand=operand):
                    return constant(replace(self, semantics=semantics).value(operand))
                case ast.Call(function=name) if name in (*NAVIGATIONS, *AGGREGATES, "CLASSIFIER", "MATCH_NUMBER"):
                    return constant(self.called(node))
                case tuple():
                    return tuple(map(resolved, node))
                case ast.Written():
                    fields = {
                        name: resolved(getattr(node, name)) for name in node.__dataclass_fields__ if name != "span"
                    }
                    return replace(node, **fields)
            return node

        return naive.evaluate(resolved(expression), {"$": SimpleNamespace(values=values)}, {})  # type: ignore[dict-item]

    def chosen(self, case: row.Case) -> Value:
        """Return the result of the first branch whose condition is true, or whose value equals the operand."""
        for condition, result in case.branches:
            tested = condition if case.operand is None else ast.Comparison((case.operand, condition), ("=",))
            if self.value(tested) is True:  # type: ignore[arg-type]
                return self.value(result)  # type: ignore[arg-type]
        return None if case.otherwise is None else self.value(case.otherwise)  # type: ignore[arg-type]

    def called(self, call: ast.Call) -> Value:
        name, arguments = call.function, call.arguments
        if name == "MATCH_NUMBER":
            return self.number
        if name == "CLASSIFIER":
            label = self.partition.query.label(arguments[0].parts[0]) if arguments else None  # type: ignore[union-attr]
            return self.label_at(self.current if label is None else self.reached(label, first=False, offset=0))
        if name in AGGREGATES:
            return self.aggregated(name, arguments[0])
        return self.navigated(call)

    # --- rows ---
    def visible(self, label: str | None) -> list[int]:
        """Return the rows of the match with a label (None: any) up to the current row, or all with FINAL."""
        members = None if label is None else self.partition.query.members(label)
        is_running = self.semantics is row.Semantics.RUNNING
        return [
            each.index
            for each in self.mapped
            if (members is None or each.label in members)
            and (not is_running or (self.current is not None and each.index <= self.current))
        ]

    def reached(self, label: str | None, *, first: bool, offset: int) -> int | None:
        rows = self.visible(label)
        if offset >= len(rows):
            return None
        return rows[offset] if first else rows[-1 - offset]

    def base(self, name: ast.Name) -> int | None:
        """Return the row of a plain name: the last row of its variable, or the current row."""
        label = self.partition.query.label(name.parts[0]) if len(name.parts) > 1 else None
        if label is not None:
            return self.reached(label, first=False, offset=0)
        return self.last_of_any()

    def last_of_any(self) -> int | None:
        """Return the current row; with FINAL, the last row of the match."""
        if self.semantics is row.Semantics.FINAL and self.mapped:
            return self.mapped[-1].index
        return self.current

    def at(self, index: int | None, column: str) -> Value:
        rows = self.partition.rows
        if index is None or not 0 <= index < len(rows):
            return None
        return rows[index][self.partition.query.column(column)]

    def label_at(self, index: int | None) -> str | None:
        return next((each.label for each in self.mapped if each.index == index), None)

    # --- navigation and aggregates ---
    def navigated(self, call: ast.Call) -> Value:
        """PREV and NEXT move in the partition; FIRST and LAST among the rows of a label."""
        name, (inner, *rest) = call.function, call.arguments
        offset = rest[0].value if rest else 1 if name in ("PREV", "NEXT") else 0  # type: ignore[union-attr]
        if name in ("FIRST", "LAST"):
            return self.at_row(inner, self.reached(self.argument_label(inner), first=name == "FIRST", offset=offset))
        scene = self
        if isinstance(inner, row.WithSemantics):
            scene, inner = replace(self, semantics=inner.semantics), inner.operand
        if isinstance(inner, ast.Call) and inner.function in ("FIRST", "LAST"):
            nested, *steps = inner.arguments
            place = scene.reached(
                self.argument_label(nested),
                first=inner.function == "FIRST",
                offset=steps[0].value if steps else 0,  # type: ignore[union-attr]
            )
            inner = nested
        else:
            label = self.argument_label(inner)
            place = scene.last_of_any() if label is None else scene.reached(label, first=False, offset=0)
        if place is None:
            return None
        return self.at_row(inner, place - offset if name == "PREV" else place + offset)

    def argument_label(self, argument: ast.Expression) -> str | None:
        """Return the variable that the names of an argument, or its CLASSIFIER, are qualified with."""
        query = self.partition.query
        for node in naive.nodes_in(argument):
            if isinstance(node, ast.Call) and node.function == "CLASSIFIER" and node.arguments:
                return query.label(node.arguments[0].parts[0])  # type: ignore[union-attr]
            if isinstance(node, ast.Name) and len(node.parts) > 1:
                return query.label(node.parts[0])
        return None

    def at_row(self, expression: ast.Expression, index: int | None) -> Value:
        """Evaluate an expression with every name at one row; null if there is no such row."""
        if index is None or not 0 <= index < len(self.partition.rows):
            return None
        return AtRow(self.partition, self.mapped, index, self.number).value(expression)

    def aggregated(self, name: str, argument: ast.Expression) -> Value:
        is_distinct = isinstance(argument, row.Distinct)
        inner = argument.operand if isinstance(argument, row.Distinct) else argument
        if isinstance(inner, row.AllRows):
            return len(self.visible(None if inner.variable is None else self.partition.query.label(inner.variable)))
        values = [self.at_row(inner, index) for index in self.visible(self.argument_label(inner))]
        if is_distinct:
            values = list({repr(grouping_value(value)): value for value in values}.values())
        if name in ("ARRAY_AGG", "COLLECT_LIST"):
            return values or None
        return naive.aggregate(name, values)


class AtRow(Scene):
    """One row of the partition: all names, qualified or not, and CLASSIFIER mean that row."""

    __slots__ = ()

    def base(self, name: ast.Name) -> int | None:
        return self.current

    def called(self, call: ast.Call) -> Value:
        if call.function == "CLASSIFIER":
            return self.label_at(self.current)
        return Scene.called(self, call)


# --- matching ----------------------------------------------------------------------------------------------------

Rest = Callable[
    [Match, int], Match | None
]  # what follows a part of the pattern, given the match so far and the next row


class Partition:
    """The rows of one partition, in order."""

    def __init__(self, query: Query, rows: list[Values]) -> None:
        self.query, self.rows = query, rows

    def preferred(self, start: int, number: int) -> Match | None:
        """Return the preferred match that starts at a row; () is the empty match."""
        return Attempt(self, start, number).match(self.query.clause.pattern, (), start, lambda match, _: match)

    def results(self) -> Iterator[Values]:
        clause, number, start, covered = self.query.clause, 0, 0, 0
        while start < len(self.rows):
            match = self.preferred(start, number + 1)
            if match is None:
                if clause.rows_per_match is row.RowsPerMatch.WITH_UNMATCHED and start >= covered:
                    yield self.output(start, None)
                start += 1
                continue
            number += 1
            yield from self.rows_of_match(match, start, number)
            covered = max(covered, start + len(match))
            start = self.next_start(match, start)

    def next_start(self, match: Match, start: int) -> int:
        skip = self.query.clause.skip
        if not match or skip.to is row.SkipTo.NEXT_ROW:
            return start + 1
        if skip.to is row.SkipTo.PAST_LAST_ROW:
            return start + len(match)
        assert skip.variable is not None
        members = self.query.members(skip.variable)
        rows = [each.index for each in match if each.label in members]
        target = None if not rows else rows[0] if skip.to is row.SkipTo.FIRST else rows[-1]
        if target is None or target == start:
            if self.query.on_skip_error == "next":
                return start + 1
            raise SkipError(f"{skip.variable}: {'no row' if target is None else 'the first row'}")
        return target

    # --- output ---
    def rows_of_match(self, match: Match, start: int, number: int) -> Iterator[Values]:
        clause = self.query.clause
        if clause.rows_per_match is row.RowsPerMatch.ONE:
            last = match[-1].index if match else None
            scene = Scene(self, match, last, number, row.Semantics.FINAL)
            keys = {key_name(key): self.query.alone(key, self.rows[start]) for key in clause.partition_by}
            yield keys | {measure.name: scene.value(measure.expression) for measure in clause.measures}
        elif not match and clause.rows_per_match is not row.RowsPerMatch.OMIT_EMPTY:
            yield self.output(start, Scene(self, (), None, number))
        for each in match if clause.rows_per_match is not row.RowsPerMatch.ONE else ():
            if not each.is_excluded:
                yield self.output(each.index, Scene(self, match, each.index, number))

    def output(self, index: int, scene: Scene | None) -> Values:
        """Return a row of ALL ROWS PER MATCH: partition columns, order columns, measures, the other columns."""
        clause, values = self.query.clause, self.rows[index]
        keys = [*clause.partition_by, *(key.expression for key in clause.order_by)]
        first = {key_name(key): self.query.alone(key, values) for key in keys if isinstance(key, ast.Name)}
        measures = {each.name: None if scene is None else scene.value(each.expression) for each in clause.measures}
        first = {self.query.column(name): value for name, value in first.items()}
        return first | measures | {name: value for name, value in values.items() if name not in first}


def key_name(key: ast.Expression) -> str:
    return key.parts[-1] if isinstance(key, ast.Name) else str(key)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The search for the preferred match from one row."""

    partition: Partition
    start: int
    number: int
    is_excluded: bool = False

    def match(self, pattern: row.RowPattern, so_far: Match, at: int, rest: Rest) -> Match | None:
        """Match a part of the pattern, then the rest; try the choices in order of preference."""
        match pattern:
            case row.Empty():
                return rest(so_far, at)
            case row.PartitionStart():
                return rest(so_far, at) if at == 0 else None
            case row.PartitionEnd():
                return rest(so_far, at) if at == len(self.partition.rows) else None
            case row.RowVariable(label=label):
                mapped = (*so_far, Mapped(at, label, self.is_excluded))
                return rest(mapped, at + 1) if at < len(self.partition.rows) and self.holds(label, mapped) else None
            case row.Concatenation(parts=()):
                return rest(so_far, at)
            case row.Concatenation(parts=(first, *others)):
                following = row.Concatenation(tuple(others))
                return self.match(first, so_far, at, lambda match, next_: self.match(following, match, next_, rest))
            case row.Alternation(branches=branches):
                return next((m for each in branches if (m := self.match(each, so_far, at, rest)) is not None), None)
            case row.Permutation(parts=parts):
                orders = tuple(row.Concatenation(order) for order in permutations(parts))
                return self.match(row.Alternation(orders), so_far, at, rest)
            case row.Exclusion(pattern=inner):
                return replace(self, is_excluded=True).match(inner, so_far, at, rest)
            case row.Repetition():
                return self.repeat(pattern, 0, so_far, at, rest)

    def repeat(self, loop: row.Repetition, count: int, so_far: Match, at: int, rest: Rest) -> Match | None:
        """Match the remaining iterations. One without a row ends the loop, once there are enough of them."""

        def again(match: Match, next_: int) -> Match | None:
            if next_ == at and count + 1 >= loop.low:
                return rest(match, next_)
            return self.repeat(loop, count + 1, match, next_, rest)

        def iterate() -> Match | None:
            is_allowed = loop.high is None or count < loop.high
            return self.match(loop.pattern, so_far, at, again) if is_allowed else None

        if count < loop.low:
            return iterate()
        for choice in (iterate, lambda: rest(so_far, at)) if loop.greedy else (lambda: rest(so_far, at), iterate):
            if (match := choice()) is not None:
                return match
        return None

    def holds(self, label: str, mapped: Match) -> bool:
        """Return True if the last row mapped satisfies its condition, with itself bound, and WITHIN."""
        query, index = self.partition.query, mapped[-1].index
        scene = Scene(self.partition, mapped, index, self.number)
        condition = query.conditions.get(label)
        if query.clause.within is not None:
            time = query.clause.order_by[0].expression
            first, now = (query.alone(time, self.partition.rows[each]) for each in (mapped[0].index, index))
            if not elapsed(now, first) < naive.length(query.clause.within):
                return False
        return condition is None or scene.value(condition) is True


def elapsed(later: Value, earlier: Value) -> Fraction | float:
    if isinstance(later, datetime):
        return naive.elapsed(naive.timestamp(later), naive.timestamp(earlier))
    return naive.elapsed(later, earlier)
