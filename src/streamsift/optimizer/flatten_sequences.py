"""SEQ(A, SEQ(B, C), D) is SEQ(A, B, C, D): order is all that a SEQ of positive components asks for."""

from __future__ import annotations

from dataclasses import replace

from streamsift.logical import bound as b


def flatten_sequences(query: b.BoundQuery) -> b.BoundQuery:
    def flatten(node: b.Node) -> b.Node:
        match node:
            case b.Sequence():
                children: list[b.Node] = []
                for child in map(flatten, node.children):
                    # A negation at an inner edge takes its bound from the neighbours outside: left to the strategy.
                    plain = isinstance(child, b.Sequence) and not any(isinstance(c, b.Negated) for c in child.children)
                    children.extend(child.children if plain and isinstance(child, b.Sequence) else [child])
                return replace(node, children=tuple(children))
            case b.Conjunction() | b.Disjunction():
                return replace(node, children=tuple(flatten(c) for c in node.children))
            case b.Negated() | b.SubPattern():
                return replace(node, child=flatten(node.child))
            case _:
                return node

    return replace(query, pattern=flatten(query.pattern))
