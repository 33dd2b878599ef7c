"""Say in which micro-batch a stream releases each match, as section 4 of language.md specifies: the oracle for when.

Like `naive`, it is brute force: the matches of all events that are not late, and for each match a list of conditions on
the horizon. It imports nothing from the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

import naive
from naive import MATCH, Binding, Bounds, Leaf, Pattern, Query, Row, Scope, Search, Stream, Value
from streamsift.language import syntax as ast

Event = dict[str, Value]
Key = tuple[Value, ...]
Condition = Callable[[int], bool]  # of the number of a micro-batch


@dataclass(frozen=True)
class Promise:
    """What is known about arrival: the lateness, and the columns of `ordered` if it is used (() for `True`)."""

    lateness: Value
    ordered: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Release:
    row: dict[str, object]
    batch: int | None  # None: at the end of the stream


def releases(
    script: ast.Script,
    batches: Sequence[Sequence[Event]],
    promise: Promise,
    *,
    time: str,
    type: str | None = None,
    order: str | None = None,
    columns: Iterable[str],
) -> tuple[list[Release], int]:
    """Return each match with its micro-batch, and the number of late events."""
    arrivals = Arrivals(batches, promise, time, order)
    stream = Stream.of([event for _, event in arrivals.usable], columns, time, type, order)
    query = Query(script, stream)
    found = []
    for tree, match in query_matches(query):
        when = Waiting(query, arrivals, tree, match)
        found.append(Release(query.output(match), when.batch()))
    return found, arrivals.late


def query_matches(query: Query) -> Iterator[tuple[Pattern, Binding]]:
    """Yield every match with its alternative, in which every OR has one operand."""
    everywhere = Bounds(lambda row: True, lambda row: True)
    ends = {row.key for row in query.stream.rows} if is_each(query) else [None]
    for tree in naive.alternatives(query.pattern):
        search = Search(query, tree, MATCH, {}, everywhere)
        for fixed in search.fixed_bindings({}, [leaf for leaf in naive.leaves(tree) if not leaf.grows]):
            for end in ends:
                for match in filter(search.group_aggregates_hold, search.maximal(fixed, end)):
                    yield tree, match


def is_each(query: Query) -> bool:
    return query.statement.emit is not None and query.statement.emit.mode is ast.Emit.EACH


# --- the horizon -------------------------------------------------------------------------------------------------


class Arrivals:
    """Which events are late, when the others arrive, and how far the horizon of each key is in each micro-batch."""

    def __init__(self, batches: Sequence[Sequence[Event]], promise: Promise, time: str, order: str | None) -> None:
        self.promise, self.has_order = promise, order is not None
        self.usable: list[tuple[int, Event]] = []  # with the number of the micro-batch
        self.watermarks: list[Value] = []  # of each micro-batch; None if there is none yet
        self.latest: list[dict[Key, Key]] = []  # of each key, the events of the micro-batch included
        self.late, seen = 0, None
        for number, events in enumerate(batches):
            watermark = None if seen is None else seen - promise.lateness
            before = self.latest[-1] if self.latest else {}
            now = dict(before)
            for event in events:
                moment = (event[time],) if order is None else (event[time], event[order])
                key = self.key(event)
                is_late = watermark is not None and event[time] < watermark
                if is_late or (key is not None and key in before and moment < before[key]):
                    self.late += 1
                    continue
                self.usable.append((number, event))
                if key is not None:
                    now[key] = max(moment, now.get(key, moment))
            self.watermarks.append(watermark)
            self.latest.append(now)
            seen = max([event[time] for event in events] + ([] if seen is None else [seen]), default=None)

    def key(self, event: Mapping[str, Value]) -> Key | None:
        """Return the values that events share which arrive in order; None if nothing is promised."""
        if self.promise.ordered is None:
            return None
        key = tuple(event[column] for column in self.promise.ordered)
        return None if any(map(naive.missing, key)) else key

    def arrived(self, row: Row) -> int:
        return self.usable[row.index][0]

    def _of_key(self, row: Row, batch: int) -> Key | None:
        key = self.key(row.values)
        return None if key is None else self.latest[batch].get(key)

    def reached(self, row: Row, batch: int) -> bool:
        """Return True if no event before this row can arrive after the micro-batch."""
        watermark, latest = self.watermarks[batch], self._of_key(row, batch)
        if latest is not None and latest >= row.key:
            return True
        return watermark is not None and (watermark > row.time if self.has_order else watermark >= row.time)

    def passed(self, row: Row, batch: int) -> bool:
        """Return True if no event up to the time of this row can arrive after the micro-batch."""
        watermark, latest = self.watermarks[batch], self._of_key(row, batch)
        return (latest is not None and latest > row.key) or (watermark is not None and watermark > row.time)

    def closed(self, scope: Scope, keys: tuple[str, ...], start: Row, batch: int) -> bool:
        """Return True if no event in the window that begins at `start` can arrive after the micro-batch."""
        assert scope.window is not None
        if scope.window.length.unit is ast.Unit.EVENT:
            # A stream refuses count windows over different partitions.
            end = scope.position[start] + int(naive.length(scope.window.length)) - 1
            rows = [row for row in scope.position if scope.position[row] == end and row.at(keys) == start.at(keys)]
            return bool(rows) and self.arrived(rows[0]) <= batch and self.passed(rows[0], batch)
        latest = self._of_key(start, batch)
        horizons = [self.watermarks[batch], None if latest is None else latest[0]]
        return any(
            horizon is not None and not naive.fits(scope.window, naive.elapsed(horizon, start.time))
            for horizon in horizons
        )


# --- what a match waits for ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Waiting:
    query: Query
    arrivals: Arrivals
    tree: Pattern
    match: Binding

    def batch(self) -> int | None:
        """Return the first micro-batch in which all events have arrived and the horizon is far enough."""
        rows = naive.rows_of(self.match)
        first = max(map(self.arrivals.arrived, rows))
        conditions = list(self.conditions())
        later = range(first, len(self.arrivals.watermarks))
        return next((batch for batch in later if all(condition(batch) for condition in conditions)), None)

    def conditions(self) -> Iterator[Condition]:
        rows = naive.rows_of(self.match)
        window = self.query.statement.window
        if is_each(self.query) or (window is not None and window.length.unit is ast.Unit.EVENT):
            yield self.passes(rows)
        yield from self.of_negations(self.tree, self.match, [], None)
        if not is_each(self.query):
            for scope in scopes(self.tree):
                if naive.rows_of(self.match, scope):
                    yield self.of_groups(scope)

    def reaches(self, rows: list[Row]) -> Condition:
        first = min(rows, key=lambda row: row.key)
        return lambda batch: self.arrivals.reached(first, batch)

    def passes(self, rows: list[Row]) -> Condition:
        last = max(rows, key=lambda row: row.key)
        return lambda batch: self.arrivals.passed(last, batch)

    def closes(self, scope: Scope, rows: list[Row]) -> Condition:
        first = min(rows, key=lambda row: (row.key, scope.position.get(row, 0)))
        return lambda batch: self.arrivals.closed(scope, self.query.partition, first, batch)

    # --- negations ---
    def of_negations(
        self, node: Pattern, match: Binding, following: list[Row], scope: Scope | None
    ) -> Iterator[Condition]:
        """Yield what the negated components of a node wait for; `following` are the rows after the node, if any."""
        if isinstance(node, Scope) and node.outermost and naive.rows_of(match, node):
            following, scope = [], node
        for index, operand in enumerate(naive.operands(node)):
            after = following
            if isinstance(node, ast.Seq):
                rest = replace(node, operands=node.operands[index + 1 :])
                after = naive.rows_of(match, rest) or following
            if not isinstance(operand, ast.Not):
                yield from self.of_negations(operand, match, after, scope)
                continue
            if after:
                yield self.reaches(after)
            elif scope is not None:
                rows = naive.rows_of(match, scope)
                yield self.passes(rows) if is_open_conjunction(scope) else self.closes(scope, rows)
            yield from self.inside(operand.operand, match, node, index, after, scope)

    def inside(
        self, negated: Pattern, match: Binding, node: Pattern, index: int, after: list[Row], scope: Scope | None
    ) -> Iterator[Condition]:
        """Yield what the sub-matches wait for that forbid the match unless an inner negation forbids them."""
        if scope is None or not any(True for _ in windowed(negated)):
            return
        bounds = naive.edges(scope, match)
        if after:
            first = min(row.key for row in after)
            bounds = Bounds(bounds.lower, lambda row: row.key < first)
        if (before := self.before(negated, match)) is not None:
            bounds = Bounds(lambda row: row.key > before, bounds.upper)
        for tree in naive.alternatives(negated):
            positive = without_negations(tree)
            owner = naive.variables(negated)
            for found in naive.matches(self.query, positive, owner, match, bounds):
                yield from self.of_negations(tree, {**match, **found}, after, None)

    def before(self, negated: Pattern, match: Binding) -> Key | None:
        """Return the end of the nearest positive component before a negated one; None at an edge."""
        return _before(self.tree, negated, match, None)

    # --- groups ---
    def of_groups(self, scope: Scope) -> Condition:
        """Wait for each order of the operands of AND that the match can have."""
        steps = list(kleene_steps(scope))
        orders = [order for order in product((True, False), repeat=len(steps)) if self.fits(steps, order)]
        conditions = [self.of_order(scope, list(zip(steps, order, strict=True))) for order in orders]
        return lambda batch: all(condition(batch) for condition in chain.from_iterable(conditions))

    def fits(self, steps: list[Step], order: tuple[bool, ...]) -> bool:
        """Return True if the match has its operands in this order, as far as they have events."""
        for step, is_forward in zip(steps, order, strict=True):
            sides = [rows_of_all(self.match, side) for side in step]
            first, then = sides if is_forward else reversed(sides)
            if first and then and naive.span(first)[1] >= naive.span(then)[0]:
                return False
        return True

    def of_order(self, scope: Scope, order: list[tuple[Step, bool]]) -> list[Condition]:
        found = []
        for group in naive.leaves(scope):
            if group.grows:
                singles = list(chain.from_iterable(self.match[leaf.variable] for leaf in after(scope, group, order)))
                rows = naive.rows_of(self.match, scope)
                found.append(self.reaches(singles) if singles else self.closes(scope, rows))
        return found


Step = tuple[tuple[Pattern, ...], tuple[Pattern, ...]]  # the operands of AND before a step, and its own


def scopes(node: Pattern) -> Iterator[Scope]:
    """Yield the statement and the definitions with their own WITHIN, outside negations."""
    if isinstance(node, Scope) and node.outermost:
        yield node
    for operand in naive.operands(node):
        if not isinstance(operand, ast.Not):
            yield from scopes(operand)


def windowed(node: Pattern) -> Iterator[Scope]:
    """Yield the definitions with their own WITHIN, also in negations."""
    if isinstance(node, Scope) and node.outermost:
        yield node
    for operand in naive.operands(node):
        yield from windowed(operand)


def is_open_conjunction(scope: Scope) -> bool:
    node: Pattern = scope
    while isinstance(node, Scope | ast.Or):
        (node,) = naive.operands(node)
    return isinstance(node, ast.And)


def without_negations(node: Pattern) -> Pattern:
    match node:
        case Leaf():
            return node
        case Scope(operand=operand):
            return replace(node, operand=without_negations(operand))
    positive = (operand for operand in naive.operands(node) if not isinstance(operand, ast.Not))
    return replace(node, operands=tuple(map(without_negations, positive)))


def rows_of_all(match: Binding, nodes: Iterable[Pattern]) -> list[Row]:
    return [row for node in nodes for row in naive.rows_of(match, node)]


def positive_operands(node: Pattern) -> list[Pattern]:
    return [operand for operand in naive.operands(node) if not isinstance(operand, ast.Not)]


def kleene_steps(node: Pattern) -> Iterator[Step]:
    """Yield the binary steps of AND that are matched in both orders."""
    parts = positive_operands(node)
    if isinstance(node, ast.And):
        for step in range(1, len(parts)):
            if naive.is_kleene(parts[step]) or (step == 1 and naive.is_kleene(parts[0])):
                yield tuple(parts[:step]), (parts[step],)
    for part in parts:
        yield from kleene_steps(part)


def after(node: Pattern, group: Leaf, order: list[tuple[Step, bool]]) -> Iterator[Leaf]:
    """Yield the variables with a fixed number of events that come after a group in this order."""
    parts = positive_operands(node)
    if isinstance(node, ast.Seq):
        own = next((at for at, part in enumerate(parts) if has(part, group)), len(parts))
        for part in parts[own + 1 :]:
            yield from fixed(part)
    for (left, right), is_forward in order:
        if isinstance(node, ast.And) and any(part is right[0] for part in parts):
            first, then = (left, right) if is_forward else (right, left)
            if any(has(part, group) for part in first):
                for part in then:
                    yield from fixed(part)
    for part in parts:
        if has(part, group):
            yield from after(part, group, order)


def has(node: Pattern, leaf: Leaf) -> bool:
    return any(leaf.variable == other.variable for other in naive.leaves(node))


def fixed(node: Pattern) -> Iterator[Leaf]:
    return (leaf for leaf in naive.leaves(node) if not leaf.grows)


def _before(node: Pattern, negated: Pattern, match: Binding, outer: Key | None) -> Key | None:
    """Return the lower bound of a negated component as the end of the component before it; None at an edge."""
    if isinstance(node, Scope) and node.outermost and naive.rows_of(match, node):
        outer = None
    for index, operand in enumerate(naive.operands(node)):
        inner = outer
        if isinstance(node, ast.Seq):
            rows = naive.rows_of(match, replace(node, operands=node.operands[:index]))
            inner = naive.span(rows)[1] if rows else outer
        if isinstance(operand, ast.Not) and operand.operand is negated:
            return inner
        if negated_in(operand, negated):
            return _before(operand, negated, match, inner)
    return outer


def negated_in(node: Pattern, negated: Pattern) -> bool:
    return node is negated or any(negated_in(operand, negated) for operand in naive.operands(node))
