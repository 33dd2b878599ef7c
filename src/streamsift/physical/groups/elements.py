"""Add variables for the elements of Kleene groups, and assign predicates to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

from streamsift.errors import Span, UnsupportedQuery
from streamsift.language.syntax import Quantifier, Repeat
from streamsift.logical import bound as b

TWO_GROUPS = "a predicate cannot compare the elements of two Kleene groups"
WITH_NEGATED = "a predicate cannot compare the elements of a Kleene group with a negated variable"
AGGREGATE_WITH_NEGATED = "a predicate cannot combine an aggregate over a Kleene group with a negated variable"


@dataclass(frozen=True, slots=True)
class KleeneQuery:
    """A query with Kleene variables, and the same query `extended` by variables for their elements.

    A `[n]` variable has n elements. A `+` or `*` variable has two, its first and its last. In the extended query,
    predicates of negated sub-patterns read elements. Its last variable has the class of all rows, and nothing reads it.
    """

    query: b.BoundQuery
    extended: b.BoundQuery
    elements: dict[int, tuple[int, ...]]

    def quantifier(self, variable: int) -> Quantifier | None:
        return self.extended.variables[variable].quantifier

    def is_growing(self, variable: int) -> bool:
        quantifier = self.quantifier(variable)
        return quantifier is not None and quantifier.repeat is not Repeat.EXACTLY

    def may_be_empty(self, variable: int) -> bool:
        return self.extended.variables[variable].may_be_empty

    def element_predicates(self, variable: int, bound: set[int]) -> Iterator[b.Predicate]:
        """Yield the predicates on each element of a Kleene variable, given the variables that are bound."""
        for predicate in filter(_is_elementwise, self.query.predicates):
            others = {v: self.elements.get(v, (v,)) for v in predicate.variables if v != variable}
            if variable in predicate.variables and all(set(events) <= bound for events in others.values()):
                yield from _copies(predicate, others)

    def check_whole_groups(self, negated: b.Negated) -> None:
        """Raise UnsupportedQuery if a predicate compares elements of a negated group with another group."""
        candidates = {v for v in negated.child.leaves() if self.is_growing(v)}
        for predicate in filter(_is_elementwise, self.query.predicates):
            growing = candidates & {*predicate.variables}
            if len(growing) > 1:
                raise self._refusal(TWO_GROUPS, predicate.span)
            if growing and predicate.scope != negated.scope and not self._is_of_a_key(predicate, growing):
                raise self._refusal(WITH_NEGATED, predicate.span)

    def check(self, predicate: b.Predicate, kleene: list[int]) -> None:
        """Raise UnsupportedQuery if a predicate reads these groups in an unsupported way."""
        growing = {v for v in kleene if self.is_growing(v) and self.query.variables[v].positive}
        is_root = predicate.scope == b.ROOT_SCOPE
        if predicate.predicate_class is b.PredicateClass.GROUP:
            if any(self.query.variables[v].scope != predicate.scope for v in kleene):
                raise self._refusal(AGGREGATE_WITH_NEGATED, predicate.span)
            parts = predicate.expression.walk()
            growing, is_root = {p.variable for p in parts if isinstance(p, b.Column) and p.variable in kleene}, True
        if is_root and len(growing) > 1:
            raise self._refusal(TWO_GROUPS, predicate.span)
        if not is_root and growing and not self._is_of_a_key(predicate, growing):
            raise self._refusal(WITH_NEGATED, predicate.span)

    def _is_of_a_key(self, predicate: b.Predicate, growing: set[int]) -> bool:
        """Return True if the predicate is part of `[attr]`, which also makes the elements of the group equal."""
        match predicate.expression:
            case b.Operation(op="=", operands=(b.Column() as left, b.Column() as right)) if left.name == right.name:
                uniform = (p for p in self.query.predicates if p.predicate_class is b.PredicateClass.UNIFORM)
                return any(shared_column(p).name == left.name and growing <= {*p.variables} for p in uniform)
        return False

    def _refusal(self, message: str, span: Span) -> UnsupportedQuery:
        return UnsupportedQuery(message, self.query.text, span, "compare each of them with a single event instead.")


def kleene_query(query: b.BoundQuery) -> KleeneQuery:
    """Extend a query; raise UnsupportedQuery if a predicate reads a group in an unsupported way."""
    variables = list(query.variables)
    elements: dict[int, tuple[int, ...]] = {}
    for variable in query.variables:
        if (quantifier := variable.quantifier) is not None:
            count = (quantifier.count or 1) if quantifier.repeat is Repeat.EXACTLY else 2
            elements[variable.index] = tuple(range(len(variables), len(variables) + count))
            variables += [replace(variable, index=number, quantifier=None) for number in elements[variable.index]]
    variables.append(b.Variable(len(variables), "any event", b.EventClass("ANY", b.ClassRule.ANY), None, b.ROOT_SCOPE))
    kleene = KleeneQuery(query, replace(query, variables=tuple(variables)), elements)
    predicates = tuple(piece for predicate in query.predicates for piece in _rewritten(kleene, predicate))
    return replace(kleene, extended=replace(kleene.extended, predicates=predicates))


def _rewritten(query: KleeneQuery, predicate: b.Predicate) -> Iterator[b.Predicate]:
    """Yield the predicate for single events: unchanged without Kleene variables, on elements inside negations."""
    kleene = [v for v in predicate.variables if query.quantifier(v) is not None]
    elements = {v: query.elements[v] for v in kleene}
    if predicate.predicate_class is b.PredicateClass.UNIFORM:
        if predicate.scope != b.ROOT_SCOPE:
            for one, other in combinations((element for v in kleene for element in elements[v]), 2):
                yield equality(predicate, one, other)
        return
    query.check(predicate, kleene)
    if not kleene:
        yield predicate
    elif predicate.scope != b.ROOT_SCOPE and predicate.predicate_class is not b.PredicateClass.GROUP:
        shared = [v for v in kleene if query.is_growing(v) and query.query.variables[v].positive]
        yield from _copies(
            predicate, elements | {v: elements[v][:1] for v in shared}
        )  # their elements are equal in what is compared


def shared_column(uniform: b.Predicate) -> b.Column:
    """Return the column of an `[attr]` predicate."""
    assert isinstance(uniform.expression, b.Column)
    return uniform.expression


def equality(uniform: b.Predicate, one: int, other: int) -> b.Predicate:
    """Return an equality of two elements in the column of an `[attr]` predicate."""
    sides = tuple(replace(shared_column(uniform), variable=element) for element in (one, other))
    expression, variables = b.truth("=", sides, uniform.span), tuple(sorted((one, other)))
    return replace(uniform, expression=expression, variables=variables, predicate_class=b.PredicateClass.EQUALITY)


def _is_elementwise(predicate: b.Predicate) -> bool:
    return predicate.predicate_class not in (b.PredicateClass.GROUP, b.PredicateClass.UNIFORM)


def _copies(predicate: b.Predicate, events: Mapping[int, tuple[int, ...]]) -> Iterator[b.Predicate]:
    """Yield the predicate for every combination of one event per variable."""
    for choice in product(*events.values()):
        expression = predicate.expression.renamed(dict(zip(events, choice, strict=True)))
        yield replace(predicate, expression=expression, variables=tuple(sorted(expression.variables)))
