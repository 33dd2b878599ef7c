"""SEQ(x), AND(x) and OR(x) are x."""

from __future__ import annotations

from dataclasses import replace

from streamsift.logical import bound as b


def unwrap_single_operands(query: b.BoundQuery) -> b.BoundQuery:
    def unwrap(node: b.Node) -> b.Node:
        match node:
            case b.Sequence() | b.Conjunction() | b.Disjunction():
                children = tuple(unwrap(child) for child in node.children)
                return children[0] if len(children) == 1 else replace(node, children=children)
            case b.Negated() | b.SubPattern():
                return replace(node, child=unwrap(node.child))
            case _:
                return node

    return replace(query, pattern=unwrap(query.pattern))
