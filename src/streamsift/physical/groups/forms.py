"""Rewrite patterns with Kleene variables into patterns of the same meaning that are easier to plan.

AND around a Kleene class is ordered both ways. Inside a negation, where only existence counts, groups become events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, product

from streamsift.errors import UnsupportedQuery
from streamsift.language.syntax import Quantifier, Repeat
from streamsift.logical import bound as b
from streamsift.logical.bound import OrderedConjunction
from streamsift.physical.detect import window_predicates

Quantifiers = Callable[[int], Quantifier | None]


def all_variables(node: b.Node) -> frozenset[int]:
    """Return the variables of a pattern, those of its negations at any depth too."""
    return frozenset(part.variable for part in node.walk() if isinstance(part, b.Leaf))


def positive_part(node: b.Node) -> b.Node:
    """The pattern without its negations."""
    match node:
        case b.Sequence() | b.Conjunction():
            kept = (child for child in node.children if not isinstance(child, b.Negated))
            return replace(node, children=tuple(positive_part(child) for child in kept))
        case _:
            return node


def has_conjunction(node: b.Node) -> bool:
    return any(isinstance(part, b.Conjunction) for part in node.walk(into_negations=False))


def ordered_forms(node: b.Node, quantifier: Quantifiers) -> list[b.Node]:
    """The pattern once for each order of the operands of AND where one of the two is a Kleene class."""
    match node:
        case b.Sequence():
            choices = product(*(ordered_forms(child, quantifier) for child in node.children))
            return [replace(node, children=children) for children in choices]
        case b.Conjunction():
            positive = [child for child in node.children if not isinstance(child, b.Negated)]
            negated = tuple(child for child in node.children if isinstance(child, b.Negated))
            direct = [isinstance(c, b.Leaf) and quantifier(c.variable) is not None for c in positive]
            forms = [form for child in positive[:1] for form in ordered_forms(child, quantifier)]
            for step, child in enumerate(positive[1:], start=1):
                apart = direct[step] or (step == 1 and direct[0])
                pairs = product(forms, ordered_forms(child, quantifier))
                forms = [joined for left, right in pairs for joined in _joined(node, left, right, apart)]
            return [b.Conjunction((form, *negated), node.span) for form in forms] if negated else forms
        case _:
            return [node]


def _joined(node: b.Conjunction, left: b.Node, right: b.Node, apart: bool) -> Iterator[b.Node]:
    if apart:
        yield OrderedConjunction((left, right), node.span)
        yield OrderedConjunction((right, left), node.span, swapped=True)
    else:
        yield b.Conjunction((left, right), node.span)


def order_pairs(node: b.Node) -> Iterator[tuple[int, int]]:
    """Every two variables of which the first comes before the second."""
    if isinstance(node, b.Sequence | b.Conjunction):
        for child in node.children:
            yield from order_pairs(child)
    if isinstance(node, b.Sequence | OrderedConjunction):
        parts = [child.leaves() for child in node.children]
        for number, part in enumerate(parts):
            yield from product(part, chain.from_iterable(parts[number + 1 :]))


def swapped_sides(node: b.Node) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the variables on both sides of each AND that is taken in the other order."""
    for part in node.walk(into_negations=False):
        if isinstance(part, OrderedConjunction) and part.swapped:
            yield part.children[0].leaves(), part.children[1].leaves()


def with_events(node: b.Node, events: dict[int, tuple[int, ...]]) -> b.Node:
    """Return the pattern with each Kleene leaf replaced by these events, in any order; by none if there are none."""
    match node:
        case b.Leaf() if node.variable in events:
            singles = tuple(b.Leaf(event, node.span) for event in events[node.variable])
            return singles[0] if len(singles) == 1 else b.Conjunction(singles, node.span)
        case b.Negated():
            return node
        case _:
            return node.rebuilt(lambda child: with_events(child, events))


def negated_forms(
    negated: b.Negated, quantifier: Quantifiers, elements: dict[int, tuple[int, ...]]
) -> Iterator[b.Negated]:
    """Negations of single events that together forbid what the negation does.

    A group exists if some of it does: one element of `+`, and where a negation looks at both its ends, two of them.
    """
    has_inner = bool(negated.child.negations())
    for form in ordered_forms(negated.child, quantifier):
        kleene = [variable for variable in form.leaves() if quantifier(variable) is not None]
        sizes = [_sizes(quantifier(variable), has_inner) for variable in kleene]
        for choice in product(*sizes):
            events = {v: elements[v][:size] for v, size in zip(kleene, choice, strict=True)}
            yield replace(negated, child=_with_inner_forms(with_events(form, events), quantifier, elements))


def _sizes(quantifier: Quantifier | None, has_inner: bool) -> list[int]:
    assert quantifier is not None
    if quantifier.repeat is Repeat.EXACTLY:
        return [quantifier.count or 1]
    none = [0] if quantifier.repeat is Repeat.ANY_NUMBER else []
    return [*none, 1, 2] if has_inner else [*none, 1]


def _with_inner_forms(node: b.Node, quantifier: Quantifiers, elements: dict[int, tuple[int, ...]]) -> b.Node:
    match node:
        case b.Sequence() | b.Conjunction():
            children: list[b.Node] = []
            for child in node.children:
                if isinstance(child, b.Negated):
                    children += negated_forms(child, quantifier, elements)
                else:
                    children.append(_with_inner_forms(child, quantifier, elements))
            return replace(node, children=tuple(children))
        case _:
            return node


def without_definitions(query: b.BoundQuery, node: b.Node) -> tuple[b.BoundQuery, b.Node]:
    """For an OR-free form of the pattern; raises UnsupportedQuery where no single event speaks for the others."""
    asked: list[b.Predicate] = []
    for definition in node.windowed_definitions():
        _check_negations(query, definition, definition.child)
        asked += window_predicates(query, definition)
    return replace(query, predicates=(*query.predicates, *asked)), _inlined(node)


def _inlined(node: b.Node) -> b.Node:
    return _inlined(node.child) if isinstance(node, b.SubPattern) else node.rebuilt(_inlined)


def _check_negations(query: b.BoundQuery, definition: b.SubPattern, node: b.Node) -> None:
    """A negation must lie between events of its own sequence: else the definition's window would bound it."""
    match node:
        case b.SubPattern():
            _check_negations(query, definition, node.child)
        case b.Sequence() | b.Conjunction() | b.Disjunction():
            always = [isinstance(child, b.Leaf) and not _may_be_empty(query, child.variable) for child in node.children]
            for number, child in enumerate(node.children):
                if not isinstance(child, b.Negated):
                    _check_negations(query, definition, child)
                elif not isinstance(node, b.Sequence) or not any(always[:number]) or not any(always[number:]):
                    raise UnsupportedQuery(
                        f"a negation at the edge of `{definition.name}`, which has a window of its own, cannot be"
                        " evaluated beside a Kleene class",
                        query.text,
                        child.span,
                        "leave out the window of the definition, or put the negation between two of its events.",
                    )


def _may_be_empty(query: b.BoundQuery, variable: int) -> bool:
    quantifier = query.variables[variable].quantifier
    return quantifier is not None and quantifier.repeat is Repeat.ANY_NUMBER
