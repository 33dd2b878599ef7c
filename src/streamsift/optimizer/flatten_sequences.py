"""Flatten SEQ(A, SEQ(B, C), D) to SEQ(A, B, C, D), which is equivalent if the inner SEQ has no negations."""

from __future__ import annotations

from dataclasses import replace

from streamsift.logical import bound as b


def flatten_sequences(query: b.BoundQuery) -> b.BoundQuery:
    def flatten(node: b.Node) -> b.Node:
        node = node.rebuilt(flatten)
        if not isinstance(node, b.Sequence):
            return node
        children: list[b.Node] = []
        for child in node.children:
            # A negation at the edge of an inner SEQ is bounded by its outer neighbors, so that SEQ stays.
            plain = isinstance(child, b.Sequence) and not any(isinstance(c, b.Negated) for c in child.children)
            children += child.children if plain else [child]
        return replace(node, children=tuple(children))

    return replace(query, pattern=flatten(query.pattern))
