"""A detection plan and events in, the matches out: as rows of the table, or as record batches of the result.

Contract: memory is bounded by the events, one chunk of partial matches per stage and the blocks of one slice, whatever
the number of matches (tests/runtime/detect/test_detect.py). The order of matches is that of the plan. The state is the events
alone: what a stage holds can be rebuilt from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import Expr
from streamsift.physical.plan import Alternative, Condense, DetectPlan, PlannerOptions, PlanShape
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.arrays.grouping import entries_from
from streamsift.runtime.detect.adaptive import AdaptiveSearch
from streamsift.runtime.detect.sequence_kernel import CURSOR_FIELDS, DONE, extend
from streamsift.runtime.detect.sequence_packing import Packed, pack
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.owned import EVERYTHING, Owned
from streamsift.runtime.groups import GroupSearch
from streamsift.runtime.matches import (
    GroupMatches,
    Stage,
    first_and_last,
    group_batches,
    known_columns,
    match_schema,
    most_matches,
    passing,
    result_batches,
)
from streamsift.runtime.negation import NestedSearch
from streamsift.runtime.resources import found_matches, watch

CHUNK_MATCHES = 1 << 17
FEW_ANCHORS = 1 << 10
DEFAULTS = PlannerOptions()


def detect(
    plan: DetectPlan, events: Events, limit: int | None = None, owned: Owned = EVERYTHING
) -> Iterator[pa.RecordBatch]:
    """The matches as result rows, in batches; with a `limit` the caller wants so many, and stops then."""
    schema, most = match_schema(plan.query), most_matches(plan.query, events)
    if limit is not None:
        most = min(most, limit)
    for number, alternative in enumerate(plan.alternatives):
        if (watched := watch()) is not None:
            watched.begin(number, len(plan.alternatives))
        owner = owned.steps[number] if owned.steps else None
        if alternative.groups is not None:
            for found in group_matches(alternative, events, plan.choices, limit=limit):
                if owned.rows is not None:
                    place = found.events().min(axis=0) if owner is None else found.singles[owner]
                    found = found.only(owned.rows[events.rows_at(place)])
                found_matches(len(found))
                for begin in range(0, len(found), most):
                    yield from group_batches(alternative, schema, events, found.only(slice(begin, begin + most)))
            continue
        known = known_columns(alternative)
        for rows in _told(match_rows(alternative, events, plan.choices, limit=limit), events):
            if owned.rows is not None:
                rows = rows[:, owned.rows[_owning(alternative, events, rows, owner)]]
            found_matches(rows.shape[1])
            for begin in range(0, rows.shape[1], most):
                yield from result_batches(alternative, schema, events, known, rows[:, begin : begin + most])


def _told(chunks: Iterator[Int32], events: Events) -> Iterator[Int32]:
    """The chunks, while a watch is told how far the search has come: about as far as the first events of matches."""
    watched = watch()
    if watched is None:
        yield from chunks
        return
    place_of = _places_of_rows(events)
    for rows in chunks:
        watched.reached(int(place_of[rows[0]].max()), events.rank.size)
        yield rows


def _owning(alternative: Alternative, events: Events, rows: Int32, owner: int | None) -> Int32:
    """For each match the row that tells whose it is."""
    if owner is None and not alternative.is_sequence:
        return first_and_last(events, rows)[0]
    return rows[owner or 0]


def group_matches(
    plan: Alternative,
    events: Events,
    choices: PlannerOptions = DEFAULTS,
    chunk: int | None = None,
    limit: int | None = None,
) -> Iterator[GroupMatches]:
    """The matches of an alternative with Kleene variables, in chunks: single events first, then their groups."""
    assert plan.groups is not None
    chunk = chunk or CHUNK_MATCHES
    search = GroupSearch(plan.query, plan.groups, events, chunk, choices.cache)
    # Single events may have no groups: a few more of them than matches are wanted cost little.
    return search.matches(_anchors(plan, events, choices, chunk, None if limit is None else max(limit, FEW_ANCHORS)))


def _anchors(
    plan: Alternative, events: Events, choices: PlannerOptions, chunk: int, limit: int | None = None
) -> Iterator[Int32]:
    """The places of the single events; one match of none where there are only groups."""
    if not plan.steps:
        yield np.empty((0, 1), np.int32)
        return
    place_of = _places_of_rows(events)
    for rows in _told(match_rows(plan, events, choices, chunk, limit), events):
        yield place_of[rows]


def _places_of_rows(events: Events) -> Int32:
    """By table row; what is at rows that are no events is never read."""
    places = np.empty(events.columns.table.num_rows, np.int32)
    places[events.rows] = np.arange(events.rows.size, dtype=np.int32)
    return places


def match_rows(
    plan: Alternative,
    events: Events,
    choices: PlannerOptions = DEFAULTS,
    chunk: int | None = None,
    limit: int | None = None,
) -> Iterator[Int32]:
    """The matches in chunks [steps, m]: the table row that each step binds.

    With a `limit` the caller wants so many: the search looks for no more than that at a time.
    """
    waiting: list[Int32] = []
    chunk = chunk or CHUNK_MATCHES
    enough = chunk if limit is None else min(limit, chunk)
    for rows in _chunks(plan, events, choices, chunk, enough):
        waiting.append(rows)
        # Filters may leave few matches of a chunk: gather them, as every batch has its price; so has a copy.
        if sum(part.shape[1] for part in waiting) >= min(enough, chunk // (2 if len(waiting) > 1 else 8)):
            yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting, axis=1)
            waiting = []
    if waiting:
        yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting, axis=1)


def _chunks(plan: Alternative, events: Events, choices: PlannerOptions, chunk: int, enough: int) -> Iterator[Int32]:
    """Negations are tested by the search inside intervals; positive patterns are found by trees of joins.

    The tree that looks ahead from the first event has a search of its own, for plain sequences.
    """
    if plan.negations and choices.plan in (PlanShape.AUTO, PlanShape.LEFT):
        for found in NestedSearch(plan, events, chunk, choices.cache, enough).matches():
            yield events.rows[found]
        return
    places = candidates(Alternative(plan.query, plan.steps, ()), events)
    if events.width < 0 or not all(part.size for part in places):
        return
    if plan.negations:
        nested = NestedSearch(plan, events, chunk, choices.cache)
        yield from AdaptiveSearch(plan, events, places, choices, chunk, chunk, allowed=nested.allowed).matches()
    elif not plan.is_sequence:
        yield from AdaptiveSearch(plan, events, places, choices, chunk, enough).matches()
    else:

        @cache  # made when it is asked for: other trees, and condensed ones, have buffers of their own
        def search() -> Search:
            return Search(plan, events, pack(plan, events, places), places[0], chunk, enough)

        is_pair = choices.plan is PlanShape.AUTO and len(plan.steps) < 3 and choices.condense is not Condense.ON
        if is_pair or (choices.plan is PlanShape.LEFT and choices.condense is Condense.OFF):
            yield from search().matches(0, events.rank.size)
        else:
            left = lambda *part: search().matches(*part)  # noqa: E731
            yield from AdaptiveSearch(plan, events, places, choices, chunk, enough, left=left).matches()


def stages(plan: Alternative) -> list[Stage]:
    """The steps cut after every one with filters. The first stage is step 0 alone: its entries are partial matches."""
    found = [Stage(0, 0, plan.steps[0].filters)]
    first = 1
    for number, step in enumerate(plan.steps):
        if number >= 1 and (step.filters or number == len(plan.steps) - 1):
            found.append(Stage(first, number, step.filters))
            first = number + 1
    return found


@dataclass(frozen=True, slots=True)
class Search:
    """One run of a plan over packed events."""

    plan: Alternative
    events: Events
    packed: Packed
    first_places: Int32  # of the candidates of the first step
    chunk: int  # partial matches that are worked on at a time
    enough: int = CHUNK_MATCHES  # matches that are looked for at a time

    def matches(self, low: int, high: int) -> Iterator[Int32]:
        """Table rows [steps, m] of the matches that start at places [low, high), chunk by chunk."""
        first, *rest = stages(self.plan)
        starts = np.arange(*entries_from(self.first_places, [low, high]), dtype=np.int32)[None, :]
        size = self.chunk if first.filters or not rest else max(1, starts.shape[1])
        for begin in range(0, starts.shape[1], size):
            entries = starts[:, begin : begin + size]
            rows = self._rows(entries)
            keep = self._passing(first.filters, rows)
            if rest:
                yield from self._extended(rest, entries if keep is None else entries[:, keep])
            else:
                yield rows if keep is None else rows[:, keep]

    def _extended(self, rest: Sequence[Stage], partials: Int32) -> Iterator[Int32]:
        """The partial matches (entries) extended by the remaining stages to matches (rows), depth first over chunks."""
        stage, *later = rest
        match = np.zeros(stage.last + 1, np.int32)
        ranges = np.zeros((stage.last + 1, 2), np.int64)
        cursor = np.zeros(CURSOR_FIELDS, np.int64)
        partials = np.ascontiguousarray(partials)
        size = self.chunk if stage.filters or later else self.enough
        while not cursor[DONE]:
            out = np.empty((stage.last + 1, size), np.int32)
            count = extend(
                self.packed.buffers, partials, stage.first, stage.last, not later, cursor, match, ranges, out
            )
            found = out[:, :count]
            keep = self._passing(stage.filters, self._rows(found) if later else found)
            found = found if keep is None else found[:, keep]
            if later and found.shape[1]:
                yield from self._extended(later, found)
            elif found.shape[1]:
                yield found

    def _rows(self, entries: Int32) -> Int32:
        """The table rows of entries [steps so far, m]."""
        return np.stack([self.packed.rows[step][numbers] for step, numbers in enumerate(entries)])

    def _passing(self, filters: Sequence[Expr], rows: Int32) -> Bool | None:
        """Where every filter is true of the rows that are bound; None if there is none."""
        return passing(self.plan, self.events, filters, rows) if filters else None
