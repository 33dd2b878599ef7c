"""Matches with groups in, the values that predicates, RETURN and the result's columns see out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, Column, Expr, GroupAggregate, Operation
from streamsift.physical.plan import KleeneGroups
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import take
from streamsift.runtime.expressions.evaluate import Rows, mask
from streamsift.runtime.expressions.group_functions import aggregate, empty_aggregate
from streamsift.runtime.matches.group_matches import GroupMatches


class GroupValues:
    """What a chunk of matches binds. Every attribute is gathered once."""

    def __init__(self, query: BoundQuery, groups: KleeneGroups, events: Events, found: GroupMatches) -> None:
        self.events, self.found, self.text = events, found, query.text
        self.singles = {step.variable: number for number, step in enumerate(groups.steps[: groups.count_singles])}
        self.chosen = {c.variable: c for c in groups.chosen if query.variables[c.variable].quantifier is not None}
        self.growing = {group.variable: number for number, group in enumerate(groups.growing)}
        self._gathered: dict[tuple[int, str], pa.Array] = {}
        self._elements: dict[int, tuple[Int32, Int64]] = {}

    def is_bound(self, variable: int) -> bool:
        return variable in self.singles or self.is_group(variable)

    def is_group(self, variable: int) -> bool:
        return variable in self.chosen or variable in self.growing

    def elements(self, variable: int) -> tuple[Int32, Int64]:
        """The table rows of a group's elements, match after match, and where those of each match start."""
        if variable not in self._elements:
            if variable in self.chosen:
                group = self.chosen[variable]
                places = self.found.singles[group.first : group.first + group.size].T.reshape(-1)
                offsets = np.arange(len(self.found) + 1, dtype=np.int64) * group.size
            else:
                first = self.found.first[self.growing[variable]]
                sizes = self.found.sizes[self.growing[variable]]
                offsets = np.concatenate([[0], np.cumsum(sizes)])
                places = self.found.places[np.repeat(first - offsets[:-1], sizes) + np.arange(offsets[-1])]
            self._elements[variable] = self.events.rows_at(places), offsets
        return self._elements[variable]

    def column(self, variable: int, name: str) -> pa.Array:
        """An attribute of each match's event; for a group, of each element."""
        if (variable, name) not in self._gathered:
            whole = self.events.columns.whole(name)
            if variable in self.singles:
                rows = self.events.rows_at(self.found.singles[self.singles[variable]])
                self._gathered[variable, name] = take(whole, pa.array(rows))
            elif self.is_group(variable):
                self._gathered[variable, name] = take(whole, pa.array(self.elements(variable)[0]))
            else:  # of a branch not taken
                self._gathered[variable, name] = pa.nulls(len(self.found), whole.type)
        return self._gathered[variable, name]

    def aggregate(self, expression: GroupAggregate) -> pa.Array:
        if not self.is_bound(expression.variable):
            return empty_aggregate(expression, self.events.columns).take(pa.nulls(len(self.found), pa.int64()))
        offsets = self.elements(expression.variable)[1]
        if expression.column is None:
            return pa.array(np.diff(offsets))
        return aggregate(expression.function, self.column(expression.variable, expression.column), offsets)

    def rows(self) -> Rows:
        return Rows(self.column, len(self.found), self.text, self.aggregate)

    def passing(self, filters: Sequence[Expr]) -> Bool:
        """Which matches pass predicates with aggregates: each element of a group that is named beside them as well."""
        keep = np.ones(len(self.found), np.bool_)
        for predicate in filters:
            elementwise = [v for v in read_variables(predicate) if self.is_group(v)]
            if not elementwise:
                keep &= mask(predicate, self.rows())
                continue
            sizes = np.diff(self.elements(elementwise[0])[1])
            fails = ~mask(predicate, self._element_rows(elementwise[0], sizes))
            keep &= np.bincount(np.repeat(np.arange(sizes.size), sizes)[fails], minlength=sizes.size) == 0
        return keep

    def _element_rows(self, variable: int, sizes: Int64) -> Rows:
        """One row for each element of one group, with the other events of its match."""
        matches = pa.array(np.repeat(np.arange(sizes.size), sizes))

        def column(other: int, name: str) -> pa.Array:
            values = self.column(other, name)
            return values if other == variable else values.take(matches)

        return Rows(column, len(matches), self.text, lambda expression: self.aggregate(expression).take(matches))


def read_variables(expression: Expr) -> Iterator[int]:
    """The variables whose attributes an expression reads, aggregates aside."""
    match expression:
        case Column():
            yield expression.variable
        case Operation():
            for operand in expression.operands:
                yield from read_variables(operand)
