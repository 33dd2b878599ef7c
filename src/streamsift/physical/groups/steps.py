"""Plan the steps that bind the elements of Kleene variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamsift.logical import bound as b
from streamsift.logical.bound import Side, column_sides
from streamsift.physical.detect import step_of
from streamsift.physical.groups.elements import KleeneQuery
from streamsift.physical.groups.forms import order_pairs
from streamsift.physical.plan import FixedGroup, Key, MaximalGroup, Step

Numbers = dict[int, int]  # the number of each variable's step


@dataclass(frozen=True, slots=True)
class ElementSteps:
    """Plans the elements of one OR-free pattern: the statement's (ROOT_SCOPE) or a negated one."""

    known: KleeneQuery
    form: b.Node
    scope: int

    def chosen(self, variable: int, numbers: Numbers) -> FixedGroup:
        """A group of n; its elements are added to the numbers."""
        pairs = [p for p in order_pairs(self.form) if variable in p]
        after, before = (self.steps_of([p[side] for p in pairs if p[1 - side] == variable], numbers) for side in (0, 1))
        step, first = self._element(variable, numbers), len(numbers)
        elements = self.known.elements.get(variable, (variable,))
        agree = tuple(
            predicate.expression
            for predicate, members in self._uniforms()
            if isinstance(predicate.expression, b.Column) and members[0] == variable and len(elements) > 1
        )
        numbers.update({element: first + number for number, element in enumerate(elements)})
        return FixedGroup(variable, len(elements), step, first, after, before, agree)

    def growing(self, variable: int, singles: Numbers, numbers: Numbers) -> MaximalGroup:
        """A group of any size; its first and last element are added to the numbers."""
        first, last = self.known.elements[variable]
        numbers[first], numbers[last] = len(numbers), len(numbers) + 1
        return MaximalGroup(
            variable, self.known.may_be_empty(variable), self._element(variable, singles), numbers[first]
        )

    def elements_of(self, group: FixedGroup | MaximalGroup) -> Iterator[Step]:
        """The elements as steps that are bound already."""
        for element in self.known.elements.get(group.variable, (group.variable,)):
            yield Step(element, (), group.step.local, (), (), ())

    def steps_of(self, variables: list[int], numbers: Numbers) -> tuple[int, ...]:
        """The steps of single events, and of the elements of `[n]` variables, as far as they are bound."""
        fixed = [v for v in variables if not self.known.is_growing(v)]
        events = [event for v in fixed for event in self.known.elements.get(v, (v,))]
        return tuple(sorted({numbers[event] for event in events if event in numbers}))

    def _element(self, variable: int, bound: Numbers) -> Step:
        """One element of a group. Equalities that say the same of it are tested once."""
        predicates = [*self._constants(), *self._uniform(variable, bound)]
        equal = self._equalities(bound)
        tied: set[tuple[str, int, str]] = set()
        for predicate in self.known.element_predicates(variable, set(bound)):
            sides = column_sides(predicate)
            if sides is not None:
                own, other = sides if sides[0][0] == variable else (sides[1], sides[0])
                tie = (own[1], *equal.get(other, other))
                if tie in tied:
                    continue
                tied.add(tie)
            predicates.append(predicate)
        return step_of(predicates, variable, {**bound, variable: len(bound)}, ())

    def _equalities(self, bound: Numbers) -> dict[Side, Side]:
        """For each column of a single event one that equals it, the same for all that are equal."""
        found: dict[Side, Side] = {}
        for predicate in self.known.query.predicates:
            sides = column_sides(predicate) if predicate.scope == b.ROOT_SCOPE else None
            if sides is not None and all(v in bound for v, _ in sides):
                left, right = (found.get(side, side) for side in sides)
                found = {side: left if root == right else root for side, root in found.items()}
                found[right] = left
        return found

    def _constants(self) -> list[b.Predicate]:
        """Predicates of no variable are the first step's; without anchors every group's."""
        if self.scope != b.ROOT_SCOPE or any(self.known.quantifier(v) is None for v in self.form.leaves()):
            return []
        return [p for p in self.known.query.predicates if p.predicate_class is b.PredicateClass.CONSTANT]

    # --- `[attr]` without a single event ---
    def _uniforms(self) -> Iterator[tuple[b.Predicate, list[int]]]:
        """Predicates of `[attr]` among groups alone, with those of them that are in this pattern, `[n]` first."""
        present = set(self.form.leaves())
        for predicate in self.known.query.predicates:
            if predicate.predicate_class is b.PredicateClass.UNIFORM and predicate.scope == self.scope:
                members = sorted((v for v in predicate.variables if v in present), key=self.known.is_growing)
                if members and not self._is_tied(predicate, members[0]):
                    yield predicate, members

    def _is_tied(self, predicate: b.Predicate, member: int) -> bool:
        """Whether a single event of this pattern tells the value: one that other alternatives lack."""
        single = {v for v in self.form.leaves() if self.known.quantifier(v) is None}
        assert isinstance(predicate.expression, b.Column)
        pieces = (column_sides(p) for p in self.known.query.predicates if p.span == predicate.span)
        sides = [each for each in pieces if each is not None and (member, predicate.expression.name) in each]
        return any(single & {left[0], right[0]} for left, right in sides)

    def _uniform(self, variable: int, bound: Numbers) -> Iterator[b.Predicate]:
        """Where a `[n]` variable is bound already, its first element tells the value for the other groups."""
        for predicate, members in self._uniforms():
            told = self.known.elements[members[0]][0]
            if variable in members and told in bound:
                assert isinstance(predicate.expression, b.Column)
                sides = tuple(replace(predicate.expression, variable=v) for v in (told, variable))
                yield replace(
                    predicate,
                    expression=b.truth("=", sides, predicate.span),
                    variables=tuple(sorted((told, variable))),
                    predicate_class=b.PredicateClass.EQUALITY,
                )

    def keys(self, growing: list[int], singles: Numbers) -> Iterator[Key]:
        for predicate, members in self._uniforms():
            if self.known.elements[members[0]][0] not in singles:
                assert isinstance(predicate.expression, b.Column)
                yield Key(tuple((growing.index(v), replace(predicate.expression, variable=v)) for v in members))
