"""Events that came and time that passes in, rows of totals without a window out: nothing is kept of an event.

The state is, for each key of a branch, the measures of its prefixes, and for each group its totals so far. What comes
is counted from the prefixes on; its matches are added to the totals of their group. So the events of a batch are the
only ones that are ever looked at.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.physical.count import is_at_edge
from streamsift.physical.plan import AggregatePlan, Alternative, Branch
from streamsift.physical.stream import StreamPlan
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count import (
    BEFORE,
    NO_SEAL,
    NOTHING,
    Groups,
    KeyTotals,
    Layout,
    Loads,
    Measures,
    Paths,
    Records,
    Timeline,
    Totals,
    any_event,
    check_shape,
    continue_prefixes,
    groups_of,
    key_rows,
    keys_of_places,
    lay_out,
    loads_of,
    of_events,
    prepared,
    relevant_stamps,
    result_batch,
    result_rows,
    steady_measures,
    timeline_of,
)
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock, clock_of
from streamsift.runtime.schema import output_schema
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.watermark import Passing, Tick


class RunningTotals:
    """Decides the rows of one plan."""

    follows, nbytes = False, 0

    keys: tuple[str, ...] = ()

    def __init__(self, stream: StreamPlan) -> None:
        plan = stream.plan
        assert isinstance(plan, AggregatePlan)
        self.plan, self.schema = of_events(plan), output_schema(plan.query)
        sizes = self._sizes = steady_measures(self.plan, prepared(self.plan.query, any_event(plan.query)))[0].shape
        self._groups = self._vectors(plan.query.group_by, sizes[0] + sizes[2], sizes[1])
        self._branches = [self._of_branch(branch) for branch in self.plan.branches]

    def _vectors(self, columns: tuple[str, ...], whole: int, real: int) -> KeyedVectors:
        return KeyedVectors(pa.schema([self.plan.query.schema.field(name) for name in columns]), whole, real)

    def _of_branch(self, branch: Branch) -> KeyedVectors:
        inner, (integers, reals, least) = len(branch.alternative.steps) - 1, self._sizes
        return self._vectors(branch.keys, 1 + (integers + least) * inner, reals * inner)

    def decided(self, store: EventStore, arrived: int, passing: Passing) -> pa.Table:
        """The rows that time decides by passing; rows from `arrived` on came in this stretch of it."""
        query, table = self.plan.query, store.events.take(np.arange(arrived - store.first, store.rows))
        if not table.num_rows:
            return self.schema.empty_table()
        events = prepared(self.plan.query, table)
        clock = clock_of(query, events)
        groups = groups_of(query, events, clock)
        measures, decoders = steady_measures(self.plan, events)
        check_shape(measures, self._sizes)
        with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap: the doubles beside them tell
            found = timeline_of(self.plan, events, clock, groups, measures, self._count)
            timeline = self._added_up(events, groups, found)
        rows = result_rows(query, clock, timeline, decoders, lambda: relevant_stamps(self.plan, events, clock))
        if not rows.stamp.size:
            return self.schema.empty_table()
        return pa.Table.from_batches([result_batch(query, self.schema, events, clock, groups, rows, decoders)])

    # --- totals of groups ---
    def _added_up(self, events: Events, groups: Groups, found: Timeline) -> Timeline:
        """What came, on top of what there was; the last of each group is what there is from now on."""
        if not found.group.size:
            return found
        distinct, which = np.unique(found.group, return_inverse=True)
        numbers = self._groups.numbers(key_rows(events, groups.first_place[distinct], self.plan.query.group_by))
        integers, whole = self._sizes[0], self._groups.whole[numbers]
        totals = Totals(
            found.totals.integers + whole[which, :integers],
            found.totals.reals + self._groups.real[numbers][which],
            np.minimum(found.totals.least, whole[which, integers:] ^ NOTHING),
        )
        last = np.append(np.flatnonzero(np.diff(found.group)), found.group.size - 1)
        now = np.hstack([totals.integers[last], totals.least[last] ^ NOTHING])
        self._groups.set(numbers, now, totals.reals[last])
        return replace(found, totals=totals)

    # --- prefixes of keys ---
    def _count(
        self, branch: Branch, events: Events, clock: Clock, groups: Groups, measures: Measures, _: bool
    ) -> KeyTotals:
        """The totals of the matches that end here, from the prefixes that each key has so far."""
        layout, loads = lay_out(branch, events, clock, groups), loads_of(branch, measures)
        first = layout.operations.place[layout.operations.offsets[:-1]]
        of_place = keys_of_places(branch, events, groups)
        keyed = np.flatnonzero(of_place[first] >= 0)  # a single event may be a match without a key
        held = self._branches[self.plan.branches.index(branch)]
        numbers = held.numbers(key_rows(events, first[keyed], branch.keys))
        paths = self._resumed(layout, loads, keyed, held.whole[numbers], held.real[numbers])
        is_closed = np.zeros(first.size, np.bool_)
        is_closed[keyed] = held.whole[numbers, 0] > 0
        records = _records(layout, loads, is_closed, paths)
        held.set(numbers, *self._suspended(layout, paths, keyed, is_closed))
        self._close(branch, events, of_place, held)
        totals = Totals(records.integers, records.reals, records.least)
        return KeyTotals(records.key, layout.group[records.key], records.stamp, records.ends, totals)

    def _resumed(self, layout: Layout, loads: Loads, keyed: Int64, whole: Int64, real: np.ndarray) -> Paths:
        """The paths of each key: the empty one, and those to all levels but the last, of which only new ones count."""
        keys, levels = layout.operations.offsets.size - 1, layout.levels
        integers, reals, least = self._sizes
        paths = Paths(
            np.zeros((keys, integers, levels + 1), np.int64),
            np.zeros((keys, reals, levels + 1), np.float64),
            np.full((keys, least, levels + 1), NOTHING, np.int64),
        )
        paths.integers[:, 0, 0], paths.reals[:, 0, 0], paths.least[:, :, 0] = 1, 1.0, BEFORE
        inner = levels - 1
        split = 1 + integers * inner
        paths.integers[keyed, :, 1:levels] = whole[:, 1:split].reshape(keyed.size, integers, inner)
        paths.reals[keyed, :, 1:levels] = real.reshape(keyed.size, reals, inner)
        paths.least[keyed, :, 1:levels] = whole[:, split:].reshape(keyed.size, least, inner) ^ NOTHING
        return paths

    @staticmethod
    def _suspended(layout: Layout, paths: Paths, keyed: Int64, is_closed: Bool) -> tuple[Int64, np.ndarray]:
        inner = slice(1, layout.levels)

        def flat(block: np.ndarray) -> np.ndarray:
            part = block[keyed][:, :, inner]
            return part.reshape(keyed.size, part.shape[1] * part.shape[2])

        whole = [is_closed[keyed, None].astype(np.int64), flat(paths.integers), flat(paths.least) ^ NOTHING]
        return np.hstack(whole), flat(paths.reals)

    @staticmethod
    def _close(branch: Branch, events: Events, of_place: Int32, held: KeyedVectors) -> None:
        """Keys in which a negated event came that nothing may follow: without a window, no match begins any more."""
        alternative = branch.alternative
        steps = tuple(n.steps[0] for n in alternative.negations if is_at_edge(n))
        if not steps:
            return
        places = np.concatenate(candidates(Alternative(alternative.query, steps, ()), events))
        places = places[of_place[places] >= 0]
        _, first = np.unique(of_place[places], return_index=True)
        numbers = held.numbers(key_rows(events, places[first], branch.keys))
        whole = held.whole[numbers]
        whole[:, 0] = 1
        held.set(numbers, whole, held.real[numbers])

    # --- what must be held and written ---
    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        return store.first + store.rows

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        return None

    def state(self) -> dict[str, KeyedVectors]:
        return {"groups": self._groups, **{f"branch {i}": held for i, held in enumerate(self._branches)}}


def _records(layout: Layout, loads: Loads, is_closed: Bool, paths: Paths) -> Records:
    room = int((layout.operations.seal != NO_SEAL).sum())
    out = Records.room(room, loads)
    written = continue_prefixes(layout.operations, layout.levels, loads, is_closed, paths, out)
    return out.written(written, loads)
