"""Choose how each alternative of a query with AGG is counted, and say why that way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

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
    Pair,
    Strategy,
)

# Estimates, in nanoseconds: one event for each start in the window; one event on the two stacks, per level. Only their
# ratio decides. Timings of the kernels (3 to 8 levels, 20 to 67 starts, a busy machine) had 1.6 to 2.2 and 7 to 16.
SEM_NS_PER_START = 1.0
TWO_STACK_NS_PER_LEVEL = 6.0

MEANING = {
    Strategy.PREFIX: "one counter for each prefix of the pattern; no match is built",
    Strategy.SEM: "start event marking: counters for each start event in the window; no match is built",
    Strategy.TWO_STACK: "the window is a product of linear maps; an event costs the same however many are in it",
    Strategy.PAIRS: "dynamic programming over pairs of neighbouring events; no match is built",
    Strategy.DETECT: "the matches are found, then aggregated in chunks of row numbers",
}


def aggregation(detection: DetectPlan) -> AggregatePlan:
    """The plan of a query with AGG. A strategy that the caller chose must be possible for every alternative."""
    query, chosen_by_caller = detection.query, detection.choices.strategy
    asked = None if chosen_by_caller is CountBy.AUTO else Strategy(chosen_by_caller.value)
    branches: list[Branch] = []
    reasons: list[str] = []
    for number, alternative in enumerate(detection.alternatives, start=1):
        keys = key_columns(query, alternative)
        obstacles = {candidate: _obstacle(query, alternative, keys, candidate) for candidate in Strategy}
        chosen = asked or _cheapest(query, alternative, obstacles)
        if (obstacle := obstacles[chosen]) is not None:
            message = f"strategy {chosen.value!r} cannot count this: {obstacle}"
            hint = f"it can be counted by {', '.join(repr(s.value) for s, why in obstacles.items() if why is None)}."
            raise UnsupportedQuery(message, query.text, query.pattern.span, hint)
        branches.append(Branch(alternative, chosen, keys, asked is None and _may_mark(query, chosen, obstacles)))
        prefix = f"alternative {number}: " if len(detection.alternatives) > 1 else ""
        reasons += [prefix + line for line in _reasons(query, alternative, chosen, asked, obstacles)]
    return AggregatePlan(query, tuple(branches), detection, (*reasons, *_key_reasons(query, branches)))


# --- what each strategy can do -----------------------------------------------------------------------------------


def key_columns(query: b.BoundQuery, alternative: Alternative) -> tuple[str, ...]:
    """The columns that all variables of a match share: events with different values never meet."""
    if alternative.groups is not None:
        return ()
    # All variables share these by definition, also where a constant (`a.id = 1`) has taken the place of equalities.
    asked = (*query.group_by, *query.partition_by)
    found = [column for _, pair in _pairs(alternative) if (column := pair.same_column) not in (None, b.TIME)]
    return tuple(c for c in dict.fromkeys((*asked, *found)) if c in asked or _joins_all(alternative, c))


def adjacent_pairs(alternative: Alternative, keys: tuple[str, ...]) -> list[tuple[int, Pair]]:
    """The comparisons that keys do not cover, with the number of the later step."""
    return [(number, pair) for number, pair in _pairs(alternative) if pair.same_column not in keys]


def is_at_edge(negation: Negation) -> bool:
    """Whether the interval ends at an edge of the window, so that it depends on the match's start and end."""
    return negation.lower.edge is Edge.WINDOW_START or negation.upper.edge is Edge.WINDOW_END


def _is_between_neighbours(negation: Negation, steps: int) -> bool:
    """Whether the interval lies between two neighbouring steps, before the first or after the last."""
    match negation.lower.edge, negation.upper.edge:
        case Edge.AFTER, Edge.BEFORE:
            return negation.upper.steps == (max(negation.lower.steps) + 1,)
        case Edge.WINDOW_START, Edge.BEFORE:
            return negation.upper.steps == (0,)
        case Edge.AFTER, Edge.WINDOW_END:
            return negation.lower.steps == (steps - 1,)
    return False


def _pairs(alternative: Alternative) -> Iterator[tuple[int, Pair]]:
    """All comparisons between events, with the number of the later step; those of negations have their numbers."""
    numbered = [*enumerate(alternative.steps)]
    for negation in alternative.negations:
        numbered += enumerate(negation.steps, start=negation.first)
    for number, step in numbered:
        for pair in step.compared:
            yield number, pair


def _joins_all(alternative: Alternative, column: str) -> bool:
    """Whether equality of the column joins all steps, and every negated one to them."""
    steps = alternative.steps
    joined = all(any(pair.same_column == column for pair in step.compared) for step in steps[1:])
    # A negated event may only be compared with the match's events, never stand between them.
    negated = all(
        any(pair.same_column == column for pair in step.compared) for n in alternative.negations for step in n.steps
    )
    return joined and negated


