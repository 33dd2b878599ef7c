"""Replace SEQ(x), AND(x) and OR(x) by x, unless a negation in x would lose its bounds."""

from __future__ import annotations

from dataclasses import replace

from streamsift.logical import bound as b

# SEQ and AND bound their negations: unwrap only events, which have none, and the same operator, with the same bounds.
_UNWRAPPED: dict[type[b.Node], tuple[type[b.Node], ...]] = {
    b.Sequence: (b.Leaf, b.Sequence),
    b.Conjunction: (b.Leaf, b.Conjunction),
    b.Disjunction: (b.Leaf, b.Sequence, b.Conjunction, b.Disjunction, b.SubPattern),
}


def unwrap_single_operands(query: b.BoundQuery) -> b.BoundQuery:
    def unwrap(node: b.Node) -> b.Node:
        node = node.rebuilt(unwrap)
        if len(node.children) != 1 or not isinstance(node.children[0], _UNWRAPPED.get(type(node), ())):
            return node
        (child,) = node.children
        # AND orders a Kleene class only as its direct operand.
        is_group = isinstance(child, b.Leaf) and query.variables[child.variable].quantifier is not None
        return node if is_group else child

    return replace(query, pattern=unwrap(query.pattern))
