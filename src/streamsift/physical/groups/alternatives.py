"""Plan an OR-free pattern with Kleene variables: anchors, groups, and what groups decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from streamsift.errors import UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.physical.detect import Equalities, Scope, with_caching
from streamsift.physical.groups.elements import KleeneQuery
from streamsift.physical.groups.forms import (
    all_variables,
    has_conjunction,
    negated_forms,
    order_pairs,
    ordered_forms,
    positive_part,
    with_events,
)
from streamsift.physical.groups.search import order_of, search_of
from streamsift.physical.groups.steps import ElementSteps, Numbers
from streamsift.physical.plan import (
    Alternative,
    Decided,
    Edge,
    FixedGroup,
    GroupNegation,
    KleeneGroups,
    Limit,
    MaximalGroup,
    Negation,
    Step,
)

MAX_NEGATED_EVENTS = 62  # the search for them keeps a bit for each in one integer
MAX_STARS = 8  # each choice of empty ones bounds the negations in its own way
OPEN = Limit(Edge.WINDOW_START), Limit(Edge.WINDOW_END)
Bounded = tuple[b.Negated, Limit, Limit]


def group_alternatives(known: KleeneQuery, node: b.Node) -> Iterator[Alternative]:
    """One for each order in which AND leaves the events of fixed number."""
    upper = Limit(Edge.MATCH_END if isinstance(node, b.Conjunction) else Edge.WINDOW_END)
    for forms in _by_order(known, node):
        yield _Planner(known, node, forms, b.ROOT_SCOPE, Limit(Edge.WINDOW_START), upper, {}, ()).alternative()


def _by_order(known: KleeneQuery, node: b.Node) -> Iterator[tuple[b.Node, ...]]:
    """The forms of a pattern that differ only in where its growing variables stand, together."""
    found: dict[frozenset[tuple[int, int]], list[b.Node]] = {}
    for form in ordered_forms(node, known.quantifier):
        fixed = frozenset(p for p in order_pairs(form) if not any(map(known.is_growing, p)))
        found.setdefault(fixed, []).append(form)
    yield from map(tuple, found.values())


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans one pattern: the statement's, or a negated one whose groups matter as a whole."""

    known: KleeneQuery
    node: b.Node
    forms: tuple[b.Node, ...]
    scope: int
    lower: Limit
    upper: Limit
    outer: Numbers  # the steps of the patterns around, by variable
    around: tuple[Step, ...]  # and themselves

    def alternative(self) -> Alternative:
        single = [v for v in self.node.leaves() if self.known.quantifier(v) is None]
        alone = positive_part(with_events(self.forms[0], dict.fromkeys(self.known.elements, ())))
        anchors = Scope(self.known.extended, b.ROOT_SCOPE, {}, Equalities()).plan(alone, *OPEN)[0] if single else ()
        numbers = {step.variable: number for number, step in enumerate(anchors)}
        early = self._early(len(anchors))
        scope = Scope(self.known.extended, b.ROOT_SCOPE, {}, Equalities())
        planned = self._planned(scope, early, dict(numbers))
        negations = tuple(replace(n, ready=scope.ready(n, anchors, 0)) for n in planned)
        groups = self._groups(anchors, numbers, early)
        return with_caching(Alternative(self.known.extended, anchors, negations, groups))

    def negation(self) -> GroupNegation:
        return GroupNegation(self.lower, self.upper, self._groups(self.around, dict(self.outer), []))

    def _groups(self, bound: tuple[Step, ...], numbers: Numbers, early: list[Bounded]) -> KleeneGroups:
        known, steps = self.known, ElementSteps(self.known, self.forms[0], self.scope)
        rest = [v for v in self.node.leaves() if v not in numbers]
        chosen = tuple(steps.chosen(v, numbers) for v in rest if not known.is_growing(v))
        singles, growing = dict(numbers), [v for v in rest if known.is_growing(v)]
        grown = tuple(steps.growing(v, singles, numbers) for v in growing)
        made: tuple[FixedGroup | MaximalGroup, ...] = (*chosen, *grown)
        chain = (*bound, *(element for group in made for element in steps.elements_of(group)))
        orders = tuple(order_of(steps, form, singles, growing) for form in self.forms)
        decided = tuple(self._decided(growing, numbers, chain, early))
        visible = {*self.outer, *self.node.leaves()}
        return KleeneGroups(
            variables=all_variables(self.node),
            steps=chain,
            chosen=chosen,
            growing=grown,
            orders=orders,
            keys=tuple(steps.keys(growing, singles)),
            decided=decided if any(d.negations or d.group_negations for d in decided) else (),
            any_event=known.any_event,
            filters=tuple(
                p.expression
                for p in known.query.predicates
                if p.predicate_class is b.PredicateClass.GROUP and p.scope == self.scope and visible >= {*p.variables}
            ),
            search=search_of(known.extended, self.node, orders, growing, decided, is_root=self.scope == b.ROOT_SCOPE),
        )

    # --- negations ---
    def _bounds(self, empty: set[int], numbers: Numbers) -> list[Bounded]:
        """The negations with the limits that they have if these variables are empty."""
        events = {v: () if v in empty else elements for v, elements in self.known.elements.items()}
        found: list[Bounded] = []
        scope = Scope(self.known.extended, self.scope, {}, Equalities())
        scope.walk(with_events(self.forms[0], events), (), self.lower, self.upper, numbers, {}, found)
        return found

    def _early(self, anchors: int) -> list[Bounded]:
        """The negations that the anchors alone decide: between two of them, whatever groups there are."""
        if has_conjunction(self.node):
            return []
        events: Numbers = {}
        for variable in self.node.leaves():
            if self.known.quantifier(variable) is None:
                events[variable] = len(events)
        for variable in self.node.leaves():
            for element in self.known.elements.get(variable, ()):
                events[element] = len(events)
        stars = {v for v in self.node.leaves() if self.known.may_be_empty(v)}
        without = self._bounds(stars, events)
        return [found for found in self._bounds(set(), events) if found in without and self._is_early(found, anchors)]

    def _is_early(self, found: Bounded, anchors: int) -> bool:
        negated, lower, upper = found
        inside = all_variables(negated.child)
        read = {v for p in self.known.query.predicates if inside & {*p.variables} for v in p.variables} - inside
        steps = (*lower.steps, *upper.steps)
        is_between = bool(lower.steps and upper.steps) and max(steps) < anchors
        return is_between and all(self.known.quantifier(v) is None for v in read) and not self._is_grouped(negated)

    def _decided(
        self, growing: list[int], numbers: Numbers, chain: tuple[Step, ...], early: list[Bounded]
    ) -> Iterator[Decided]:
        stars = [number for number, v in enumerate(growing) if self.known.may_be_empty(v)]
        if len(stars) > MAX_STARS and self.node.negations():
            message = f"negations beside more than {MAX_STARS} `*` variables cannot be evaluated"
            hint = "write some of them with `+`, or the negations in a query of their own."
            raise UnsupportedQuery(message, self.known.query.text, self.node.span, hint)
        for empty in (some for size in range(len(stars) + 1) for some in combinations(stars, size)):
            variables = {growing[number] for number in empty}
            found = [each for each in self._bounds(variables, numbers) if each not in early]
            # What an empty group has to say is not asked; its steps keep their numbers.
            absent = {element for v in variables for element in self.known.elements[v]}
            present = {-v - 2 if v in absent else v: number for v, number in numbers.items()}
            scope = Scope(self.known.extended, self.scope, {}, Equalities())
            negations = tuple(self._planned(scope, [f for f in found if not self._is_grouped(f[0])], present))
            yield Decided(
                sum(1 << number for number in empty),
                with_caching(Alternative(self.known.extended, chain, negations)).negations,
                tuple(self._grouped([f for f in found if self._is_grouped(f[0])], present, chain)),
            )

    def _planned(self, scope: Scope, found: list[Bounded], numbers: Numbers) -> Iterator[Negation]:
        for negated, lower, upper in found:
            for form in negated_forms(negated, self.known.quantifier, self.known.elements):
                self._check_size(form)
                yield scope.negation(form, lower, upper, numbers)

    def _check_size(self, negated: b.Negated) -> None:
        if len(negated.child.leaves()) > MAX_NEGATED_EVENTS:
            message = f"a negated sub-pattern of more than {MAX_NEGATED_EVENTS} events cannot be evaluated"
            hint = "a smaller n in `[n]` would forbid more."
            raise UnsupportedQuery(message, self.known.query.text, negated.span, hint)

    def _grouped(self, found: list[Bounded], numbers: Numbers, chain: tuple[Step, ...]) -> Iterator[GroupNegation]:
        for negated, lower, upper in found:
            self.known.check_whole_groups(negated)
            inner = replace(self, node=negated.child, scope=negated.scope, lower=lower, upper=upper)
            for forms in _by_order(self.known, negated.child):
                yield replace(inner, forms=forms, outer=dict(numbers), around=chain).negation()

    def _is_grouped(self, negated: b.Negated) -> bool:
        """Whether the groups of a negated pattern matter as a whole.

        They do if an aggregate looks at them, or if they take events away from a negation inside, which AND lets
        overlap them.
        """
        scopes = {part.scope for part in negated.walk() if isinstance(part, b.Negated)}
        if any(p.predicate_class is b.PredicateClass.GROUP and p.scope in scopes for p in self.known.query.predicates):
            return True
        return _may_take_away(self.known, negated.child)


def _may_take_away(known: KleeneQuery, node: b.Node) -> bool:
    inner = node.negations()
    here = bool(inner) and has_conjunction(node) and any(map(known.is_growing, node.leaves()))
    return here or any(_may_take_away(known, negated.child) for negated in inner)
