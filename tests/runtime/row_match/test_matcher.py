"""Compare the matcher with brute force on random patterns, conditions and rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from runtime.row_match.brute import Brute
from streamsift.language.row_match.syntax import RowsPerMatch, SkipTo
from streamsift.logical.bound import BoundWindow, Kind, WindowKind
from streamsift.logical.row_match.bound import (
    Anchor,
    AtEnd,
    AtStart,
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
    RowOperation,
    RowReach,
    RowValue,
    SortKey,
    Then,
)
from streamsift.physical.row_match import plan_rows
from streamsift.runtime.row_match.matching import start_run
from streamsift.runtime.row_match.order import sort_rows

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("x", pa.int64()), ("y", pa.float64()), ("s", pa.string())])
KINDS = {"x": Kind.INTEGER, "y": Kind.FLOAT, "s": Kind.STRING, "t": Kind.INTEGER}
LABELS = ("A", "B", "C")


def bound_rows(pattern, conditions, skip=SkipTo.PAST_LAST_ROW, skip_labels=(), within=None) -> BoundRows:
    return BoundRows(
        partition_by=("k",),
        order_by=(SortKey("t", False, True),),
        computed=(),
        labels=LABELS,
        conditions=tuple(conditions),
        pattern=pattern,
        measures=(),
        rows_per_match=RowsPerMatch.ONE,
        skip_to=skip,
        skip_labels=skip_labels,
        within=None if within is None else BoundWindow(WindowKind.TIME, Fraction(within), False, str(within)),
        schema=SCHEMA,
        output=pa.schema([]),
        text="",
        skip_error="next",
    )


def random_pattern(rng: np.random.Generator, depth: int):
    kind = rng.integers(0, 11 if depth else 2)
    part = lambda: random_pattern(rng, depth - 1)  # noqa: E731
    match kind:
        case 2 | 3 | 4:
            return Then(tuple(part() for _ in range(rng.integers(0, 4))))
        case 5 | 6:
            return Either(tuple(part() for _ in range(rng.integers(1, 4))))
        case 7:
            return Permute(tuple(part() for _ in range(rng.integers(1, 4))))
        case 8 | 9:
            low = int(rng.integers(0, 3))
            high = None if rng.integers(2) else low + int(rng.integers(0, 3))
            return Loop(part(), low, high, bool(rng.integers(2)))
        case 10:
            return [AtStart(), AtEnd(), Exclude(part())][rng.integers(3)]
    return Label(int(rng.integers(3)))


def random_condition(rng: np.random.Generator, matching: bool):
    kind = rng.integers(0, 8 if matching else 4)
    op = ["<", "<=", ">", ">=", "=", "!="][rng.integers(6)]
    column = ["x", "y"][rng.integers(2)]
    current = RowValue(column, RowReach(Anchor.CURRENT), KINDS[column])
    if kind == 0:
        return None
    if kind in (1, 2):
        return RowOperation(op, (current, RowConstant(int(rng.integers(4)), Kind.INTEGER)), Kind.BOOLEAN)
    if kind == 3:
        shift = RowReach(Anchor.CURRENT, shift=int(rng.integers(-2, 3)))
        return RowOperation(op, (current, RowValue(column, shift, KINDS[column])), Kind.BOOLEAN)
    labels = tuple(sorted({int(v) for v in rng.integers(0, 3, rng.integers(0, 3))}))
    anchor = [Anchor.FIRST, Anchor.LAST][rng.integers(2)]
    reach = RowReach(anchor, labels, int(rng.integers(0, 3)), int(rng.integers(-1, 2)))
    if kind == 4:
        other = ["x", "y"][rng.integers(2)]
        return RowOperation(op, (current, RowValue(other, reach, KINDS[other])), Kind.BOOLEAN)
    if kind == 5:
        function = ["COUNT", "SUM", "MIN", "MAX", "AVG"][rng.integers(5)]
        name = None if function == "COUNT" and rng.integers(2) else column
        aggregate_kind = Kind.FLOAT if function == "AVG" or column == "y" else Kind.INTEGER
        aggregate = RowAggregate(function, labels, name, Kind.INTEGER if function == "COUNT" else aggregate_kind)
        return RowOperation(op, (aggregate, RowConstant(int(rng.integers(6)), Kind.INTEGER)), Kind.BOOLEAN)
    if kind == 6:
        two = RowConstant(2, Kind.INTEGER)
        if rng.integers(2):
            return RowOperation(op, (MatchNumber(), two), Kind.BOOLEAN)
        label = RowConstant("B", Kind.STRING)
        return RowOperation("!=", (Classifier(RowReach(anchor, labels, 0, -1)), label), Kind.BOOLEAN)
    both = tuple(random_condition(rng, matching) for _ in range(2))
    both = tuple(RowConstant(True, Kind.BOOLEAN) if c is None else c for c in both)
    return RowOperation(["and", "or"][rng.integers(2)], both, Kind.BOOLEAN)


def random_table(rng: np.random.Generator) -> pa.Table:
    size = int(rng.integers(0, 14))
    keys = np.sort(rng.integers(0, 3, size))
    return pa.table(
        {
            "k": pa.array(keys),
            "t": pa.array(np.arange(size) * 2),
            "x": pa.array(rng.integers(0, 4, size), mask=rng.random(size) < 0.1),
            "y": pa.array(rng.integers(0, 4, size).astype(float), mask=rng.random(size) < 0.1),
            "s": pa.array([str(v) for v in rng.integers(0, 4, size)], pa.string()),
        },
        schema=SCHEMA,
    )


def by_brute(bound: BoundRows, table: pa.Table) -> list:
    found = []
    rows = table.to_pylist()
    for key in sorted({row["k"] for row in rows}):
        places = [i for i, row in enumerate(rows) if row["k"] == key]
        for start, path, number in Brute(bound, [rows[i] for i in places]).run():
            found.append((places[start], [v for v, _ in path], [e for _, e in path], number))
    return found


def by_kernel(bound: BoundRows, table: pa.Table) -> list:
    plan = plan_rows(bound)
    found = []
    for chunk in start_run(plan, sort_rows(table, bound.partition_by, bound.order_by)).matches():
        for m in range(chunk.start.size):
            labels = chunk.labels[chunk.offsets[m] : chunk.offsets[m + 1]]
            variables = [plan.program.variables[label] for label in labels]
            excluded = [plan.program.excluded[label] for label in labels]
            found.append((int(chunk.start[m]), variables, excluded, int(chunk.number[m])))
    return found


@pytest.mark.parametrize("matching", [False, True], ids=["conditions of the row", "conditions of the match"])
@pytest.mark.parametrize("within", [None, 7], ids=["unlimited", "WITHIN"])
def test_random_patterns(matching: bool, within: int | None) -> None:
    rng = np.random.default_rng(7 + matching)
    for case in range(60):
        skip = list(SkipTo)[rng.integers(4)]
        conditions = [random_condition(rng, matching) for _ in LABELS]
        bound = bound_rows(random_pattern(rng, 3), conditions, skip, (int(rng.integers(3)),), within)
        for _ in range(3):
            table = random_table(rng)
            assert by_kernel(bound, table) == by_brute(bound, table), (case, bound.pattern, bound.conditions, table)
