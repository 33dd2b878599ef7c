"""Tie columns that are equal to the one bound first, and drop the other equalities.

Equality is exact and so transitive: whatever a pattern writes (`a.id = b.id`, a chain, `[id]`), all columns of a class
are equal to the one that is bound first, which is where a later step, negated or not, is looked up by key. A constant
that one of them equals is a filter on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from streamsift.logical import bound as b
from streamsift.logical.bound import Side, column_sides


@dataclass(slots=True)
class Equalities:
    """Which columns are equal, here and in the patterns around."""

    roots: dict[Side, Side] = field(default_factory=dict)  # a union-find forest
    columns: dict[Side, b.Column] = field(default_factory=dict)
    around: dict[Side, Side] = field(default_factory=dict)  # the forest of the patterns around

    def inner(self) -> Equalities:
        """For a negated sub-pattern: what is equal around it is equal there."""
        return Equalities(dict(self.roots), dict(self.columns), self.roots)

    def root(self, side: Side) -> Side:
        return _root(self.roots, side)

    def needed(self, own: list[b.Predicate], place: dict[int, int], first: int) -> list[b.Predicate]:
        """The predicates to test; `place` has the step of each variable, those from `first` on are the scope's own."""
        equalities = [p for p in own if column_sides(p) is not None]
        for predicate in equalities:
            self._unite(predicate)
        constants = self._constants(own, place, first)
        fixed = {(p.variables[0], _fixed_column(p)) for p in constants}
        found = [p for p in own if column_sides(p) is None and p not in constants]
        return [*found, *constants, *self._ties(equalities, place, first, fixed)]

    def _unite(self, predicate: b.Predicate) -> None:
        assert isinstance(predicate.expression, b.Operation)
        for column in predicate.expression.operands:
            assert isinstance(column, b.Column)
            self.columns[column.variable, column.name] = column
        left, right = predicate.expression.operands
        sides = [self.root((column.variable, column.name)) for column in (left, right) if isinstance(column, b.Column)]
        if sides[0] != sides[1]:
            self.roots[sides[1]] = sides[0]

    def _ties(
        self, equalities: list[b.Predicate], place: dict[int, int], first: int, fixed: set[tuple[int, str | None]]
    ) -> list[b.Predicate]:
        """Each own column tied to the one of its class that is bound first, with the words of a predicate behind."""
        behind = {self.root(_left(predicate)): predicate for predicate in reversed(equalities)}
        found: list[b.Predicate] = []
        for root in dict.fromkeys(self.root(_left(predicate)) for predicate in equalities):
            sides = [side for side in self.columns if self.root(side) == root and side[0] in place]
            sides.sort(key=lambda side: (place[side[0]], side[1]))
            own = [side for side in sides if place[side[0]] >= first]
            # Columns of the patterns around that are not equal there: the first own column must equal one of each.
            outer = {_root(self.around, side): side for side in reversed(sides) if side not in own}
            base, *others = sorted(outer.values(), key=sides.index) or own[:1]
            pairs = [(other, own[0]) for other in others] + [(base, side) for side in own if side != base]
            found += (
                _tied(behind[root], self.columns[left], self.columns[right])
                for left, right in pairs
                if not {left, right} <= fixed
            )
        return found

    def _constants(self, own: list[b.Predicate], place: dict[int, int], first: int) -> list[b.Predicate]:
        """`a.x = 1` for every own `a.x` that equals a `b.x` of which that is asked, if both are of one kind."""
        found: list[b.Predicate] = []
        for predicate in own:
            name = _fixed_column(predicate)
            if name is None or (side := (predicate.variables[0], name)) not in self.columns:
                continue
            kind = self.columns[side].kind
            for other, column in self.columns.items():
                is_own = other[0] in place and place[other[0]] >= first
                if is_own and self.root(other) == self.root(side) and column.kind is kind:
                    found.append(_about(predicate, column))
        return found


def _root(roots: dict[Side, Side], side: Side) -> Side:
    while side in roots:
        side = roots[side]
    return side


def _left(predicate: b.Predicate) -> Side:
    sides = column_sides(predicate)
    assert sides is not None
    return sides[0]


def _fixed_column(predicate: b.Predicate) -> str | None:
    """The column of a predicate `column = constant`."""
    match predicate.expression:
        case b.Operation(op="=", operands=(b.Column(name=name), b.Constant())):
            return name
    return None


def _about(predicate: b.Predicate, column: b.Column) -> b.Predicate:
    """A predicate `column = constant`, made one on another column."""
    assert isinstance(predicate.expression, b.Operation)
    expression = replace(predicate.expression, operands=(column, predicate.expression.operands[1]))
    return replace(predicate, expression=expression, variables=(column.variable,))


def _tied(predicate: b.Predicate, base: b.Column, column: b.Column) -> b.Predicate:
    """An equality between two columns, made one between two others of the class."""
    assert isinstance(predicate.expression, b.Operation)
    variables = tuple(sorted({base.variable, column.variable}))
    kind = b.PredicateClass.EQUALITY if len(variables) == 2 else b.PredicateClass.LOCAL
    expression = replace(predicate.expression, operands=(base, column))
    return replace(predicate, expression=expression, variables=variables, predicate_class=kind)
