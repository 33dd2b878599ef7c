"""An OR-free pattern with Kleene variables in, its alternatives out: anchors first, then groups, then what they decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.optimizer.drop_implied_equalities import column_sides
from streamsift.physical import planner
from streamsift.physical.groups import Chosen, Groups, Growing, Growth, Key, Order, Side
from streamsift.physical.kleene_forms import (
    has_conjunction,
    leaves,
    negated_forms,
    negated_nodes,
    order_pairs,
    ordered_forms,
    swapped_sides,
    with_events,
)
from streamsift.physical.kleene_query import KleeneQuery
from streamsift.physical.plan import Alternative, Edge, Limit, Negation, Step

Numbers = dict[int, int]  # the number of each variable's step


def group_alternatives(known: KleeneQuery, node: b.Node) -> Iterator[Alternative]:
    """One for each order in which AND leaves the events of fixed number."""
    by_order: dict[frozenset[tuple[int, int]], list[b.Node]] = {}
    for form in ordered_forms(node, known.quantifier):
        fixed = frozenset(p for p in order_pairs(form) if not any(map(known.is_growing, p)))
        by_order.setdefault(fixed, []).append(form)
    for forms in by_order.values():
        yield _Planner(known, node, tuple(forms)).alternative()


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans one alternative; its forms differ in where the growing variables stand."""

    known: KleeneQuery
    node: b.Node
    forms: tuple[b.Node, ...]

    def alternative(self) -> Alternative:
        known, positive = self.known, leaves(self.node)
        single = [v for v in positive if known.quantifier(v) is None]
        exact = [v for v in positive if known.quantifier(v) is not None and not known.is_growing(v)]
        growing = [v for v in positive if known.is_growing(v)]
        anchors = self._anchors(single)
        numbers = {v: number for number, v in enumerate(single)}
        chosen = tuple(self._chosen(v, numbers) for v in exact)
        singles = dict(numbers)
        grown = tuple(self._growing(v, singles, numbers) for v in growing)
        early, late = self._negations(anchors, single, growing, numbers)
        groups = Groups(
            variables=frozenset(positive).union(*(_all_variables(n.child) for n in negated_nodes(self.node))),
            steps=(*anchors, *self._element_steps(chosen), *self._end_steps(grown)),
            chosen=chosen,
            growing=grown,
            orders=tuple(self._order(form, singles, growing) for form in self.forms),
            keys=tuple(self._keys(growing, singles)),
            negations=late,
            any_event=known.any_event,
            filters=tuple(
                p.expression
                for p in known.query.predicates
                if p.predicate_class is b.PredicateClass.GROUP and {*p.variables} <= {*positive}
            ),
            **self._growth(singles, growing, [n for _, negations in late for n in negations]),
        )
        return Alternative(known.extended, anchors, early, groups)

    # --- single events and elements ---
    def _anchors(self, single: list[int]) -> tuple[Step, ...]:
        alone = _positive_part(with_events(self.forms[0], dict.fromkeys(self.known.elements, ())))
        steps, _ = planner._Scope(self.known.extended, b.ROOT_SCOPE, {}, {}).plan(alone, *_OPEN)
        return steps if single else ()

    def _element(self, variable: int, bound: Numbers) -> Step:
        """One element of a group. Equalities that say the same of it are tested once."""
        predicates: list[b.Predicate] = []
        tied: set[tuple[str, int, str]] = set()
        equal = self._equalities()
        for predicate in (*self._constants(bound), *self._uniform(variable, bound)):
            predicates.append(predicate)
        for predicate in self.known.element_predicates(variable, set(bound)):
            sides = column_sides(predicate)
            if sides is not None:
                own, other = sides if sides[0][0] == variable else (sides[1], sides[0])
                tie = (own[1], *equal.get(other, other))
                if tie in tied:
                    continue
                tied.add(tie)
            predicates.append(predicate)
        return planner._step(predicates, variable, {**bound, variable: len(bound)}, ())

    def _equalities(self) -> dict[tuple[int, str], tuple[int, str]]:
        """For each column of a single event one that equals it, the same for all that are equal."""
        found: dict[tuple[int, str], tuple[int, str]] = {}
        present = set(leaves(self.node))
        for predicate in self.known.query.predicates:
            sides = column_sides(predicate) if predicate.scope == b.ROOT_SCOPE else None
            if sides is None or not {v for v, _ in sides} <= present:
                continue
            if any(self.known.quantifier(v) is not None for v, _ in sides):
                continue
            left, right = (found.get(side, side) for side in sides)
            found = {side: left if root == right else root for side, root in found.items()}
            found[right] = left
        return found

    def _constants(self, bound: Numbers) -> list[b.Predicate]:
        """Predicates of no variable are the first step's; without anchors every group's."""
        if any(self.known.quantifier(v) is None for v in leaves(self.node)):
            return []
        return [
            p
            for p in self.known.query.predicates
            if p.predicate_class is b.PredicateClass.CONSTANT and p.scope == b.ROOT_SCOPE
        ]

    def _chosen(self, variable: int, numbers: Numbers) -> Chosen:
        pairs = [p for p in order_pairs(self.forms[0]) if variable in p and not any(map(self.known.is_growing, p))]
        after, before = (self._steps_of([p[side] for p in pairs if p[1 - side] == variable], numbers) for side in (0, 1))
        step = self._element(variable, numbers)
        elements = self.known.elements[variable]
        first = len(numbers)
        agree = tuple(
            p.expression
            for p, members in self._uniforms()
            if len(elements) > 1 and next(v for v in members if v in self.known.elements) == variable
            if isinstance(p.expression, b.Column)
        )
        numbers.update({element: first + number for number, element in enumerate(elements)})
        return Chosen(variable, len(elements), step, first, after, before, agree)

    def _steps_of(self, variables: list[int], numbers: Numbers) -> tuple[int, ...]:
        """The steps of single events, and of the elements of `[n]` variables that are bound."""
        events = [event for v in variables for event in self.known.elements.get(v, (v,))]
        return tuple(sorted({numbers[event] for event in events if event in numbers}))

    def _growing(self, variable: int, singles: Numbers, numbers: Numbers) -> Growing:
        first, last = self.known.elements[variable]
        step = self._element(variable, singles)
        numbers[first], numbers[last] = len(numbers), len(numbers) + 1
        return Growing(variable, self.known.may_be_empty(variable), step, numbers[first])

    def _element_steps(self, chosen: tuple[Chosen, ...]) -> Iterator[Step]:
        for group in chosen:
            for element in self.known.elements[group.variable]:
                yield Step(element, (), group.step.local, (), (), ())

    def _end_steps(self, growing: tuple[Growing, ...]) -> Iterator[Step]:
        for group in growing:
            for element in self.known.elements[group.variable]:
                yield Step(element, (), group.step.local, (), (), ())

    # --- `[attr]` without a single event ---
    def _uniforms(self) -> Iterator[tuple[b.Predicate, list[int]]]:
        """Predicates of `[attr]` among groups alone, with those of them that are in this alternative, `[n]` first."""
        present = set(leaves(self.node))
        for predicate in self.known.query.predicates:
            if predicate.predicate_class is not b.PredicateClass.UNIFORM or predicate.scope != b.ROOT_SCOPE:
                continue
            members = sorted((v for v in predicate.variables if v in present), key=lambda v: self.known.is_growing(v))
            if members and not self._is_tied(predicate, members[0]):
                yield predicate, members

    def _is_tied(self, predicate: b.Predicate, member: int) -> bool:
        """Whether a single event of this alternative tells the value: one that other alternatives lack."""
        present = {v for v in leaves(self.node) if self.known.quantifier(v) is None}
        assert isinstance(predicate.expression, b.Column)
        for other in self.known.query.predicates:
            sides = column_sides(other) if other.span == predicate.span else None
            if sides is not None and (member, predicate.expression.name) in sides:
                if present & {sides[0][0], sides[1][0]}:
                    return True
        return False

    def _uniform(self, variable: int, bound: Numbers) -> Iterator[b.Predicate]:
        """Where a `[n]` variable is bound already, its first element tells the value for the other groups."""
        for predicate, members in self._uniforms():
            told = self.known.elements[members[0]][0]
            if variable in members and told in bound:
                assert isinstance(predicate.expression, b.Column)
                sides = tuple(replace(predicate.expression, variable=v) for v in (told, variable))
                yield replace(
                    predicate,
                    expression=b.Operation("=", sides, b.Kind.BOOLEAN, predicate.span),
                    variables=tuple(sorted((told, variable))),
                    predicate_class=b.PredicateClass.EQUALITY,
                )

    def _keys(self, growing: list[int], singles: Numbers) -> Iterator[Key]:
        for predicate, members in self._uniforms():
            if self.known.elements[members[0]][0] not in singles:
                assert isinstance(predicate.expression, b.Column)
                yield Key(tuple((growing.index(v), replace(predicate.expression, variable=v)) for v in members))

    # --- order ---
    def _order(self, form: b.Node, singles: Numbers, growing: list[int]) -> Order:
        pairs = set(order_pairs(form))
        order = [v for v in leaves(form) if v in growing]

        def fixed(side: int) -> tuple[tuple[int, ...], ...]:
            others = [[p[side] for p in pairs if p[1 - side] == v and p[side] not in growing] for v in growing]
            return tuple(self._steps_of(each, singles) for each in others)

        def side(variables: list[int]) -> Side:
            return Side(
                any(v not in growing for v in variables), tuple(growing.index(v) for v in variables if v in growing)
            )

        singles_of = {v for v in leaves(form) if v not in growing}

        def touch(one: int, other: int) -> bool:
            apart = any((one, single) in pairs and (single, other) in pairs for single in singles_of)
            return (one, other) in pairs and not apart

        return Order(
            after=fixed(0),
            before=fixed(1),
            preceding=tuple(tuple(growing.index(u) for u in growing if touch(u, v)) for v in growing),
            sequence=tuple(growing.index(v) for v in order),
            swapped=tuple((side(left), side(right)) for left, right in swapped_sides(form)),
        )

    # --- negations ---
    def _negations(
        self, anchors: tuple[Step, ...], single: list[int], growing: list[int], numbers: Numbers
    ) -> tuple[tuple[Negation, ...], tuple[tuple[int, tuple[Negation, ...]], ...]]:
        """Those that the anchors alone decide, and the others, for each choice of empty `*` variables."""
        stars = [number for number, v in enumerate(growing) if self.known.may_be_empty(v)]
        bounds: list[tuple[int, list[tuple[b.Negated, Limit, Limit]]]] = []
        for size in range(len(stars) + 1):
            for empty in combinations(stars, size):
                bounds.append((sum(1 << number for number in empty), self._bounds({growing[n] for n in empty}, numbers)))
        early = [
            found
            for found in bounds[0][1]
            if all(found in others for _, others in bounds) and self._is_early(found, len(single))
        ]
        scope = planner._Scope(self.known.extended, b.ROOT_SCOPE, {}, {})
        firsts = {v: number for number, v in enumerate(single)}
        decided = tuple(self._planned(scope, early, firsts))
        late = [(empty, tuple(self._planned(scope, [f for f in found if f not in early], numbers))) for empty, found in bounds]
        return decided, tuple(late) if any(negations for _, negations in late) else ()

    def _bounds(self, empty: set[int], numbers: Numbers) -> list[tuple[b.Negated, Limit, Limit]]:
        events = {v: () if v in empty else events for v, events in self.known.elements.items()}
        tree = with_events(self.forms[0], events)
        found: list[tuple[b.Negated, Limit, Limit]] = []
        upper = Limit(Edge.MATCH_END if isinstance(self.node, b.Conjunction) else Edge.WINDOW_END)
        scope = planner._Scope(self.known.extended, b.ROOT_SCOPE, {}, {})
        scope._walk(tree, (), Limit(Edge.WINDOW_START), upper, numbers, {}, found)
        return found

    def _is_early(self, found: tuple[b.Negated, Limit, Limit], anchors: int) -> bool:
        negated, lower, upper = found
        steps = (*lower.steps, *upper.steps)
        inside = _all_variables(negated.child)
        visible = {v for p in self.known.query.predicates if inside & {*p.variables} for v in p.variables} - inside
        return (
            bool(lower.steps and upper.steps)
            and max(steps) < anchors
            and not has_conjunction(self.node)
            and all(self.known.quantifier(v) is None for v in visible)
        )

    def _planned(
        self, scope: planner._Scope, found: list[tuple[b.Negated, Limit, Limit]], numbers: Numbers
    ) -> Iterator[Negation]:
        for negated, lower, upper in found:
            for form in negated_forms(negated, self.known.quantifier, self.known.elements):
                yield scope._negation(form, lower, upper, numbers, len(numbers) - 1)

    # --- how groups are found ---
    def _growth(self, singles: Numbers, growing: list[int], negations: list[Negation]) -> dict[str, object]:
        orders = [self._order(form, singles, growing) for form in self.forms]
        may_end = any(not steps for order in orders for steps in order.before)
        # Both ends of the window may be elements of groups: how far one reaches depends on the other.
        spans = any(not all(order.after) and not all(order.before) for order in orders)
        each = self.known.query.emit is Emit.EACH and may_end
        moves_end = may_end and any(_uses(n, Edge.MATCH_END) for n in negations)
        has_inner = any(n.negations for n in negations)
        crowded = has_conjunction(self.node) and self._may_be_crowded(growing, negations)
        growth = Growth.RANGES
        if any(self._may_share(order, growing) for order in orders) or (crowded and has_inner):
            growth = Growth.ELEMENTS
        elif any(_inherits(inner, n.first) for n in negations for inner in n.negations):
            growth = Growth.EXTENTS
        exhaustive = growth is Growth.EXTENTS or (crowded and has_inner) or self._inner_inherits(negations)
        return {
            "growth": growth,
            "by_end": not exhaustive
            and (each or moves_end or (spans and self.known.query.window is not None)),
            "keeps_end": not exhaustive and (each or moves_end),
            "each": each,
            "compared": exhaustive or (moves_end and not each),
            "crowded": crowded,
        }

    def _inner_inherits(self, negations: list[Negation]) -> bool:
        return any(_inherits(inner, n.first) for n in negations for inner in n.negations)

    def _may_be_crowded(self, growing: list[int], negations: list[Negation]) -> bool:
        variables = self.known.extended.variables
        inside = {variables[v].event_class for n in negations for v in _negated_variables(n)}
        return any(_may_overlap(variables[g].event_class, other) for g in growing for other in inside)

    def _may_share(self, order: Order, growing: list[int]) -> bool:
        """Whether two groups that nothing orders may have events in common."""
        variables = self.known.extended.variables
        return any(
            one not in order.preceding[other]
            and other not in order.preceding[one]
            and _may_overlap(variables[growing[one]].event_class, variables[growing[other]].event_class)
            for one, other in combinations(range(len(growing)), 2)
        )


