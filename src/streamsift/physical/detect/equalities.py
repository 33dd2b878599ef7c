"""Compare equal columns with the one that is bound first, and drop redundant equalities.

Equality is exact and therefore transitive. However a query writes it (`a.id = b.id`, a chain, `[id]`), all columns of a
class equal the one that is bound first, and later steps, negated or not, are looked up by that column. A constant that
one of the columns equals becomes a filter on all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from streamsift.logical import bound as b
from streamsift.logical.bound import Side, column_sides


@dataclass(slots=True)
class Equalities:
    """Classes of equal columns, including those of enclosing patterns."""

    roots: dict[Side, Side] = field(default_factory=dict)  # a union-find forest
    columns: dict[Side, b.Column] = field(default_factory=dict)
    around: dict[Side, Side] = field(default_factory=dict)  # the forest of the enclosing patterns

    def inner(self) -> Equalities:
        """Return the equalities of a negated sub-pattern, which include the enclosing ones."""
        return Equalities(dict(self.roots), dict(self.columns), self.roots)

    def root(self, side: Side) -> Side:
        return _root(self.roots, side)

    def unite(self, predicates: Iterable[b.Predicate]) -> list[tuple[Side, b.Predicate]]:
        """Add the equalities between columns; return each with its left side."""
        equalities = [(sides, p) for p in predicates if (sides := column_sides(p)) is not None]
        for sides, predicate in equalities:
            columns = (part for part in predicate.expression.walk() if isinstance(part, b.Column))
            self.columns |= zip(sides, columns, strict=True)
            left, right = map(self.root, sides)
            if left != right:
                self.roots[right] = left
        return [(left, predicate) for (left, _), predicate in equalities]

    def needed(self, predicates: list[b.Predicate], place: dict[int, int], first: int) -> list[b.Predicate]:
        """Return the predicates to test; `place` has the step of each variable, the scope's steps begin at `first`."""
        equalities = self.unite(predicates)
        written = {self.root(left): predicate for left, predicate in reversed(equalities)}  # the first of each class
        constants = [constant for p in predicates for constant in self._constants(p, place, first)]
        fixed = {side for side, _ in constants}
        needed = [predicate for _, predicate in constants]
        others = [p for p in predicates if column_sides(p) is None and p not in needed]
        for root in dict.fromkeys(self.root(left) for left, _ in equalities):
            ties = (tie for tie in self._ties(root, place, first) if not {*tie} <= fixed)
            needed += [_over(written[root], self.columns[one], self.columns[other]) for one, other in ties]
        return [*others, *needed]

    def _ties(self, root: Side, place: dict[int, int], first: int) -> list[tuple[Side, Side]]:
        """Return each column of the scope, paired with the column of its class that is bound first."""
        sides = [side for side in self.columns if self.root(side) == root and side[0] in place]
        sides.sort(key=lambda side: (place[side[0]], side[1]))
        inner = [side for side in sides if place[side[0]] >= first]
        # Outer columns of different classes: the first inner column must equal one column of each class.
        outer = {_root(self.around, side): side for side in reversed(sides) if side not in inner}
        base, *others = sorted(outer.values(), key=sides.index) or inner[:1]
        return [(other, inner[0]) for other in others] + [(base, side) for side in inner if side != base]

    def _constants(
        self, predicate: b.Predicate, place: dict[int, int], first: int
    ) -> Iterator[tuple[Side, b.Predicate]]:
        """Yield `a.x = 1` for every `a.x` of the scope that equals the `b.x` of `b.x = 1` and has the same kind."""
        match predicate.expression:
            case b.Operation(op="=", operands=(b.Column(variable=variable, name=name), b.Constant() as constant)):
                kind = self.columns[variable, name].kind if (variable, name) in self.columns else None
                for side, column in self.columns.items():
                    is_equal = self.root(side) == self.root((variable, name)) and column.kind is kind
                    if is_equal and place.get(side[0], -1) >= first:
                        yield side, _over(predicate, column, constant)


def _root(roots: dict[Side, Side], side: Side) -> Side:
    while side in roots:
        side = roots[side]
    return side


def _over(predicate: b.Predicate, left: b.Column, right: b.Expr) -> b.Predicate:
    """Return the equality with these operands instead."""
    assert isinstance(predicate.expression, b.Operation)
    expression = replace(predicate.expression, operands=(left, right))
    variables = tuple(sorted(expression.variables))
    kind = b.PredicateClass.EQUALITY if len(variables) == 2 else b.PredicateClass.LOCAL
    return replace(predicate, expression=expression, variables=variables, predicate_class=kind)
