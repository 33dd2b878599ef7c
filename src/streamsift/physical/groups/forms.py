"""Rewrite patterns with Kleene variables into equivalent patterns that are easier to plan.

AND with a Kleene class is expanded into both orders. Inside a negation, where only existence matters, groups become
events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product

from streamsift.errors import Span, UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.physical.detect import window_predicates
from streamsift.physical.groups.elements import KleeneQuery


def positive_part(node: b.Node) -> b.Node:
    """Return the pattern without its negations."""
    if not isinstance(node, b.Sequence | b.Conjunction):
        return node
    kept = (child for child in node.children if not isinstance(child, b.Negated))
    return replace(node, children=tuple(map(positive_part, kept)))


def has_conjunction(node: b.Node) -> bool:
    return any(isinstance(part, b.Conjunction) for part in node.walk(into_negations=False))


def ordered_forms(node: b.Node, kleene: KleeneQuery) -> list[b.Node]:
    """Return the pattern once per order of the operands of each AND that has a Kleene class as an operand."""
    match node:
        case b.Sequence():
            choices = product(*(ordered_forms(child, kleene) for child in node.children))
            return [replace(node, children=children) for children in choices]
        case b.Conjunction():
            positive = [child for child in node.children if not isinstance(child, b.Negated)]
            negated = tuple(child for child in node.children if isinstance(child, b.Negated))
            direct = [isinstance(c, b.Leaf) and kleene.quantifier(c.variable) is not None for c in positive]
            forms = [form for child in positive[:1] for form in ordered_forms(child, kleene)]
            for step, child in enumerate(positive[1:], start=1):
                pairs = product(forms, ordered_forms(child, kleene))
                if direct[step] or (step == 1 and direct[0]):
                    forms = [form for pair in pairs for form in _both_orders(*pair, node.span)]
                else:
                    forms = [b.Conjunction(pair, span=node.span) for pair in pairs]
            return [b.Conjunction((form, *negated), span=node.span) for form in forms] if negated else forms
        case _:
            return [node]


def _both_orders(left: b.Node, right: b.Node, span: Span) -> tuple[b.Node, b.Node]:
    return b.OrderedConjunction((left, right), span=span), b.OrderedConjunction((right, left), swapped=True, span=span)


def order_pairs(node: b.Node) -> Iterator[tuple[int, int]]:
    """Yield every pair of variables of which the first comes before the second."""
    if isinstance(node, b.Sequence | b.Conjunction):
        for child in node.children:
            yield from order_pairs(child)
    if isinstance(node, b.Sequence | b.OrderedConjunction):
        parts = [child.leaves() for child in node.children]
        for number, part in enumerate(parts):
            yield from product(part, chain.from_iterable(parts[number + 1 :]))


def swapped_sides(node: b.Node) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the variables on both sides of each AND that is in reverse order."""
    for part in node.walk(into_negations=False):
        if isinstance(part, b.OrderedConjunction) and part.swapped:
            yield part.children[0].leaves(), part.children[1].leaves()


def with_events(node: b.Node, events: dict[int, tuple[int, ...]]) -> b.Node:
    """Replace each Kleene leaf by these events, in any order; remove it if there are none."""
    match node:
        case b.Leaf() if node.variable in events:
            singles = tuple(b.Leaf(event, span=node.span) for event in events[node.variable])
            return singles[0] if len(singles) == 1 else b.Conjunction(singles, span=node.span)
        case b.Negated():
            return node
        case _:
            return node.rebuilt(lambda child: with_events(child, events))


def negated_forms(negated: b.Negated, kleene: KleeneQuery) -> Iterator[b.Negated]:
    """Yield negations of single events that together are equivalent to the negation.

    A `+` group exists if one element does. If an inner negation can read both of its ends, forms with two elements are
    added.
    """
    sizes = (1, 2) if negated.child.negations() else (1,)
    for form in ordered_forms(negated.child, kleene):
        choices: dict[int, list[tuple[int, ...]]] = {}
        for variable in form.leaves():
            elements = kleene.elements.get(variable, ())
            if kleene.is_growing(variable):
                choices[variable] = [()] * kleene.may_be_empty(variable) + [elements[:n] for n in sizes]
            elif elements:
                choices[variable] = [elements]
        for choice in product(*choices.values()):
            events = with_events(form, dict(zip(choices, choice, strict=True)))
            yield replace(negated, child=_with_inner_forms(events, kleene))


def _with_inner_forms(node: b.Node, kleene: KleeneQuery) -> b.Node:
    if not isinstance(node, b.Sequence | b.Conjunction):
        return node
    children: list[b.Node] = []
    for child in node.children:
        if isinstance(child, b.Negated):
            children += negated_forms(child, kleene)
        else:
            children.append(_with_inner_forms(child, kleene))
    return replace(node, children=tuple(children))


def without_definitions(query: b.BoundQuery, node: b.Node) -> tuple[b.BoundQuery, b.Node]:
    """Inline the definitions of an OR-free pattern; raise UnsupportedQuery if a definition window cannot be applied."""
    predicates = list(query.predicates)
    for definition in node.windowed_definitions():
        _check_negations(query, definition, definition.child)
        predicates += window_predicates(query, definition)
    return replace(query, predicates=tuple(predicates)), _inlined(node)


def _inlined(node: b.Node) -> b.Node:
    return _inlined(node.child) if isinstance(node, b.SubPattern) else node.rebuilt(_inlined)


def _check_negations(query: b.BoundQuery, definition: b.SubPattern, node: b.Node) -> None:
    """Raise if a negation is not between events of its own sequence, because the definition window would bound it."""
    always = [isinstance(c, b.Leaf) and not query.variables[c.variable].may_be_empty for c in node.children]
    for number, child in enumerate(node.children):
        if not isinstance(child, b.Negated):
            _check_negations(query, definition, child)
        elif not isinstance(node, b.Sequence) or not any(always[:number]) or not any(always[number:]):
            name = definition.name
            message = f"`{name}` cannot have both a window and a negation at its edge in a query with a Kleene class"
            hint = f"remove the window of `{name}`, or put the negation between two of its events."
            raise UnsupportedQuery(message, query.text, child.span, hint)
