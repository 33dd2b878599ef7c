"""Plan an OR-free pattern with Kleene variables: anchors (its single events), groups, predicates and negations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations

from streamsift.errors import UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.physical.detect import Bounded, Equalities, Scope, bounded_negations, with_caching
from streamsift.physical.groups.elements import KleeneQuery
from streamsift.physical.groups.forms import (
    has_conjunction,
    negated_forms,
    order_pairs,
    ordered_forms,
    positive_part,
    with_events,
)
from streamsift.physical.groups.search import order_of, search_of
from streamsift.physical.groups.steps import ElementSteps, Numbers
from streamsift.physical.plan import Alternative, Decided, Edge, GroupNegation, KleeneGroups, Limit, Negation, Step

MAX_NEGATED_EVENTS = 62  # the search has one bit per event in one integer
MAX_STARS = 8  # negations are planned for each choice of empty groups
OPEN = Limit(Edge.WINDOW_START), Limit(Edge.WINDOW_END)


def group_alternatives(kleene: KleeneQuery, node: b.Node) -> Iterator[Alternative]:
    """Yield one alternative for each order of the single events and `[n]` groups that AND allows."""
    upper = Limit(Edge.MATCH_END if isinstance(node, b.Conjunction) else Edge.WINDOW_END)
    for forms in _by_order(kleene, node):
        yield _Planner(kleene, node, forms, b.ROOT_SCOPE, Limit(Edge.WINDOW_START), upper).alternative()


def _by_order(kleene: KleeneQuery, node: b.Node) -> Iterator[tuple[b.Node, ...]]:
    """Yield the forms of a pattern, grouping those that differ only in the positions of growing variables."""
    alike: dict[frozenset[tuple[int, int]], list[b.Node]] = {}
    for form in ordered_forms(node, kleene):
        fixed = frozenset(p for p in order_pairs(form) if not any(map(kleene.is_growing, p)))
        alike.setdefault(fixed, []).append(form)
    yield from map(tuple, alike.values())


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plan one pattern: the statement's, or a negated one that needs whole groups."""

    kleene: KleeneQuery
    node: b.Node
    forms: tuple[b.Node, ...]
    scope: int
    lower: Limit
    upper: Limit

    def alternative(self) -> Alternative:
        single = [v for v in self.node.leaves() if self.kleene.quantifier(v) is None]
        alone = positive_part(with_events(self.forms[0], dict.fromkeys(self.kleene.elements, ())))
        scope = self._scope()
        anchors = scope.plan(alone, *OPEN)[0] if single else ()
        numbers = {step.variable: number for number, step in enumerate(anchors)}
        early = self._early(single)
        planned = self._planned(early, dict(numbers))
        negations = tuple(replace(n, ready=scope.ready(n, anchors, 0)) for n in planned)
        groups = self.groups(anchors, numbers, early)
        return with_caching(Alternative(self.kleene.extended, anchors, negations, groups))

    def _scope(self) -> Scope:
        return Scope(self.kleene.extended, self.scope, {}, Equalities())

    def groups(self, around: tuple[Step, ...], numbers: Numbers, early: list[Bounded]) -> KleeneGroups:
        """Plan the groups, given the steps around them and their numbers by variable; add the numbers of elements."""
        kleene, steps = self.kleene, ElementSteps(self.kleene, self.forms[0], self.scope)
        visible = {*numbers, *self.node.leaves()}
        rest = [v for v in self.node.leaves() if v not in numbers]
        chosen = tuple(steps.chosen(v, numbers) for v in rest if not kleene.is_growing(v))
        singles, growing = dict(numbers), [v for v in rest if kleene.is_growing(v)]
        grown = tuple(steps.growing(v, singles, numbers) for v in growing)
        elements = chain(map(steps.elements_of, chosen), map(steps.elements_of, grown))
        bound = (*around, *chain.from_iterable(elements))
        orders = tuple(order_of(steps, form, singles, growing) for form in self.forms)
        decided = tuple(self._decided(growing, numbers, bound, early))
        return KleeneGroups(
            variables=self.node.variables,
            steps=bound,
            chosen=chosen,
            growing=grown,
            orders=orders,
            keys=tuple(steps.keys(growing, singles)),
            decided=decided if any(d.negations or d.group_negations for d in decided) else (),
            any_event=len(kleene.extended.variables) - 1,
            filters=tuple(
                p.expression
                for p in kleene.query.predicates
                if p.predicate_class is b.PredicateClass.GROUP and p.scope == self.scope and visible >= {*p.variables}
            ),
            search=search_of(kleene.extended, self.node, orders, growing, decided, is_root=self.scope == b.ROOT_SCOPE),
        )

    # --- negations ---
    def _bounds(self, empty: set[int], numbers: Numbers) -> list[Bounded]:
        """Return the negations with their bounds if these variables are empty."""
        events = self.kleene.elements | dict.fromkeys(empty, ())
        return bounded_negations(with_events(self.forms[0], events), self.lower, self.upper, numbers)

    def _early(self, single: list[int]) -> list[Bounded]:
        """Return the negations that depend only on anchors: they lie between two anchors, whatever the groups are."""
        if has_conjunction(self.node):
            return []
        elements = [element for v in self.node.leaves() for element in self.kleene.elements.get(v, ())]
        numbers = {event: number for number, event in enumerate((*single, *elements))}
        stars = {v for v in self.node.leaves() if self.kleene.may_be_empty(v)}
        without = self._bounds(stars, numbers)
        return [each for each in self._bounds(set(), numbers) if each in without and self._is_early(each, len(single))]

    def _is_early(self, bounded: Bounded, anchors: int) -> bool:
        negated, lower, upper = bounded
        inside = negated.child.variables
        read = {v for p in self.kleene.query.predicates if inside & {*p.variables} for v in p.variables} - inside
        is_between = bool(lower.steps and upper.steps) and max(*lower.steps, *upper.steps) < anchors
        return is_between and all(self.kleene.quantifier(v) is None for v in read) and not self._is_grouped(negated)

    def _decided(
        self, growing: list[int], numbers: Numbers, bound: tuple[Step, ...], early: list[Bounded]
    ) -> Iterator[Decided]:
        stars = [number for number, v in enumerate(growing) if self.kleene.may_be_empty(v)]
        if len(stars) > MAX_STARS and self.node.negations():
            message = f"a pattern with negations can have at most {MAX_STARS} `*` variables"
            hint = "replace some `*` with `+`, or move the negations to a separate query."
            raise UnsupportedQuery(message, self.kleene.query.text, self.node.span, hint)
        for empty in (some for size in range(len(stars) + 1) for some in combinations(stars, size)):
            variables = {growing[number] for number in empty}
            late = [each for each in self._bounds(variables, numbers) if each not in early]
            # Predicates on an empty group are skipped; its steps keep their numbers.
            absent = {element for v in variables for element in self.kleene.elements[v]}
            present = {-v - 2 if v in absent else v: number for v, number in numbers.items()}
            negations = tuple(self._planned([each for each in late if not self._is_grouped(each[0])], present))
            yield Decided(
                sum(1 << number for number in empty),
                with_caching(Alternative(self.kleene.extended, bound, negations)).negations,
                tuple(self._grouped([each for each in late if self._is_grouped(each[0])], present, bound)),
            )

    def _planned(self, bounded: list[Bounded], numbers: Numbers) -> Iterator[Negation]:
        scope = self._scope()
        for negated, lower, upper in bounded:
            for form in negated_forms(negated, self.kleene):
                if len(form.child.leaves()) > MAX_NEGATED_EVENTS:
                    message = f"a negated sub-pattern can have at most {MAX_NEGATED_EVENTS} events"
                    hint = "use a smaller n in `[n]`."
                    raise UnsupportedQuery(message, self.kleene.query.text, form.span, hint)
                yield scope.negation(form, lower, upper, numbers)

    def _grouped(self, bounded: list[Bounded], numbers: Numbers, around: tuple[Step, ...]) -> Iterator[GroupNegation]:
        for negated, lower, upper in bounded:
            self.kleene.check_whole_groups(negated)
            for forms in _by_order(self.kleene, negated.child):
                inner = _Planner(self.kleene, negated.child, forms, negated.scope, lower, upper)
                yield GroupNegation(lower, upper, inner.groups(around, dict(numbers), []))

    def _is_grouped(self, negated: b.Negated) -> bool:
        """Return True if a negated pattern needs whole groups.

        It does if an aggregate reads them, or if AND lets a group overlap an inner negation, which ignores elements.
        """
        parts = [part for part in negated.walk() if isinstance(part, b.Negated)]
        scopes = {part.scope for part in parts}
        is_aggregated = any(
            p.predicate_class is b.PredicateClass.GROUP and p.scope in scopes for p in self.kleene.query.predicates
        )
        return is_aggregated or any(
            part.child.negations()
            and has_conjunction(part.child)
            and any(map(self.kleene.is_growing, part.child.leaves()))
            for part in parts
        )
