"""SEQ(x), AND(x) and OR(x) are x, as long as no negation in x would lose its bounds with the operator around it."""

from __future__ import annotations

from dataclasses import replace

from streamsift.logical import bound as b

# SEQ and AND bound the negations inside them; a single event has none, and the same operator bounds them alike.
_UNWRAPPED: dict[type[b.Node], tuple[type[b.Node], ...]] = {
    b.Sequence: (b.Leaf, b.Sequence),
    b.Conjunction: (b.Leaf, b.Conjunction),
    b.Disjunction: (b.Leaf, b.Sequence, b.Conjunction, b.Disjunction, b.SubPattern),
}


def unwrap_single_operands(query: b.BoundQuery) -> b.BoundQuery:
    def unwrap(node: b.Node) -> b.Node:
        match node:
            case b.Sequence() | b.Conjunction() | b.Disjunction():
                children = tuple(unwrap(child) for child in node.children)
                alone = len(children) == 1 and isinstance(children[0], _UNWRAPPED[type(node)])
                # AND orders a Kleene class that is its direct operand, not one inside another operator.
                if isinstance(children[0], b.Leaf) and query.variables[children[0].variable].quantifier is not None:
                    alone = False
                return children[0] if alone else replace(node, children=children)
            case b.Negated() | b.SubPattern():
                return replace(node, child=unwrap(node.child))
            case _:
                return node

    return replace(query, pattern=unwrap(query.pattern))
