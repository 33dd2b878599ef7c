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
    Tree,
    forced,
    steps_of,
    units_of,
)


def names_of(alternative: Alternative) -> list[str]:
    return [alternative.query.variables[step.variable].name for step in alternative.steps]


def describe_joins(alternative: Alternative, choices: PlannerOptions) -> Iterator[str]:
    """How the single events of a match are joined, and what is condensed."""
    if len(alternative.steps) > 1:
        yield from _joins(alternative, choices, names_of(alternative))
    if alternative.groups is not None and choices.condense is not Condense.OFF:
        yield "groups are not condensed: their elements are ranges of sorted buffers already"


def _joins(alternative: Alternative, choices: PlannerOptions, names: Sequence[str]) -> Iterator[str]:
    if alternative.negations and choices.plan in (PlanShape.AUTO, PlanShape.LEFT):
        yield "joins left to right, so that each negation is decided as soon as its neighbours are bound"
        yield from _condensing(alternative, choices, "negations are decided on the way, event by event")
        return
    if choices.plan is PlanShape.AUTO:
        if len(names) == 2 and alternative.is_sequence:
            yield "joins left to right"
        else:
            yield "joins by the cheapest tree for the rates and selectivities measured in each slice of the stream;"
            yield "  changed from one slice to the next when another tree costs less than 80 % of the current one"
    else:
        is_bushy_and = choices.plan is PlanShape.BUSHY and not alternative.is_sequence
        tree = forced(PlanShape.LEFT if is_bushy_and else choices.plan, range(len(names)))
        yield f'joins as plan="{choices.plan}" asks: {one_line(tree, names)}'
    if alternative.is_sequence and len(names) > 2:
        yield from _blocks(choices, len(names))
    yield from _condensing(alternative, choices, _obstacle(alternative, choices))


def _obstacle(alternative: Alternative, choices: PlannerOptions) -> str:
    """What keeps the joins from being condensed, if anything does."""
    steps = len(alternative.steps)
    if not alternative.is_sequence:
        return "only events of a SEQ are, and AND leaves the order of these open"
    if choices.plan is PlanShape.BUSHY and steps > 3:
        return "a part of this tree is cached instead"
    is_plain = steps == 2 and choices.plan is PlanShape.AUTO and choices.condense is not Condense.ON
    return "two events are found at once" if is_plain else ""


def _blocks(choices: PlannerOptions, steps: int) -> Iterator[str]:
    if choices.plan in (PlanShape.AUTO, PlanShape.BUSHY) and steps > 3:
        match choices.cache:
            case Cache.OFF if choices.plan is PlanShape.AUTO:
                yield "sub-matches are not cached: asked for"
            case Cache.ON:
                yield "sub-matches of a part of the pattern are cached by interval: asked for"
            case _:
                yield "sub-matches of a part are cached by interval where that is cheaper than finding them again"


def _condensing(alternative: Alternative, choices: PlannerOptions, obstacle: str) -> Iterator[str]:
    compares = any(
        step.lookup or any(window_bound(pair.earlier_side, pair.this_side) is None for pair in step.pairs)
        for step in alternative.steps
    )
    match choices.condense:
        case _ if not compares:
            yield "not condensed: no event is compared with another"
        case Condense.OFF:
            yield "not condensed: asked for"
        case _ if obstacle:
            yield f"not condensed: {obstacle}"
        case Condense.ON:
            yield "condensed: events with equal values are compared once"
        case _:
            yield "condensed where comparing events with equal values once saves more than grouping them costs"


def one_line(tree: Tree, names: Sequence[str]) -> str:
    match tree:
        case JoinLeaf(step):
            return names[step]
        case Join(left, right):
            return f"({one_line(left, names)} {one_line(right, names)})"


def draw(tree: Tree, names: Sequence[str], rows: Callable[[tuple[int, ...]], str], indent: str = "") -> Iterator[str]:
    """The tree, a node on each line, with what `rows` says of its steps."""
    mark = "join" if isinstance(tree, Join) else names[tree.step]
    yield f"{indent}{mark}  {rows(steps_of(tree))}".rstrip()
    if isinstance(tree, Join):
        block = units_of(tree)[-1]
        for child in (tree.left, tree.right):
            is_cached = child is block and isinstance(child, Join)
            lines = list(draw(child, names, rows, indent + "  "))
            yield lines[0] + "  (cached by interval)" * is_cached
            yield from lines[1:]
