"""Give the elements of Kleene variables variables of their own, and assign predicates to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

from streamsift.errors import Span, UnsupportedQuery
from streamsift.language.syntax import Quantifier, Repeat
from streamsift.logical import bound as b

_FIRST = 0


@dataclass(frozen=True, slots=True)
class KleeneQuery:
    """`extended` is the query with more variables: the elements of every Kleene variable that stand for all of it.

    A `[n]` variable has n of them; a `+` or `*` variable its first and its last. Predicates of negated sub-patterns
    speak of elements there. The last variable is of the class of all rows, and named by nothing.
    """

    query: b.BoundQuery
    extended: b.BoundQuery
    elements: dict[int, tuple[int, ...]]

    @property
    def any_event(self) -> int:
        return len(self.extended.variables) - 1

    def quantifier(self, variable: int) -> Quantifier | None:
        return self.extended.variables[variable].quantifier

    def is_growing(self, variable: int) -> bool:
        quantifier = self.quantifier(variable)
        return quantifier is not None and quantifier.repeat is not Repeat.EXACTLY

    def may_be_empty(self, variable: int) -> bool:
        quantifier = self.quantifier(variable)
        return quantifier is not None and quantifier.repeat is Repeat.ANY_NUMBER

    def element_predicates(self, variable: int, bound: set[int]) -> Iterator[b.Predicate]:
        """What the query asks of each element of a Kleene variable, given single events and elements that are bound."""
        for predicate in self.query.predicates:
            if variable not in predicate.variables or not _is_elementwise(predicate):
                continue
            others = {v: self.elements.get(v, (v,)) for v in predicate.variables if v != variable}
            if all(set(events) <= bound for events in others.values()):
                yield from _copies(predicate, others)

    def check_whole_groups(self, negated: b.Negated) -> None:
        """Raises UnsupportedQuery where a group of a negated pattern is compared element by element with another."""
        own = {v for v in negated.child.leaves() if self.is_growing(v)}
        for predicate in filter(_is_elementwise, self.query.predicates):
            growing = own & {*predicate.variables}
            is_deeper = predicate.scope != negated.scope and not _is_of_a_key(self.query, predicate, [*growing])
            if len(growing) > 1 or (growing and is_deeper):
                what = (
                    "the elements of two groups"
                    if len(growing) > 1
                    else "the elements of a group and a negated variable"
                )
                raise _refusal(self, f"a predicate between {what}", predicate.span)


def kleene_query(query: b.BoundQuery) -> KleeneQuery:
    """Raises UnsupportedQuery where a predicate speaks of a group in a way that is not evaluated."""
    variables = list(query.variables)
    elements: dict[int, tuple[int, ...]] = {}
    for variable in query.variables:
        quantifier = variable.quantifier
        if quantifier is None:
            continue
        count = (quantifier.count or 1) if quantifier.repeat is Repeat.EXACTLY else 2
        elements[variable.index] = tuple(range(len(variables), len(variables) + count))
        variables += [replace(variable, index=number, quantifier=None) for number in elements[variable.index]]
    variables.append(b.Variable(len(variables), "any event", b.EventClass("ANY", b.ClassRule.ANY), None, b.ROOT_SCOPE))
    known = KleeneQuery(query, replace(query, variables=tuple(variables)), elements)
    predicates = [piece for predicate in query.predicates for piece in _rewritten(known, predicate)]
    return replace(known, extended=replace(known.extended, predicates=tuple(predicates)))


def _rewritten(known: KleeneQuery, predicate: b.Predicate) -> Iterator[b.Predicate]:
    """The predicate for single events: unchanged without Kleene variables; inside negations, of their elements."""
    _check(known, predicate)
    kleene = [v for v in predicate.variables if known.quantifier(v) is not None]
    if not kleene:
        yield predicate
    elif predicate.predicate_class is b.PredicateClass.UNIFORM:
        if predicate.scope != b.ROOT_SCOPE:
            for one, other in combinations((element for v in kleene for element in known.elements[v]), 2):
                yield _equality(predicate, one, other)
    elif predicate.scope != b.ROOT_SCOPE and predicate.predicate_class is not b.PredicateClass.GROUP:
        events = {v: known.elements[v] for v in kleene}
        for v in kleene:
            if known.is_growing(v) and known.query.variables[v].positive:
                events[v] = known.elements[v][_FIRST : _FIRST + 1]  # its elements share what is compared
        yield from _copies(predicate, events)


def _equality(predicate: b.Predicate, one: int, other: int) -> b.Predicate:
    """That two elements share the column that a predicate of `[attr]` names."""
    assert isinstance(predicate.expression, b.Column)
    sides = tuple(replace(predicate.expression, variable=element) for element in (one, other))
    expression = b.truth("=", sides, predicate.span)
    return replace(predicate, expression=expression, variables=(one, other), predicate_class=b.PredicateClass.EQUALITY)


def _is_elementwise(predicate: b.Predicate) -> bool:
    return predicate.predicate_class not in (b.PredicateClass.GROUP, b.PredicateClass.UNIFORM)


def _check(known: KleeneQuery, predicate: b.Predicate) -> None:
    kleene = [v for v in predicate.variables if known.quantifier(v) is not None]
    if predicate.predicate_class is b.PredicateClass.GROUP:
        if any(known.query.variables[v].scope != predicate.scope for v in kleene):
            raise _refusal(known, "an aggregate over a group together with a negated variable", predicate.span)
        parts = predicate.expression.walk()
        if len({part.variable for part in parts if isinstance(part, b.Column) and part.variable in kleene}) > 1:
            raise _refusal(known, "a predicate between the elements of two groups", predicate.span)
        return
    if predicate.predicate_class is b.PredicateClass.UNIFORM:
        return
    growing = [v for v in kleene if known.is_growing(v) and known.query.variables[v].positive]
    if predicate.scope == b.ROOT_SCOPE and len(growing) > 1:
        raise _refusal(known, "a predicate between the elements of two groups", predicate.span)
    if predicate.scope != b.ROOT_SCOPE and growing and not _is_of_a_key(known.query, predicate, growing):
        raise _refusal(known, "a predicate between the elements of a group and a negated variable", predicate.span)


def _is_of_a_key(query: b.BoundQuery, predicate: b.Predicate, growing: list[int]) -> bool:
    """Whether it is a piece of `[attr]`, in which the elements of the group are equal too."""
    match predicate.expression:
        case b.Operation(op="=", operands=(b.Column() as left, b.Column() as right)) if left.name == right.name:
            uniform = [p for p in query.predicates if p.predicate_class is b.PredicateClass.UNIFORM]
            return any(
                isinstance(p.expression, b.Column) and p.expression.name == left.name and {*growing} <= {*p.variables}
                for p in uniform
            )
    return False


def _refusal(known: KleeneQuery, what: str, span: Span) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"{what} cannot be evaluated",
        known.query.text,
        span,
        "compare each of them with a single event instead.",
    )


def _copies(predicate: b.Predicate, events: Mapping[int, tuple[int, ...]]) -> Iterator[b.Predicate]:
    """The predicate for every choice of one event for each of these variables."""
    for choice in product(*events.values()):
        expression = predicate.expression.renamed(dict(zip(events, choice, strict=True)))
        yield replace(predicate, expression=expression, variables=tuple(sorted(expression.variables)))
