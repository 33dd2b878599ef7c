"""Describe and draw the join tree of an alternative."""

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
    """Describe how the single events of a match are joined, and whether joins are condensed."""
    if len(alternative.steps) > 1:
        yield from _joins(alternative, choices, names_of(alternative))
        yield _condensing(alternative, choices)
    if alternative.groups is not None and choices.condense is not Condense.OFF:
        yield "condense: does not apply to Kleene groups; their elements are already ranges of sorted buffers"


def _joins(alternative: Alternative, choices: PlannerOptions, names: Sequence[str]) -> Iterator[str]:
    if search_by(alternative, choices) is SearchBy.NESTED:
        yield "join tree: left-deep, so that each negation is checked as soon as its neighbors are bound"
        return
    tree = forced_tree(alternative, choices)
    if tree is not None:
        yield f'join tree: {one_line(tree, names)}, as requested by plan="{choices.plan}"'
    elif len(names) == 2 and alternative.is_sequence:
        yield "join tree: left-deep"
    elif alternative.is_sequence and alternative.query.window is not None:
        yield "join tree: the cheapest for the rates and selectivities measured in each slice of the stream;"
        yield "           switches between slices if another tree costs less than 80 % of the current one"
    else:
        yield "join tree: the cheapest for the measured rates and selectivities"
    if alternative.is_sequence and len(names) > 3 and choices.plan in (PlanShape.AUTO, PlanShape.BUSHY):
        match choices.cache:
            case Cache.OFF if choices.plan is PlanShape.AUTO:
                yield "sub-match cache: off, as requested"
            case Cache.ON:
                yield "sub-match cache: on, as requested; the key is the interval"
            case _:
                yield "sub-match cache: used if cheaper than searching again; the key is the interval"


def _condensing(alternative: Alternative, choices: PlannerOptions) -> str:
    search = search_by(alternative, choices)
    if not any(window_bound(p.earlier_side, p.this_side) is None for step in alternative.steps for p in step.compared):
        return "condense: does not apply; no predicate compares two events"
    if choices.condense is Condense.OFF:
        return "condense: off, as requested"
    if search is SearchBy.NESTED:
        return "condense: does not apply; negations are checked during the search, event by event"
    if not alternative.is_sequence:
        return "condense: does not apply to AND, only to SEQ"
    if choices.plan is PlanShape.BUSHY and len(alternative.steps) > 3:
        return "condense: does not apply; this join tree materializes a subplan instead"
    if search is SearchBy.SEQUENCE:
        return 'condense: not for two events; condense="on" forces it'
    if choices.condense is Condense.ON:
        return "condense: on, as requested; events with equal values are compared once"
    return "condense: if comparing events with equal values once saves more than grouping them costs"


def one_line(tree: Tree, names: Sequence[str]) -> str:
    match tree:
        case JoinLeaf(step):
            return names[step]
        case Join(left, right):
            return f"({one_line(left, names)} {one_line(right, names)})"


def draw(tree: Tree, names: Sequence[str], rows: Callable[[tuple[int, ...]], str], indent: str = "") -> Iterator[str]:
    """Yield the tree, one node per line, with the text that `rows` returns for its steps."""
    mark = "join" if isinstance(tree, Join) else names[tree.step]
    yield f"{indent}{mark}  {rows(steps_of(tree))}".rstrip()
    if isinstance(tree, Join):
        block = units_of(tree)[-1]
        for child in (tree.left, tree.right):
            is_cached = child is block and isinstance(child, Join)
            lines = list(draw(child, names, rows, indent + "  "))
            yield lines[0] + "  (cached by interval)" * is_cached
            yield from lines[1:]
