"""Describe and draw an alternative's join tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from streamsift.physical.detect import window_bound
from streamsift.physical.plan import (
    Alternative,
    Cache,
    Condense,
    Join,
    JoinLeaf,
    PlannerOptions,
    PlanShape,
    SearchBy,
    Tree,
    forced_tree,
    search_by,
    steps_of,
    units_of,
)


def names_of(alternative: Alternative) -> list[str]:
    return [alternative.query.variables[step.variable].name for step in alternative.steps]


def describe_joins(alternative: Alternative, choices: PlannerOptions) -> Iterator[str]:
    """Yield how the single events of a match are joined, and which joins are condensed."""
    if len(alternative.steps) > 1:
        yield from _joins(alternative, choices, names_of(alternative))
        yield _condensing(alternative, choices)
    if alternative.groups is not None and choices.condense is not Condense.OFF:
        yield "groups are not condensed: their elements are ranges of sorted buffers already"


def _joins(alternative: Alternative, choices: PlannerOptions, names: Sequence[str]) -> Iterator[str]:
    if search_by(alternative, choices) is SearchBy.NESTED:
        yield "joins left to right, so that each negation is decided as soon as its neighbours are bound"
        return
    tree = forced_tree(alternative, choices)
    if tree is not None:
        yield f'joins as plan="{choices.plan}" asks: {one_line(tree, names)}'
    elif len(names) == 2 and alternative.is_sequence:
        yield "joins left to right"
    else:
        yield "joins by the cheapest tree for the rates and selectivities measured in each slice of the stream;"
        yield "  changed from one slice to the next when another tree costs less than 80 % of the current one"
    if alternative.is_sequence and len(names) > 3 and choices.plan in (PlanShape.AUTO, PlanShape.BUSHY):
        match choices.cache:
            case Cache.OFF if choices.plan is PlanShape.AUTO:
                yield "sub-matches are not cached: asked for"
            case Cache.ON:
                yield "sub-matches of a part of the pattern are cached by interval: asked for"
            case _:
                yield "sub-matches of a part are cached by interval where that is cheaper than finding them again"


def _condensing(alternative: Alternative, choices: PlannerOptions) -> str:
    search = search_by(alternative, choices)
    if not any(window_bound(p.earlier_side, p.this_side) is None for step in alternative.steps for p in step.compared):
        return "not condensed: no event is compared with another"
    if choices.condense is Condense.OFF:
        return "not condensed: asked for"
    if search is SearchBy.NESTED:
        return "not condensed: negations are decided on the way, event by event"
    if not alternative.is_sequence:
        return "not condensed: only events of a SEQ are, and AND leaves the order of these open"
    if choices.plan is PlanShape.BUSHY and len(alternative.steps) > 3:
        return "not condensed: a part of this tree is cached instead"
    if search is SearchBy.SEQUENCE:
        return "not condensed: two events are found at once"
    if choices.condense is Condense.ON:
        return "condensed: events with equal values are compared once"
    return "condensed where comparing events with equal values once saves more than grouping them costs"


def one_line(tree: Tree, names: Sequence[str]) -> str:
    match tree:
        case JoinLeaf(step):
            return names[step]
        case Join(left, right):
            return f"({one_line(left, names)} {one_line(right, names)})"


def draw(tree: Tree, names: Sequence[str], rows: Callable[[tuple[int, ...]], str], indent: str = "") -> Iterator[str]:
    """Yield the tree, a node on each line, with the text that `rows` gives for its steps."""
    mark = "join" if isinstance(tree, Join) else names[tree.step]
    yield f"{indent}{mark}  {rows(steps_of(tree))}".rstrip()
    if isinstance(tree, Join):
        block = units_of(tree)[-1]
        for child in (tree.left, tree.right):
            is_cached = child is block and isinstance(child, Join)
            lines = list(draw(child, names, rows, indent + "  "))
            yield lines[0] + "  (cached by interval)" * is_cached
            yield from lines[1:]
