"""Plan the steps that bind the elements of Kleene variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamsift.logical import bound as b
from streamsift.logical.bound import column_sides
from streamsift.physical.detect import Equalities, step_of
from streamsift.physical.groups.elements import KleeneQuery, equality, shared_column
from streamsift.physical.groups.forms import order_pairs
from streamsift.physical.plan import FixedGroup, Key, MaximalGroup, Step

Numbers = dict[int, int]  # the number of each variable's step


@dataclass(frozen=True, slots=True)
class ElementSteps:
    """Plan the elements of one OR-free pattern: the statement's (ROOT_SCOPE) or a negated one."""

    kleene: KleeneQuery
    form: b.Node
    scope: int

    def chosen(self, variable: int, numbers: Numbers) -> FixedGroup:
        """Return a `[n]` group; add its elements to `numbers`."""
        pairs = [p for p in order_pairs(self.form) if variable in p]
        after, before = (self.steps_of([p[side] for p in pairs if p[1 - side] == variable], numbers) for side in (0, 1))
        step, first = self._element(variable, numbers), len(numbers)
        elements = self.kleene.elements.get(variable, (variable,))
        uniforms = self._uniforms() if len(elements) > 1 else ()
        agree = tuple(shared_column(predicate) for predicate, members in uniforms if members[0] == variable)
        numbers.update({element: first + number for number, element in enumerate(elements)})
        return FixedGroup(variable, len(elements), step, first, after, before, agree)

    def growing(self, variable: int, singles: Numbers, numbers: Numbers) -> MaximalGroup:
        """Return a `+` or `*` group; add its first and last element to `numbers`."""
        first, last = self.kleene.elements[variable]
        numbers[first], numbers[last] = len(numbers), len(numbers) + 1
        step = self._element(variable, singles)
        return MaximalGroup(variable, self.kleene.may_be_empty(variable), step, numbers[first])

    def elements_of(self, group: FixedGroup | MaximalGroup) -> Iterator[Step]:
        """Yield the elements as steps that are already bound."""
        for element in self.kleene.elements.get(group.variable, (group.variable,)):
            yield Step(element, (), group.step.local)

    def steps_of(self, variables: list[int], numbers: Numbers) -> tuple[int, ...]:
        """Return the bound steps of single variables and of the elements of `[n]` variables."""
        fixed = [v for v in variables if not self.kleene.is_growing(v)]
        events = [event for v in fixed for event in self.kleene.elements.get(v, (v,))]
        return tuple(sorted({numbers[event] for event in events if event in numbers}))

    def _element(self, variable: int, bound: Numbers) -> Step:
        """Return the step of one element of a group, without redundant equalities."""
        predicates = [*self._constants(), *self._uniform(variable, bound)]
        equal = Equalities()  # of single events
        equal.unite(
            p for p in self.kleene.query.predicates if p.scope == b.ROOT_SCOPE and bound.keys() >= {*p.variables}
        )
        tied: set[tuple[str, int, str]] = set()
        for predicate in self.kleene.element_predicates(variable, set(bound)):
            sides = column_sides(predicate)
            if sides is not None:
                (_, column), other = sides if sides[0][0] == variable else sides[::-1]
                tie = (column, *equal.root(other))
                if tie in tied:
                    continue
                tied.add(tie)
            predicates.append(predicate)
        return step_of(predicates, variable, {**bound, variable: len(bound)}, ())

    def _constants(self) -> list[b.Predicate]:
        """Return the predicates without variables. They belong to the first step; without anchors, to every group."""
        if self.scope != b.ROOT_SCOPE or self._singles():
            return []
        return [p for p in self.kleene.query.predicates if p.predicate_class is b.PredicateClass.CONSTANT]

    def _singles(self) -> set[int]:
        return {v for v in self.form.leaves() if self.kleene.quantifier(v) is None}

    # --- `[attr]` without a single event ---
    def _uniforms(self) -> Iterator[tuple[b.Predicate, list[int]]]:
        """Yield the `[attr]` predicates between groups only, with their members in this pattern, `[n]` groups first.

        Skip a predicate if a single event of this pattern has its value.
        """
        present, singles = set(self.form.leaves()), self._singles()
        for predicate in self.kleene.query.predicates:
            if predicate.predicate_class is b.PredicateClass.UNIFORM and predicate.scope == self.scope:
                members = sorted((v for v in predicate.variables if v in present), key=self.kleene.is_growing)
                pieces = [column_sides(p) for p in self.kleene.query.predicates if p.span == predicate.span]
                column = shared_column(predicate).name
                tied = {v for sides in pieces if sides and members and (members[0], column) in sides for v, _ in sides}
                if members and not singles & tied:
                    yield predicate, members

    def _uniform(self, variable: int, bound: Numbers) -> Iterator[b.Predicate]:
        """Yield the equality of an element with the first element of a `[n]` variable, if that is already bound."""
        for predicate, members in self._uniforms():
            first = self.kleene.elements[members[0]][0]
            if variable in members and first in bound:
                yield equality(predicate, first, variable)

    def keys(self, growing: list[int], singles: Numbers) -> Iterator[Key]:
        for predicate, members in self._uniforms():
            if self.kleene.elements[members[0]][0] not in singles:
                column = shared_column(predicate)
                yield Key(tuple((growing.index(v), replace(column, variable=v)) for v in members))
