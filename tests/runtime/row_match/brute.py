"""Match a row pattern by trying every way in order of preference, as a check of the matcher's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

from streamsift.language.row_match.syntax import SkipTo
from streamsift.logical.row_match.bound import (
    Anchor,
    AtEnd,
    AtStart,
    BoundRowPattern,
    BoundRows,
    Classifier,
    Either,
    Exclude,
    Label,
    Loop,
    MatchNumber,
    Permute,
    RowAggregate,
    RowConstant,
    RowExpr,
    RowOperation,
    RowReach,
    RowValue,
    Then,
)

Path = tuple[tuple[int, bool], ...]  # variable and whether it is excluded, for each row


@dataclass
class Brute:
    """The matcher of one partition, a list of dictionaries."""

    bound: BoundRows
    rows: list[dict]
    number: int = 0
    start: int = 0
    found: list[tuple[int, Path, int]] = field(default_factory=list)  # start, labels, number

    def run(self) -> list[tuple[int, Path, int]]:
        while self.start < len(self.rows):
            path = next(self.ways(self.bound.pattern, ()), None)
            if path is None:
                self.start += 1
                continue
            self.number += 1
            self.found.append((self.start, path, self.number))
            self.start = self.following(path)
        return self.found

    def following(self, path: Path) -> int:
        if not path or self.bound.skip_to is SkipTo.NEXT_ROW:
            return self.start + 1
        if self.bound.skip_to is SkipTo.PAST_LAST_ROW:
            return self.start + len(path)
        places = [i for i, (v, _) in enumerate(path) if v in self.bound.skip_labels]
        if not places or (at := places[0 if self.bound.skip_to is SkipTo.FIRST else -1]) == 0:
            assert self.bound.skip_error == "next"
            return self.start + 1
        return self.start + at

    def ways(self, node: BoundRowPattern, path: Path, excluded: bool = False) -> Iterator[Path]:
        row = self.start + len(path)
        match node:
            case Label(variable=v):
                if row < len(self.rows) and self.holds(v, path):
                    yield (*path, (v, excluded))
            case Then(parts=()):
                yield path
            case Then(parts=parts):
                for first in self.ways(parts[0], path, excluded):
                    yield from self.ways(Then(parts[1:]), first, excluded)
            case Either(branches=branches):
                for branch in branches:
                    yield from self.ways(branch, path, excluded)
            case Permute(parts=parts):
                for order in permutations(parts):
                    yield from self.ways(Then(order), path, excluded)
            case Exclude(part=part):
                yield from self.ways(part, path, True)
            case Loop():
                yield from self.loop(node, path, excluded, 0)
            case AtStart():
                if row == 0:
                    yield path
            case AtEnd():
                if row == len(self.rows):
                    yield path

    def loop(self, node: Loop, path: Path, excluded: bool, done: int) -> Iterator[Path]:
        if done >= node.low and not node.greedy:
            yield path
        if node.high is None or done < node.high:
            for after in self.ways(node.part, path, excluded):
                if len(after) == len(path) and done + 1 >= node.low:
                    yield after
                else:
                    yield from self.loop(node, after, excluded, done + 1)
        if done >= node.low and node.greedy:
            yield path

    def holds(self, variable: int, path: Path) -> bool:
        row = self.start + len(path)
        if self.bound.within is not None:
            time = self.bound.order_by[0].column
            if not self.rows[row][time] - self.rows[self.start][time] < self.bound.within.length:
                return False
        condition = self.bound.conditions[variable]
        return condition is None or self.value(condition, (*path, (variable, False))) is True

    def reached(self, reach: RowReach, path: Path) -> int | None:
        current = self.start + len(path) - 1
        if reach.anchor is Anchor.CURRENT:
            row = current
        else:
            rows = self.labeled(reach.labels, path)
            if reach.anchor is Anchor.LAST:
                rows = rows[::-1]
            if reach.offset >= len(rows):
                return None
            row = rows[reach.offset]
        row += reach.shift
        return row if 0 <= row < len(self.rows) else None

    def labeled(self, labels: tuple[int, ...], path: Path) -> list[int]:
        return [self.start + i for i, (v, _) in enumerate(path) if not labels or v in labels]

    def value(self, node: RowExpr, path: Path):
        match node:
            case RowConstant(value=value):
                return value
            case RowValue(column=column, reach=reach):
                row = self.reached(reach, path)
                return None if row is None else self.rows[row][column]
            case Classifier(reach=reach):
                row = self.reached(reach, path)
                inside = row is not None and self.start <= row < self.start + len(path)
                return self.bound.labels[path[row - self.start][0]] if inside else None
            case MatchNumber():
                return self.number + 1
            case RowAggregate(function=function, labels=labels, column=column):
                rows = self.labeled(labels, path)
                if column is None:
                    return len(rows)
                values = [self.rows[r][column] for r in rows if self.rows[r][column] is not None]
                if function == "COUNT":
                    return len(values)
                if not values:
                    return None
                if function == "AVG":
                    return sum(values) / len(values)
                return {"SUM": sum, "MIN": min, "MAX": max}[function](values)
            case RowOperation(op=op, operands=operands):
                return operate(op, [self.value(operand, path) for operand in operands])


def operate(op: str, values: list):
    if op == "and":
        return False if False in values else None if None in values else True
    if op == "or":
        return True if True in values else None if None in values else False
    if op == "is_null":
        return values[0] is None
    if None in values:
        return None
    left, right = values[0], values[-1]
    match op:
        case "not":
            return not left
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "=":
            return left == right
        case "!=":
            return left != right
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    raise AssertionError(op)
