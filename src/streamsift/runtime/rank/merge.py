"""Merge the components of a pattern, which are ranked separately, into the matches that can be among the k best.

This is the top-k merge of the CPR thesis (sections 3.3 and 3.4). `merge_kernel` reads the components' matches in the
order of its schedule, and requests more of them. A component with a linear score is read as best paths
(`paths/sorted_access.py`), a monotone one with a rank join. When the window moves, joined matches inside it are kept,
and paths that were read before are joined only with new paths (dTMM).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from streamsift.logical.bound import Expr
from streamsift.physical.detect import PLACE
from streamsift.physical.plan import JoinPlan, MergePlan, RankPlan
from streamsift.physical.rank import MAX_PATHS
from streamsift.runtime.arrays.comparing import GREATER_EQUAL, LESS, OPERATORS, UNEQUAL
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64
from streamsift.runtime.events.candidates import candidates, step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks, ticks_of
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.paths import SLACK, GaveUp, Reserve, TickMatches, path_component, tick_windows
from streamsift.runtime.rank.join import RankJoin
from streamsift.runtime.rank.merge_kernel import DONE, GAVE_UP, merge, threshold_of
from streamsift.runtime.rank.merge_queues import MergeMemory, RankedComponent, WindowQueues
from streamsift.runtime.rank.merge_schedules import SCHEDULES, MergeRules, new_state

RESERVE = Reserve(2)


@dataclass(slots=True)
class Accesses:
    """The number of accesses in all windows."""

    sorted: int = 0
    random: int = 0
    carried: int = 0  # sorted accesses to paths that were read in the previous window too
    again: int = 0  # windows that were restarted without kept matches
    windows: int = 0


class RankMerge:
    """Run a merge plan over events."""

    def __init__(self, plan: MergePlan, events: Events, ticks: UpdateTicks | None, limit: int) -> None:
        self.plan, self.events, self.ticks, self.limit = plan, events, ticks, limit
        # With lookups, paths are joined without being read, so the paths read do not determine what was joined.
        self.dynamic = plan.keeps and not plan.looks_up
        self.kept = RESERVE.filled * limit if self.dynamic and ticks is not None else limit
        self.candidates = candidates(plan.alternative, events)
        self.accesses = Accesses()

    def best(self) -> TickMatches | GaveUp:
        """Return matches that include the k best of every window."""
        steps, components = len(self.plan.alternative.steps), list[RankedComponent]()
        places, of_tick = [np.empty((0, steps), np.int32)], [np.empty(0, np.int64)]
        for plan in (component.plan for component in self.plan.components):
            if isinstance(plan, JoinPlan):
                components.append(RankJoin(plan, self.events, self.ticks))
                continue
            ranked = path_component(plan, self.events, self.ticks, keeps=self.plan.keeps)
            if isinstance(ranked, GaveUp):
                return ranked
            if ranked is None:  # no matches
                return TickMatches(places[0].T, of_tick[0])
            components.append(ranked)
        ticks = reduce(np.intersect1d, [component.ticks for component in components])
        rules, queues = self._rules(components), WindowQueues(self.plan, components, *self._keys())
        nothing = memory = MergeMemory.nothing(len(components), steps)
        for tick in ticks.tolist():
            matches = self._window(tick, queues, rules, memory if self.dynamic else nothing)
            if isinstance(matches, GaveUp):
                return matches
            memory, best = matches
            self.accesses.windows += 1
            places.append(best)
            of_tick.append(np.full(best.shape[0], tick, np.int64))
        return TickMatches(np.ascontiguousarray(np.concatenate(places).T), np.concatenate(of_tick))

    def _window(
        self, tick: int, queues: WindowQueues, rules: MergeRules, memory: MergeMemory
    ) -> tuple[MergeMemory, Int32] | GaveUp:
        """Return what to keep for the next window, and the best matches [m, steps] of this one."""
        low = 0 if self.ticks is None else int(tick_windows(self.ticks, tick)[0])
        matches = queues.open(tick, memory, low, self.kept)
        state, status, read = new_state(*queues.arrays.rows.shape[::2]), 0, self.accesses
        while status != DONE:
            matches, status = merge(queues.arrays, rules, state, MAX_PATHS, matches)
            gave_up = GaveUp.TOO_MANY if status == GAVE_UP else queues.load(status) if status >= 0 else None
            if gave_up:
                return gave_up
        arrays = queues.arrays
        read.sorted += int(arrays.read.sum())
        read.random += int(arrays.fetches.sum())
        read.carried += int((arrays.carried & (np.arange(arrays.carried.shape[1]) < arrays.read[:, None])).sum())
        count, is_full = matches.counts[0], matches.counts[1] >= self.limit
        worst = matches.best[self.limit - 1] - rules.slack if is_full else -np.inf
        if worst < memory.threshold:  # matches below the threshold of earlier windows were not kept
            read.again += 1
            return self._window(tick, queues, rules, MergeMemory.nothing(len(memory.paths), matches.rows.shape[1]))
        rows, score = matches.rows[:count], matches.score[:count]
        return queues.memory(matches, max(memory.threshold, threshold_of(rules, matches))), rows[score >= worst]

    # --- rules -----------------------------------------------------------------------------------------------------

    def _rules(self, ranked: list[RankedComponent]) -> MergeRules:
        plan = self.plan
        pairs, coded = self._pairs()
        error = sum(one.error * component.scale for one, component in zip(ranked, plan.components, strict=True))
        costs = np.array([float(len(component.steps)) for component in plan.components])
        return MergeRules(
            sum_of=np.array([component.sum for component in plan.components], np.int64),
            constant=np.array(plan.constants),
            group_of=np.array(plan.groups, np.int64),
            takes_most=np.array([function == "MAX" for function in plan.functions]),
            pairs=np.array(pairs, np.int64).reshape(-1, 3),
            codes=np.array(coded, np.int64).reshape(len(coded), self.events.rank.size),
            costs=np.full(costs.size, costs.sum()) if plan.looks_up else costs,
            limit=self.limit,
            slack=SLACK * error,
            looks_up=plan.looks_up,
            schedule=SCHEDULES.index(plan.schedule),
        )

    def _pairs(self) -> tuple[list[tuple[int, int, int]], list[Int64]]:
        """Return the comparisons between events of different components, (one, two, operator), and codes by place."""
        plan, events, before = self.plan, self.events, set(self.plan.before)
        rules: list[tuple[int, int, int, np.ndarray, np.ndarray]] = []
        steps, places = len(plan.alternative.steps), np.arange(events.rank.size, dtype=np.int32)
        inside = {(one, two) for component in plan.components for one in component.steps for two in component.steps}
        apart = [(one, two) for two in range(steps) for one in range(two) if (one, two) not in inside]
        for one, two in apart:
            # Omit what follows from an event between the two.
            if not any((one, step) in before and (step, two) in before for step in range(steps)):
                operator, code = (LESS, events.rank) if (one, two) in before else (UNEQUAL, places)
                rules.append((one, two, operator, code, code))
            if self.ticks is None and events.window is not None:  # the window of a tick bounds all components already
                limits = events.window_limit(places)
                rules.append((one, two, GREATER_EQUAL, limits, events.window_position))
                if (one, two) not in before:
                    rules.append((two, one, GREATER_EQUAL, limits, events.window_position))
        for two, step in enumerate(plan.alternative.steps):
            for pair in (pair for pair in step.compared if (pair.earlier, two) in apart):
                sides = [(pair.earlier, pair.earlier_side), (two, pair.this_side)]
                left, right = self._codes(sides, ordered=pair.op not in ("=", "!="))
                rules.append((pair.earlier, two, OPERATORS[pair.op], left, right))
        return [rule[:3] for rule in rules], [code for rule in rules for code in rule[3:]]

    def _codes(self, sides: Sequence[tuple[int, Expr]], *, ordered: bool) -> list[Int64]:
        """Return the values of expressions of steps as comparable codes [places]; UNKNOWN for other places."""
        alternative, events, by_place = self.plan.alternative, self.events, []
        values = [
            evaluate(side, step_rows(alternative, events, events.rows_at(self.candidates[step])))
            for step, side in sides
        ]
        for (step, _), coded in zip(sides, codes(values, ordered=ordered), strict=True):
            column = np.full(events.rank.size, UNKNOWN, np.int64)
            column[self.candidates[step]] = coded
            by_place.append(column)
        return by_place

    def _keys(self) -> tuple[list[Int32], int]:
        """Return for each component the key by place of its key step; only paths with equal keys can be joined."""
        count, components = self.events.rank.size, len(self.plan.components)
        if not self.plan.key:
            return [np.zeros(count, np.int32)] * components, 1
        if self.plan.key[0][1].name == PLACE:
            return [np.arange(count, dtype=np.int32)] * components, max(1, count)
        distinct, dense = np.unique(np.concatenate(self._codes(self.plan.key, ordered=False)), return_inverse=True)
        return np.split(dense.astype(np.int32), components), max(1, distinct.size)


def merge_accesses(plan: RankPlan, events: Events) -> Iterator[str]:
    """Yield the total accesses of each schedule, even if the run does not merge."""
    assert plan.query.ranking is not None
    ticks = ticks_of(plan.query, events) if plan.query.update else None
    for number, branch in enumerate(plan.branches, start=1):
        if not isinstance(branch, MergePlan):
            continue
        which = f"alternative {number}, " if len(plan.branches) > 1 else ""
        for schedule in SCHEDULES:
            merge = RankMerge(replace(branch, schedule=schedule), events, ticks, plan.query.ranking.limit)
            if isinstance(merge.best(), GaveUp):
                yield f"{which}merge by {schedule.value}: gave up, because it would read too many component matches"
                continue
            read = merge.accesses
            carried = f", {read.carried:,} of them also in the previous window" if merge.dynamic else ""
            lookups = f", {read.random:,} by lookup" if branch.looks_up else ""
            windows = f" in {read.windows:,} windows" if ticks is not None else ""
            yield f"{which}merge by {schedule.value}: read {read.sorted:,} component matches{windows}{carried}{lookups}"
