"""Draw a pattern as a tree in SVG, with each predicate at the lowest node that contains all of its variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from streamsift.language.printer import print_quantifier
from streamsift.logical import bound as b
from streamsift.logical.describe import OPERATOR_NAMES

CHARACTER_PX, LINE_PX, PADDING_PX = 6.7, 15, 8
GAP_PX, LEVEL_PX, MARGIN_PX = 14, 26, 6
MAX_CHARACTERS = 44  # of a line; the tooltip has the rest
FILL = {"event": "#eef5fb", "operator": "#f6f6f6", "not": "#fdeee6"}
STROKE = {"event": "#0072b2", "operator": "#888888", "not": "#d55e00"}


@dataclass(slots=True)
class Box:
    """A node with its upper left corner at `x` and `y`."""

    kind: str  # event, operator, not: how it is colored
    lines: list[str]
    variables: frozenset[int]
    children: list[Box] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(min(len(line), MAX_CHARACTERS) for line in self.lines) * CHARACTER_PX + 2 * PADDING_PX

    @property
    def height(self) -> float:
        return len(self.lines) * LINE_PX + PADDING_PX

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def all(self) -> Iterator[Box]:
        yield self
        for child in self.children:
            yield from child.all()


def plan_svg(query: b.BoundQuery, title: str = "") -> str:
    """Return the tree as SVG; `title`, such as the strategy, is a line of the root."""
    root = _box(query, query.pattern)
    for text, variables in _conditions(query):
        _lowest(root, variables).lines.append(text)
    window = f"within {query.window.text}" if query.window else "no window"
    root.lines[1:1] = [line for line in (title, window) if line]
    width = _place(root, MARGIN_PX, MARGIN_PX)
    height = max(box.y + box.height for box in root.all()) + MARGIN_PX
    parts = [*_edges(root), *(part for box in root.all() for part in _drawn(box))]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + MARGIN_PX:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width + MARGIN_PX:.0f} {height:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="11">{"".join(parts)}</svg>'
    )


def _conditions(query: b.BoundQuery) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield conditions with their variables; the equalities of one column, as in `[column]`, are one condition."""
    equal: dict[str, set[int]] = {}
    others: dict[str, frozenset[int]] = {}
    for predicate in query.predicates:
        match predicate.expression:
            case b.Operation(op="=", operands=(b.Column(name=left), b.Column(name=right))) if left == right:
                equal.setdefault(left, set()).update(predicate.variables)
            case _:
                others[predicate.text] = frozenset(predicate.variables)
    for name, variables in equal.items():
        is_all = len(variables) == len(query.variables)
        chain = " = ".join(f"{query.variables[v].name}.{name}" for v in sorted(variables))
        yield f"[{name}]" if is_all else chain, frozenset(variables)
    yield from others.items()


def _box(query: b.BoundQuery, node: b.Node) -> Box:
    match node:
        case b.Leaf():
            variable = query.variables[node.variable]
            name = variable.event_class.name
            title = name + print_quantifier(variable.quantifier)
            title = title if variable.name == name else f"{title} {variable.name}"
            return Box("event", [title], frozenset({node.variable}))
        case b.Negated():
            child = _box(query, node.child)
            return Box("not", ["NOT"], child.variables, [child])
        case b.SubPattern():
            child = _box(query, node.child)
            child.lines[0] = f"{node.name} = {child.lines[0]}"
            return child
        case _:
            children = [_box(query, child) for child in node.children]
            variables = frozenset[int]().union(*(child.variables for child in children))
            return Box("operator", [OPERATOR_NAMES[type(node)]], variables, children)


def _lowest(box: Box, variables: frozenset[int]) -> Box:
    for child in box.children:
        if variables and variables <= child.variables:
            return _lowest(child, variables)
    return box


def _place(box: Box, x: float, y: float) -> float:
    """Place a box and its descendants from (x, y) to the right and down; return the x of the next free position."""
    box.x, box.y = x, y
    if not box.children:
        return x + box.width
    end = x
    for child in box.children:
        end = _place(child, end, y + box.height + LEVEL_PX) + GAP_PX
    end -= GAP_PX
    box.x = max(x, (box.children[0].middle + box.children[-1].middle - box.width) / 2)
    spare = box.x + box.width - end
    if spare > 0 and box.x == x:  # wider than its children: center them
        for inner in (inner for child in box.children for inner in child.all()):
            inner.x += spare / 2
    return max(end, box.x + box.width)


def _edges(box: Box) -> Iterator[str]:
    for child in box.children:
        yield (
            f'<path d="M{box.middle:.1f},{box.y + box.height:.1f} V{child.y - LEVEL_PX / 2:.1f} '
            f'H{child.middle:.1f} V{child.y:.1f}" fill="none" stroke="#aaaaaa"/>'
        )
        yield from _edges(child)


def _drawn(box: Box) -> Iterator[str]:
    dashes = ' stroke-dasharray="4 3"' if box.kind == "not" else ""
    yield (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="4" '
        f'fill="{FILL[box.kind]}" stroke="{STROKE[box.kind]}"{dashes}/>'
    )
    for number, line in enumerate(box.lines):
        shown = line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"
        weight = ' font-weight="bold"' if number == 0 else ' fill="#444444"'
        yield (
            f'<text x="{box.middle:.1f}" y="{box.y + PADDING_PX / 2 + (number + 0.75) * LINE_PX:.1f}" '
            f'text-anchor="middle"{weight}>{escape(shown)}<title>{escape(line)}</title></text>'
        )