_OPEN = Limit(Edge.WINDOW_START), Limit(Edge.WINDOW_END)


def _positive_part(node: b.Node) -> b.Node:
    match node:
        case b.Sequence() | b.Conjunction():
            kept = (child for child in node.children if not isinstance(child, b.Negated))
            return replace(node, children=tuple(_positive_part(child) for child in kept))
        case _:
            return node


def _all_variables(node: b.Node) -> frozenset[int]:
    inside = (_all_variables(negated.child) for negated in negated_nodes(node))
    return frozenset(leaves(node)).union(*inside)


def _negated_variables(negation: Negation) -> Iterator[int]:
    yield from (step.variable for step in negation.steps)
    for inner in negation.negations:
        yield from _negated_variables(inner)


def _may_overlap(one: b.EventClass, other: b.EventClass) -> bool:
    return not (one.rule is other.rule is b.ClassRule.TYPE and one.name != other.name)


def _uses(negation: Negation, edge: Edge) -> bool:
    return edge in (negation.lower.edge, negation.upper.edge)


def _inherits(inner: Negation, first: int) -> bool:
    """Whether a bound of a negation inside another is one of the pattern around both."""
    own = all(limit.steps and min(limit.steps) >= first for limit in (inner.lower, inner.upper))
    return not own or any(_inherits(deeper, first) for deeper in inner.negations)
