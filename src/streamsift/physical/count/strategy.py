"""Choose how each alternative of a query with AGG is counted, and give the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf

from streamsift.errors import UnsupportedQuery
from streamsift.logical import bound as b
from streamsift.logical.describe import describe_expression
from streamsift.physical.plan import (
    AggregatePlan,
    Alternative,
    Branch,
    CountBy,
    DetectPlan,
    Edge,
    Negation,
    Strategy,
)

# Estimated cost of an event: per start event in the window, and per level of the two stacks. Only the ratio matters.
# Timings of the kernels (3 to 8 levels, 20 to 67 starts, a busy machine) gave 1.6 to 2.2 and 7 to 16.
SEM_NS_PER_START = 1.0
TWO_STACK_NS_PER_LEVEL = 6.0

MEANING = {
    Strategy.PREFIX: "one counter per prefix of the pattern; no match is materialized",
    Strategy.SEM: "start event marking; counters per start event in the window; no match is materialized",
    Strategy.TWO_STACK: "the window is a product of linear maps; the cost per event does not depend on the window size",
    Strategy.PAIRS: "dynamic programming over pairs of adjacent events; no match is materialized",
    Strategy.DETECT: "matches are found, then aggregated in chunks of row numbers",
}
Obstacles = dict[Strategy, str | None]  # why each strategy does not apply to an alternative; None if it applies


def aggregation(detection: DetectPlan) -> AggregatePlan:
    """Plan a query with AGG. A requested strategy must apply to every alternative."""
    query, requested = detection.query, detection.choices.strategy
    branches: list[Branch] = []
    reasons: list[str] = []
    for number, alternative in enumerate(detection.alternatives, start=1):
        # All variables share these columns, even if a constant (`a.id = 1`) has replaced the equalities.
        columns = (*query.group_by, *query.partition_by, *alternative.joining_columns())
        keys = tuple(dict.fromkeys(c for c in columns if c != b.TIME)) if alternative.groups is None else ()
        obstacles = {candidate: _obstacle(query, alternative, keys, candidate) for candidate in Strategy}
        is_open = requested is CountBy.AUTO
        chosen = _cheapest(query, alternative, obstacles) if is_open else Strategy(requested.value)
        if (obstacle := obstacles[chosen]) is not None:
            message = f'strategy="{chosen.value}" does not apply: {obstacle}'
            others = (f'"{strategy.value}"' for strategy, why in obstacles.items() if why is None)
            hint = f"use {' or '.join(others)}."
            raise UnsupportedQuery(message, query.text, query.pattern.span, hint)
        branch = Branch(alternative, chosen, keys, is_open and _may_mark(query, chosen, obstacles))
        branches.append(branch)
        prefix = f"alternative {number}: " if len(detection.alternatives) > 1 else ""
        reasons += [prefix + line for line in _reasons(query, branch, obstacles, "; as requested" * (not is_open))]
    return AggregatePlan(detection, tuple(branches), (*reasons, *_key_reasons(query, branches)))


# --- which strategies apply -----------------------------------------------------------------------------------


def is_at_edge(negation: Negation) -> bool:
    """Return True if a window bounds the interval, so that it depends on the start and end of the match."""
    return negation.lower.edge is Edge.WINDOW_START or negation.upper.edge is Edge.WINDOW_END


def _is_between_neighbors(negation: Negation, steps: int) -> bool:
    """Return True if the interval lies between two adjacent steps, before the first or after the last."""
    match negation.lower.edge, negation.upper.edge:
        case Edge.AFTER, Edge.BEFORE:
            return negation.upper.steps == (max(negation.lower.steps) + 1,)
        case Edge.WINDOW_START, Edge.BEFORE:
            return negation.upper.steps == (0,)
        case Edge.AFTER, Edge.WINDOW_END:
            return negation.lower.steps == (steps - 1,)
    return False


def _obstacle(query: b.BoundQuery, alternative: Alternative, keys: tuple[str, ...], strategy: Strategy) -> str | None:
    """Return why a strategy does not apply to this alternative; None if it applies."""
    if strategy is Strategy.DETECT:
        return None
    if query.update is not None and query.update.kind is b.WindowKind.COUNT:
        return "UPDATE counts rows, and a tick can fall between rows with equal times"
    if query.pattern.windowed_definitions():
        return "a definition has its own window"
    if alternative.groups is not None:
        return "a Kleene variable binds a group of events"
    if not alternative.is_sequence:
        return "AND does not fix the order of its events"
    if (composite := next((n for n in alternative.negations if len(n.steps) > 1 or n.negations), None)) is not None:
        return f"the negated sub-pattern of `{query.variables[composite.steps[0].variable].name}` is not a single event"
    if not all(_is_between_neighbors(n, len(alternative.steps)) for n in alternative.negations):
        return "the interval of a negation spans other events of the match"
    if filters := [f for step in alternative.all_steps() for f in step.filters]:
        return f"`{describe_expression(filters[0], query.variables)}` needs the whole match"
    pairs = alternative.pairs_beyond(keys)
    for number, pair in pairs:
        if number >= len(alternative.steps) or pair.earlier != number - 1:
            return f"`{pair.describe(query.variables)}` does not compare adjacent events of the pattern"
    match strategy:
        case Strategy.PAIRS if not pairs:
            return "no predicate compares adjacent events of the pattern"
        case Strategy.PAIRS:
            ranges = Counter(number for number, pair in pairs if pair.op != "=")
            if any(count > 1 for count in ranges.values()):
                return "several comparisons between the same two events do not form one range of a sort order"
        case _ if pairs:
            return f"`{pairs[0][1].describe(query.variables)}` compares adjacent events of the pattern"
        case Strategy.PREFIX if query.window is not None:
            return "WITHIN makes events expire, and prefix counters only grow"
        case Strategy.SEM | Strategy.TWO_STACK if query.window is None:
            return "the query has no window"
        case Strategy.TWO_STACK if any(map(is_at_edge, alternative.negations)):
            return "a leading or trailing negation depends on both the start and the end of a match"
    return None


# --- the choice --------------------------------------------------------------------------------------------------


def _costs(query: b.BoundQuery, alternative: Alternative) -> tuple[float, float]:
    """Return the nanoseconds per event of SEM (infinite without a count window) and of two stacks."""
    starts = float(query.window.length) if query.window is not None and query.has_count_window else inf
    return SEM_NS_PER_START * starts, TWO_STACK_NS_PER_LEVEL * len(alternative.steps)


def _cheapest(query: b.BoundQuery, alternative: Alternative, obstacles: Obstacles) -> Strategy:
    possible = [strategy for strategy in Strategy if obstacles[strategy] is None]
    if Strategy.SEM in possible and Strategy.TWO_STACK in possible:
        sem, two_stack = _costs(query, alternative)
        return Strategy.SEM if sem < two_stack else Strategy.TWO_STACK
    return possible[0]  # Strategy lists them by cost


def _may_mark(query: b.BoundQuery, chosen: Strategy, obstacles: Obstacles) -> bool:
    """Return True if two-stack was chosen because the number of start events is unknown; only for COUNT."""
    counts_alone = all(aggregate.function == "COUNT" for aggregate in query.aggregates)
    is_unknown = chosen is Strategy.TWO_STACK and obstacles[Strategy.SEM] is None and not query.has_count_window
    return counts_alone and is_unknown


def _reasons(query: b.BoundQuery, branch: Branch, obstacles: Obstacles, as_requested: str) -> Iterator[str]:
    chosen = branch.strategy
    yield f"{chosen.value}: {MEANING[chosen]}{as_requested}"
    for obstacle in dict.fromkeys(why for why in obstacles.values() if why is not None):
        names = ", ".join(strategy.value for strategy, why in obstacles.items() if why == obstacle)
        yield f"not {names}: {obstacle}"
    other = {Strategy.SEM: Strategy.TWO_STACK, Strategy.TWO_STACK: Strategy.SEM}.get(chosen)
    if other is not None and obstacles[other] is None:
        sem, stack = _costs(query, branch.alternative)
        per_start = f"{SEM_NS_PER_START:.0f} ns per event for each start event in the window"
        costs = {
            Strategy.SEM: f"about {sem:.0f} ns per event" if sem < inf else f"about {per_start}",
            Strategy.TWO_STACK: f"about {stack:.0f} ns per event",
        }
        starts = f"a window holds fewer than {stack / SEM_NS_PER_START:.0f} start events"
        switch = f"; switches to sem at run time if {starts}" * branch.may_mark
        yield f"not {other.value}: {costs[other]}; {chosen.value} costs {costs[chosen]}{switch}"
    if chosen is not Strategy.DETECT:
        yield "not detect: its cost grows with the number of matches"


def _key_reasons(query: b.BoundQuery, branches: list[Branch]) -> Iterator[str]:
    if any(branch.strategy is not Strategy.DETECT and branch.keys for branch in branches):
        keys = next(branch.keys for branch in branches if branch.keys)
        yield f"counters per {', '.join(keys)}: equal in all events of a match"
        if set(keys) - set(query.group_by):
            yield "counters are summed over the keys" + (" of each group" if query.group_by else "")
