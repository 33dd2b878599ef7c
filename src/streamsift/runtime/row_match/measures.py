"""Evaluate measures: columns of rows that a match reaches, aggregates over its rows, labels and numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.bound import Column, Constant, Expr, Operation
from streamsift.logical.row_match.bound import (
    Anchor,
    BoundMeasure,
    Classifier,
    MatchNumber,
    RowAggregate,
    RowConstant,
    RowExpr,
    RowOperation,
    RowReach,
    RowValue,
)
from streamsift.physical.row_match import RowPlan
from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.row_match.aggregates import LabeledRows, aggregate
from streamsift.runtime.row_match.matching import RowMatches
from streamsift.runtime.row_match.null_on_error import as_type, evaluate_or_null
from streamsift.runtime.row_match.order import SortedRows


@dataclass(frozen=True, slots=True)
class OutputRows:
    """Rows of the result: the match, its current row, and where the labels up to the current row end."""

    match: Int64
    row: Int64
    end: Int64

    def part(self, first: int, end: int) -> OutputRows:
        return OutputRows(self.match[first:end], self.row[first:end], self.end[first:end])


class MatchValues:
    """The values of a chunk of matches; what several measures share is computed once."""

    def __init__(self, plan: RowPlan, rows: SortedRows, matches: RowMatches) -> None:
        self._plan, self._rows, self._matches = plan, rows, matches
        self._variables = np.array(plan.program.variables, np.int32)[matches.labels]
        self._labeled: dict[tuple[int, ...], LabeledRows] = {}

    def measure(self, measure: BoundMeasure, output: OutputRows, unmatched: Bool) -> pa.Array:
        """Return the values of a measure; null for unmatched rows."""
        leaves: list[pa.Array] = []
        expression = self._expression(measure.expression, output, leaves)
        if isinstance(expression, Column):
            array = leaves[expression.variable]
        else:
            text = self._plan.bound.text
            array = evaluate_or_null(
                expression, lambda variable, _: leaves[variable], output.row.size, text, measure.data_type
            )
        array = as_type(array, measure.data_type)
        if unmatched.any():
            array = pc.if_else(pa.array(unmatched), pa.scalar(None, array.type), array)
        return array

    def _expression(self, node: RowExpr, output: OutputRows, leaves: list[pa.Array]) -> Expr:
        """Return an expression over columns, the number of each being a leaf's."""
        if isinstance(node, RowConstant):
            return Constant(node.value, node.kind, span=node.span)
        if isinstance(node, RowOperation):
            operands = tuple(self._expression(operand, output, leaves) for operand in node.operands)
            return Operation(node.op, operands, node.kind, span=node.span)
        leaves.append(self._leaf(node, output))
        return Column(len(leaves) - 1, "", node.kind, span=node.span)

    def _leaf(self, node: RowExpr, output: OutputRows) -> pa.Array:
        match node:
            case RowValue(column=column, reach=reach):
                return _taken(self._rows.column(column), self._reached(reach, output))
            case Classifier(reach=reach):
                return self._classifier(self._reached(reach, output), output)
            case MatchNumber():
                return pa.array(self._matches.number[output.match])
            case RowAggregate():
                return self._aggregate(node, output)
        raise TypeError(node)

    def _ends(self, output: OutputRows, running: bool) -> Int64:
        return output.end if running else self._matches.offsets[output.match + 1]

    def labeled(self, labels: tuple[int, ...]) -> LabeledRows:
        """Return the rows of matches that have one of the labels; no labels mean all rows."""
        if labels not in self._labeled:
            starts, offsets = self._matches.start, self._matches.offsets
            mask = np.ones(self._variables.size, np.bool_)
            if labels:
                wanted = np.zeros(len(self._plan.bound.labels), np.bool_)
                wanted[list(labels)] = True
                mask = wanted[self._variables]
            flat = np.flatnonzero(mask)
            before = np.concatenate(([0], np.cumsum(mask)))
            match = np.repeat(np.arange(starts.size), np.diff(before[offsets]))
            self._labeled[labels] = LabeledRows(flat - offsets[match] + starts[match], before[offsets], before)
        return self._labeled[labels]

    def _reached(self, reach: RowReach, output: OutputRows) -> Int64:
        """Return the row that each output row reaches; -1 if there is none."""
        matches = self._matches
        if reach.anchor is Anchor.CURRENT:
            at = np.where(matches.length[output.match] > 0, output.row, -1)
        else:
            labeled = self.labeled(reach.labels)
            first, end = labeled.begin[output.match], labeled.before[self._ends(output, reach.running)]
            place = first + reach.offset if reach.anchor is Anchor.FIRST else end - 1 - reach.offset
            inside = (place >= first) & (place < end)
            at = np.full(place.size, -1, np.int64)
            at[inside] = labeled.rows[place[inside]]
        if reach.shift:
            bounds, partition = self._rows.bounds, matches.partition[output.match]
            moved = at + reach.shift
            at = np.where((at >= 0) & (moved >= bounds[partition]) & (moved < bounds[partition + 1]), moved, -1)
        return at

    def _classifier(self, rows: Int64, output: OutputRows) -> pa.Array:
        matches = self._matches
        place = rows - matches.start[output.match]
        inside = (rows >= 0) & (place >= 0) & (place < matches.length[output.match])
        flat = np.where(inside, matches.offsets[output.match] + place, 0)
        codes = self._variables[flat] if self._variables.size else np.zeros(rows.size, np.int32)
        return pa.array(self._plan.bound.labels, pa.string()).take(pa.array(codes, mask=~inside))

    def _aggregate(self, node: RowAggregate, output: OutputRows) -> pa.Array:
        labeled = self.labeled(node.labels)
        values = None
        if node.classifier:
            flat = np.flatnonzero(np.diff(labeled.before))
            values = pa.array(self._plan.bound.labels, pa.string()).take(pa.array(self._variables[flat]))
        elif node.column is not None:
            values = self._rows.column(node.column).take(pa.array(labeled.rows))
        ends = labeled.before[self._ends(output, node.running)]
        return aggregate(node, values, labeled.begin, labeled.begin[output.match], ends)


def _taken(column: pa.Array, rows: Int64) -> pa.Array:
    absent = rows < 0
    return column.take(pa.array(rows, mask=absent if absent.any() else None))