def _obstacle(query: b.BoundQuery, alternative: Alternative, keys: tuple[str, ...], strategy: Strategy) -> str | None:
    """Why a strategy cannot count this alternative; None if it can."""
    if strategy is Strategy.DETECT:
        return None
    if query.update is not None and query.update.kind is b.WindowKind.COUNT:
        return "UPDATE counts rows, and a tick may fall between rows of equal time"
    if any(True for _ in query.pattern.windowed_definitions()):
        return "a definition has a window of its own"
    if alternative.groups is not None:
        return "a Kleene variable binds a group of events"
    if not alternative.is_sequence:
        return "AND leaves the order of its events open"
    if (composite := next((n for n in alternative.negations if len(n.steps) > 1 or n.negations), None)) is not None:
        return f"the negated `{query.variables[composite.steps[0].variable].name}` is part of a composite pattern"
    if any(not _is_between_neighbours(n, len(alternative.steps)) for n in alternative.negations):
        return "the interval of a negation spans events of the match"
    filters = [f for step in alternative.all_steps() for f in step.filters]
    if filters:
        return f"`{describe_expression(filters[0], query.variables)}` needs the whole match"
    rest = adjacent_pairs(alternative, keys)
    far = next((pair for number, pair in rest if number >= len(alternative.steps) or pair.earlier != number - 1), None)
    if far is not None:
        return f"`{_written(query, far)}` is not between neighbours"
    match strategy:
        case Strategy.PAIRS:
            if not rest:
                return "there is no predicate between neighbours"
            twice = Counter(number for number, pair in rest if pair.op != "=").most_common(1)
            if twice and twice[0][1] > 1:
                return "several comparisons between the same neighbours are no range of one order"
        case _ if rest:
            return f"`{_written(query, rest[0][1])}` compares neighbours"
        case Strategy.PREFIX if query.window is not None:
            return "events leave the window"
        case Strategy.SEM | Strategy.TWO_STACK if query.window is None:
            return "there is no window for anything to leave"
        case Strategy.TWO_STACK if any(map(is_at_edge, alternative.negations)):
            return "a negation at an edge of the window ties each end to its start"
    return None


def _written(query: b.BoundQuery, pair: Pair) -> str:
    earlier, this = (describe_expression(side, query.variables) for side in (pair.earlier_side, pair.this_side))
    return f"{earlier} {pair.op} {this}"


# --- the choice --------------------------------------------------------------------------------------------------


def _cheapest(query: b.BoundQuery, alternative: Alternative, obstacles: dict[Strategy, str | None]) -> Strategy:
    possible = [strategy for strategy in Strategy if obstacles[strategy] is None]
    if Strategy.SEM in possible and Strategy.TWO_STACK in possible:
        few = _sem_cost(query) < _two_stack_cost(alternative)
        return Strategy.SEM if few else Strategy.TWO_STACK
    return possible[0]  # they stand in the order of cost


def _may_mark(query: b.BoundQuery, chosen: Strategy, obstacles: dict[Strategy, str | None]) -> bool:
    """Whether two stacks were chosen only because no one knows how many starts a window holds; for COUNT alone."""
    counts_alone = all(aggregate.function == "COUNT" for aggregate in query.aggregates)
    is_unknown = query.window is not None and query.window.kind is not b.WindowKind.COUNT
    return counts_alone and is_unknown and chosen is Strategy.TWO_STACK and obstacles[Strategy.SEM] is None


def _sem_cost(query: b.BoundQuery) -> float:
    """Nanoseconds for an event: every start event in the window has counters. How many, only a count window tells."""
    window = query.window
    assert window is not None
    return SEM_NS_PER_START * float(window.length) if window.kind is b.WindowKind.COUNT else float("inf")


def _two_stack_cost(alternative: Alternative) -> float:
    return TWO_STACK_NS_PER_LEVEL * len(alternative.steps)


def _reasons(
    query: b.BoundQuery,
    alternative: Alternative,
    chosen: Strategy,
    asked: Strategy | None,
    obstacles: dict[Strategy, str | None],
) -> Iterator[str]:
    yield f"{chosen.value}: {MEANING[chosen]}" + (", as asked" if asked else "")
    for obstacle in dict.fromkeys(why for why in obstacles.values() if why is not None):
        names = ", ".join(strategy.value for strategy, why in obstacles.items() if why == obstacle)
        yield f"not {names}: {obstacle}"
    for strategy in (Strategy.SEM, Strategy.TWO_STACK):
        if obstacles[strategy] is None and {strategy, chosen} == {Strategy.SEM, Strategy.TWO_STACK}:
            sem, stack = _sem_cost(query), _two_stack_cost(alternative)
            known = f"{sem:.0f} ns" if sem < float("inf") else "1 ns for each start event in the window"
            costs = f"sem costs about {known} for an event, two-stack about {stack:.0f} ns"
            is_open = asked is None and _may_mark(query, chosen, obstacles)
            where = (
                f"; it is taken where a window turns out to hold fewer than {stack / SEM_NS_PER_START:.0f}" * is_open
            )
            yield f"not {strategy.value}: {costs}{where}"
    if chosen is not Strategy.DETECT:
        yield "not detect: its cost grows with the number of matches"


def _key_reasons(query: b.BoundQuery, branches: list[Branch]) -> Iterator[str]:
    if not any(branch.strategy is not Strategy.DETECT and branch.keys for branch in branches):
        return
    keys = next(branch.keys for branch in branches if branch.keys)
    yield f"counted apart by {', '.join(keys)}: every variable of a match shares it"
    if set(keys) - set(query.group_by):
        yield "then added up over the keys" + (" of each group" if query.group_by else "")
