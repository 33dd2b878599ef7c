"""Replace definitions that have no window and no keys, and so are only names, by their patterns."""

from __future__ import annotations

from dataclasses import replace

from streamsift.logical import bound as b


def inline_definitions(query: b.BoundQuery) -> b.BoundQuery:
    def inline(node: b.Node) -> b.Node:
        node = node.rebuilt(inline)
        if not isinstance(node, b.SubPattern):
            return node
        child = node.child
        if isinstance(child, b.Leaf) and query.variables[child.variable].quantifier is not None:
            child = b.Sequence((child,), span=child.span)  # it must not become a direct operand of an AND
        return replace(node, child=child) if node.window or node.partition_by else child

    return replace(query, pattern=inline(query.pattern))
