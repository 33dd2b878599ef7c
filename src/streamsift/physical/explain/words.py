"""Parts of a plan in, words for people out: all sections of explain use the same ones."""

from __future__ import annotations

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_expression
from streamsift.physical.detect import PLACE, until
from streamsift.physical.plan import Edge, Limit, Negation, Pair, Step


def describe_limit(query: b.BoundQuery, limit: Limit, chain: tuple[Step, ...]) -> str:
    # All elements that stand for a group have its name.
    names = ", ".join(dict.fromkeys(query.variables[chain[step].variable].name for step in limit.steps))
    if limit.definition is not None:
        return f"{limit.edge.value} of {limit.definition}"
    if limit.edge is Edge.WINDOW_START and query.window is None:
        return "from the beginning"
    return f"{limit.edge.value} {names}".rstrip()


def describe_pair(pair: Pair, query: b.BoundQuery) -> str:
    window = _describe_window_pair(pair, query.variables, query.pattern)
    earlier, this = (describe_expression(side, query.variables) for side in (pair.earlier_side, pair.this_side))
    return window or f"{earlier} {pair.op} {this}"


def describe_test(negation: Negation) -> str:
    return "ends at the first hit" + (", Arrow checks its candidates" if negation.needs_arrow else "")


def _describe_window_pair(pair: Pair, variables: tuple[b.Variable, ...], pattern: b.Node) -> str | None:
    """Return how explain spells a comparison of a definition's window; None for one between attributes."""
    match pair.earlier_side, pair.this_side:
        case (b.Column(variable=earlier, name=one), b.Column(variable=this, name=other)) if PLACE in (one, other):
            limit = other if one == PLACE else one
            definition = next(d for d in pattern.windowed_definitions() if until(d.name) == limit)
            assert definition.window is not None
            names = f"{variables[earlier].name}, {variables[this].name}"
            return f"{names} within {definition.window.text} ({definition.name})"
    return None
