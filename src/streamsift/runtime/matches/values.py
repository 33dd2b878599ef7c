"""Read the columns of matches for predicates and the result, gathering each column once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, ClassRule, Column, Expr, GroupAggregate, Kind, Operation
from streamsift.physical.plan import Alternative, KleeneGroups
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import take
from streamsift.runtime.expressions.evaluate import Rows, mask
from streamsift.runtime.expressions.group_functions import aggregate, empty_aggregate
from streamsift.runtime.matches.group_matches import GroupMatches

Attribute = tuple[int, str]  # a variable and a column of its event


@dataclass(frozen=True, slots=True)
class DeterminedColumns:
    """The columns of matches that follow from the plan, so that fewer have to be gathered."""

    texts: dict[Attribute, str] = field(default_factory=dict)  # attributes with one string for all matches
    equals: dict[Attribute, Attribute] = field(default_factory=dict)  # attributes that equal an earlier one
    _repeated: dict[str, pa.Array] = field(default_factory=dict)  # the longest array built for each string

    def constant(self, attribute: Attribute, length: int) -> pa.Array | None:
        """Return the constant value of the attribute, repeated `length` times; None if it is not constant."""
        text = self.texts.get(attribute)
        if text is None:
            return None
        if text not in self._repeated or len(self._repeated[text]) < length:
            self._repeated[text] = pa.repeat(text, length)
        return self._repeated[text].slice(0, length)


NOTHING_DETERMINED = DeterminedColumns()


def determined_columns(plan: Alternative) -> DeterminedColumns:
    """Return the columns that follow from a plan: a class by type has one type name, `[id]` makes columns equal."""
    columns, name = DeterminedColumns(), plan.query.binding.type
    typed = name is not None and pa.types.is_string(plan.query.schema.field(name).type)
    for step in plan.steps if plan.groups is None else ():
        event_class = plan.query.variables[step.variable].event_class
        if name is not None and typed and event_class.rule is ClassRule.TYPE:
            columns.texts[step.variable, name] = event_class.name
        for pair in step.compared:
            # Floats that compare equal can differ: 0.0 and -0.0.
            if pair.same_column is not None and pair.this_side.kind is not Kind.FLOAT:
                first = (plan.steps[pair.earlier].variable, pair.same_column)
                columns.equals[step.variable, pair.same_column] = columns.equals.get(first, first)
    return columns


def match_columns(plan: Alternative, events: Events, places: Int32) -> Rows:
    """Return matches without groups, at places [steps, matches], as rows for evaluating expressions."""
    return GroupValues(plan.query, plan, events, GroupMatches.of_places(places)).rows()


class GroupValues:
    """The values of a chunk of matches, with or without groups. Every attribute is gathered once."""

    def __init__(
        self,
        query: BoundQuery,
        plan: Alternative | KleeneGroups,
        events: Events,
        matches: GroupMatches,
        columns: DeterminedColumns = NOTHING_DETERMINED,
    ) -> None:
        self.events, self.matches, self.text, self._plan_columns = events, matches, query.text, columns
        groups = plan.groups if isinstance(plan, Alternative) else plan
        steps = plan.steps if groups is None else groups.steps[: groups.count_singles]
        chosen, growing = ((), ()) if groups is None else (groups.chosen, groups.growing)
        self.singles = {step.variable: number for number, step in enumerate(steps)}
        self.chosen = {c.variable: c for c in chosen if query.variables[c.variable].quantifier is not None}
        self.growing = {group.variable: number for number, group in enumerate(growing)}
        self._rows: dict[int, pa.Array] = {}
        self._gathered: dict[Attribute, pa.Array] = {}
        self._elements: dict[int, tuple[Int32, Int64]] = {}

    def is_bound(self, variable: int) -> bool:
        return variable in self.singles or self.is_group(variable)

    def is_group(self, variable: int) -> bool:
        return variable in self.chosen or variable in self.growing

    def elements(self, variable: int) -> tuple[Int32, Int64]:
        """Return the places of a group's elements, match by match, and the offsets of each match."""
        if variable not in self._elements:
            matches = self.matches
            if variable in self.chosen:
                group = self.chosen[variable]
                places = matches.singles[group.first : group.first + group.size].T.reshape(-1)
                offsets = np.arange(len(matches) + 1, dtype=np.int64) * group.size
            else:
                first, sizes = (table[self.growing[variable]] for table in (matches.first, matches.sizes))
                offsets = np.concatenate([[0], np.cumsum(sizes)])
                places = matches.places[np.repeat(first - offsets[:-1], sizes) + np.arange(offsets[-1])]
            self._elements[variable] = places, offsets
        return self._elements[variable]

    def column(self, variable: int, name: str) -> pa.Array:
        """Return an attribute for each match; for a group, for each element."""
        attribute = self._plan_columns.equals.get((variable, name), (variable, name))
        if attribute not in self._gathered:
            constant = self._plan_columns.constant(attribute, len(self.matches))
            self._gathered[attribute] = self._column(*attribute) if constant is None else constant
        return self._gathered[attribute]

    def _column(self, variable: int, name: str) -> pa.Array:
        whole = self.events.columns.whole(name)
        if not self.is_bound(variable):  # a variable of another branch of OR
            return pa.nulls(len(self.matches), whole.type)
        return take(whole, self.table_rows(variable))

    def table_rows(self, variable: int) -> pa.Array:
        """Return the table row of a bound variable in each match; for a group, of each element."""
        if variable not in self._rows:
            is_group = self.is_group(variable)
            places = self.elements(variable)[0] if is_group else self.matches.singles[self.singles[variable]]
            self._rows[variable] = pa.array(self.events.rows_at(places))
        return self._rows[variable]

    def aggregate(self, expression: GroupAggregate) -> pa.Array:
        if not self.is_bound(expression.variable):
            return empty_aggregate(expression, self.events.columns).take(pa.nulls(len(self.matches), pa.int64()))
        offsets = self.elements(expression.variable)[1]
        if expression.column is None:
            return pa.array(np.diff(offsets))
        return aggregate(expression.function, self.column(expression.variable, expression.column), offsets)

    def rows(self) -> Rows:
        return Rows(self.column, len(self.matches), self.text, self.aggregate)

    def passing(self, filters: Sequence[Expr]) -> Bool:
        """Return a mask of the matches that pass all predicates; a group passes if each of its elements does."""
        keep = np.ones(len(self.matches), np.bool_)
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
        """Return one row per element of a group, with the other events of its match."""
        matches = pa.array(np.repeat(np.arange(sizes.size), sizes))

        def column(other: int, name: str) -> pa.Array:
            values = self.column(other, name)
            return values if other == variable else values.take(matches)

        return Rows(column, len(matches), self.text, lambda expression: self.aggregate(expression).take(matches))


def read_variables(expression: Expr) -> Iterator[int]:
    """Yield the variables whose attributes an expression reads outside of aggregates."""
    match expression:
        case Column():
            yield expression.variable
        case Operation():
            for operand in expression.operands:
                yield from read_variables(operand)


# --- predicates between the stages of a search ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps or levels [first, last] that one kernel call binds, and the predicates to apply afterwards."""

    first: int
    last: int
    filters: tuple[Expr, ...]


def stages_of(filters: Sequence[tuple[Expr, ...]], first: int = 0) -> list[Stage]:
    """Split the steps or levels from `first` on into stages that end after each step with filters."""
    last = first + len(filters) - 1
    ends = [number for number, ready in enumerate(filters, start=first) if ready or number == last]
    begins = [first, *(end + 1 for end in ends)]
    return [Stage(begin, end, filters[end - first]) for begin, end in zip(begins, ends, strict=False)]


def passing(alternative: Alternative, events: Events, filters: Sequence[Expr], places: Int32) -> Bool:
    """Return a mask of the matches [steps, m] that pass every filter; steps that no filter reads may hold any place."""
    return GroupValues(alternative.query, alternative, events, GroupMatches.of_places(places)).passing(filters)
