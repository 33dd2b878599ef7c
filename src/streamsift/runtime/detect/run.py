"""Run a detection plan over events and return matches, as places or as record batches.

Contract: memory is bounded by the events, one chunk of partial matches per stage and the blocks of one slice, whatever
the number of matches (tests/runtime/detect/test_detect.py). The order of matches depends on the plan. The events are
the only state: everything else can be rebuilt from them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import Alternative, DetectPlan, PlannerOptions, SearchBy, search_by
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.detect.adaptive import AdaptiveSearch, SearchMemory
from streamsift.runtime.detect.sequences import SequenceSearch
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.owned import EVERYTHING, Owned
from streamsift.runtime.groups import GroupSearch
from streamsift.runtime.matches import GroupMatches, determined_columns, match_schema, most_matches, result_batches
from streamsift.runtime.negation import NestedSearch
from streamsift.runtime.resources import add_to_match_count, current_progress

CHUNK_MATCHES = 1 << 17
FEW_ANCHORS = 1 << 10
DEFAULTS = PlannerOptions()


def detect(
    plan: DetectPlan, events: Events, limit: int | None = None, owned: Owned = EVERYTHING
) -> Iterator[pa.RecordBatch]:
    """Yield the matches as batches of result rows; with a `limit`, the caller reads at most that many rows."""
    schema, most = match_schema(plan.query), most_matches(plan.query, events)
    if limit is not None:
        most = min(most, limit)
    for number, alternative in enumerate(plan.alternatives):
        if (tracker := current_progress()) is not None:
            tracker.begin(number, len(plan.alternatives))
        columns = determined_columns(alternative)
        for matches in find_matches(alternative, events, plan.choices, limit):
            if owned.rows is not None:
                matches = _owned(matches, events, owned.rows, owned.steps[number] if owned.steps else None)
            add_to_match_count(len(matches))
            for begin in range(0, len(matches), most):
                part = matches.only(slice(begin, begin + most))
                yield from result_batches(alternative, schema, events, part, columns)


def _owned(matches: GroupMatches, events: Events, is_owned: Bool, owner: int | None) -> GroupMatches:
    """Return the matches whose event of step `owner` (None: whose first event) is in an owned row."""
    if owner is None:
        places = matches.events()
        # Among equal ranks, the first step decides: every task chooses the same event, whatever its input order.
        owning = places[events.rank[places].argmin(axis=0), np.arange(len(matches))]
    else:
        owning = matches.singles[owner]
    return matches.only(is_owned[events.rows_at(owning)])


def find_matches(
    plan: Alternative,
    events: Events,
    choices: PlannerOptions = DEFAULTS,
    limit: int | None = None,
    memory: SearchMemory | None = None,
) -> Iterator[GroupMatches]:
    """Yield the matches of an alternative, with or without Kleene groups, in chunks.

    `memory` is what earlier searches of the same alternative found out.
    """
    if plan.groups is not None:
        return group_matches(plan, events, choices, limit, memory)
    return map(GroupMatches.of_places, _tracked(match_places(plan, events, choices, limit, memory), events))


def group_matches(
    plan: Alternative,
    events: Events,
    choices: PlannerOptions = DEFAULTS,
    limit: int | None = None,
    memory: SearchMemory | None = None,
) -> Iterator[GroupMatches]:
    """Yield the matches of an alternative with Kleene variables, in chunks: find single events, then add groups."""
    assert plan.groups is not None
    search = GroupSearch(plan.query, plan.groups, events, CHUNK_MATCHES, choices.cache)
    if not plan.steps:
        return search.matches([np.empty((0, 1), np.int32)])  # only groups: one anchor without single events
    # Some anchors have no groups, so find a few more anchors than the limit; they cost little.
    most = None if limit is None else max(limit, FEW_ANCHORS)
    return search.matches(_tracked(match_places(plan, events, choices, most, memory), events))


def _tracked(chunks: Iterator[Int32], events: Events) -> Iterator[Int32]:
    """Yield the chunks, and report progress, estimated from the first events of matches."""
    tracker = current_progress()
    for places in chunks:
        if tracker is not None:
            tracker.update(int(places[0].max(initial=0)), events.rank.size)
        yield places


def match_places(
    plan: Alternative,
    events: Events,
    choices: PlannerOptions = DEFAULTS,
    limit: int | None = None,
    memory: SearchMemory | None = None,
) -> Iterator[Int32]:
    """Yield chunks [steps, m] of the place that each step binds; with a `limit`, at most that many at a time."""
    pending: list[Int32] = []
    enough = CHUNK_MATCHES if limit is None else min(limit, CHUNK_MATCHES)
    for places in _chunks(plan, events, choices, enough, memory):
        pending.append(places)
        # Filters may leave few matches in a chunk: combine such chunks, because each batch has a fixed cost. Copying
        # costs too, so a chunk that is large enough is passed on alone.
        if sum(part.shape[1] for part in pending) >= min(enough, CHUNK_MATCHES // (2 if len(pending) > 1 else 8)):
            yield pending[0] if len(pending) == 1 else np.concatenate(pending, axis=1)
            pending = []
    if pending:
        yield pending[0] if len(pending) == 1 else np.concatenate(pending, axis=1)


def _chunks(
    plan: Alternative, events: Events, choices: PlannerOptions, enough: int, memory: SearchMemory | None
) -> Iterator[Int32]:
    """Yield chunks of matches from the search that the plan names."""
    by, chunk = search_by(plan, choices), CHUNK_MATCHES
    if by is SearchBy.NESTED:
        # Copy each chunk: it is a view of memory that the next chunk overwrites.
        yield from (matches.copy() for matches in NestedSearch(plan, events, chunk, choices.cache, enough).matches())
        return
    places = candidates(Alternative(plan.query, plan.steps, ()), events)
    if events.width < 0 or not all(part.size for part in places):
        return
    if by is SearchBy.SEQUENCE:
        yield from SequenceSearch(plan, events, places, chunk, enough).matches(0, events.rank.size)
    elif plan.negations:
        forbidden = NestedSearch(plan, events, chunk, choices.cache).forbidden
        yield from AdaptiveSearch(plan, events, places, choices, chunk, forbidden=forbidden).sharing(memory).matches()
    else:
        search = AdaptiveSearch(plan, events, places, choices, chunk, enough, counts_rows=False)
        yield from search.sharing(memory).matches()
