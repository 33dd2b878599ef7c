"""The parts of a pattern in, each ranked by itself, the matches that can be among the k best of all out.

The top-k merge of the CPR thesis (sections 3.3 and 3.4): `merge_search` reads the parts' matches as its schedule says,
and asks for more of them. When the window moves, the matches that it joined stay joined: those that are still inside
are kept, and paths that were read before are joined with new ones only (dTMM).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from streamsift.logical.bound import Expr
from streamsift.physical.detect import PLACE
from streamsift.physical.plan import MergePlan, Schedule
from streamsift.physical.rank import MAX_PATHS
from streamsift.runtime.arrays.comparing import OPERATORS
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64
from streamsift.runtime.events.candidates import candidates, step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.paths import SLACK, Paths
from streamsift.runtime.rank.merge_bounds import Queues, Rules
from streamsift.runtime.rank.merge_kernel import APART, BEFORE, DONE, GAVE_UP, floor_of, merge
from streamsift.runtime.rank.merge_parts import Part, part_of
from streamsift.runtime.rank.merge_queues import Memory, WindowQueues
from streamsift.runtime.rank.merge_schedules import new_steering

SCHEDULES = (Schedule.ROUND_ROBIN, Schedule.GRADIENT, Schedule.STATISTICS, Schedule.WABS)  # as kernels number them
KEPT = 2  # times k: the matches that are kept for the next window, where those above may have gone


@dataclass(slots=True)
class Accesses:
    """What was read in all windows; `known` is the share of `sorted` that had been read in the window before."""

    sorted: int = 0
    random: int = 0
    known: int = 0
    again: int = 0  # windows that were begun again, without what was kept
    windows: int = 0


class RankMerge:
    """One run of a plan over events."""

    def __init__(self, plan: MergePlan, events: Events, ticks: UpdateTicks | None, limit: int) -> None:
        self.plan, self.events, self.ticks, self.limit = plan, events, ticks, limit
        # What was looked up was joined without being read: with lookups, reading does not tell what is joined.
        self.dynamic = plan.keeps and not plan.looks_up
        self.parts = [part_of(component.plan, events, ticks, keeps=plan.keeps) for component in plan.components]
        self.key_of, self.keys = self._keys()
        self.schedule, self.looks_up = SCHEDULES.index(plan.schedule), plan.looks_up
        self.accesses = Accesses()

    def best(self) -> Paths | None:
        """Matches among which are the k best of every window; None if a part has too many paths to look at."""
        steps = len(self.plan.alternative.steps)
        found, of_tick = [np.empty((0, steps), np.int32)], [np.empty(0, np.int64)]
        parts = [part for part in self.parts if part is not None]
        if len(parts) < len(self.parts):
            return None
        ticks = reduce(np.intersect1d, [part.ticks for part in parts])
        if ticks.size:
            rules = self._rules(parts)
            queues = WindowQueues(self.plan, parts, self.key_of, self.keys, looks_up=self.looks_up)
            memory = Memory.nothing(len(parts), steps)
            for tick in ticks.tolist():
                memory = memory if self.dynamic else Memory.nothing(len(parts), steps)
                matches = self._window(tick, queues, rules, memory)
                if matches is None:
                    return None
                memory, best = matches
                self.accesses.windows += 1
                found.append(best)
                of_tick.append(np.full(best.shape[0], tick, np.int64))
        return Paths(np.ascontiguousarray(np.concatenate(found).T), np.concatenate(of_tick))

    def _window(self, tick: int, queues: WindowQueues, rules: Rules, memory: Memory) -> tuple[Memory, Int32] | None:
        """The best matches [m, steps] of a window, and what to remember of it."""
        low = int(np.searchsorted(self.ticks.last, tick, side="left")) if self.ticks is not None else 0
        found = queues.open(tick, memory, low, rules)
        steering, status = new_steering(len(self.parts)), 0
        while status != DONE:
            found, status = merge(queues.arrays, rules, steering, MAX_PATHS, found)
            if status == GAVE_UP or (status >= 0 and not queues.load(status)):
                return None
        self._count(queues.arrays)
        is_full = found.counts[1] >= self.limit
        worst = found.best[self.limit - 1] - rules.slack if is_full else -np.inf
        if worst < memory.floor:  # what fell below it in an earlier window was not kept
            self.accesses.again += 1
            return self._window(tick, queues, rules, Memory.nothing(len(self.parts), found.rows.shape[1]))
        count = found.counts[0]
        rows, score = found.rows[:count], found.score[:count]
        return queues.memory(found, max(memory.floor, floor_of(rules, found))), rows[score >= worst]

    def _count(self, queues: Queues) -> None:
        self.accesses.sorted += int(queues.read.sum())
        self.accesses.random += int(queues.fetches.sum())
        read = np.arange(queues.known.shape[1]) < queues.read[:, None]
        self.accesses.known += int(np.count_nonzero(queues.known & read))

    # --- rules -----------------------------------------------------------------------------------------------------

    def _rules(self, parts: list[Part]) -> Rules:
        plan = self.plan
        pairs, coded = self._pairs()
        error = sum(part.error * component.scale for part, component in zip(parts, plan.components, strict=True))
        costs = np.array([float(len(component.steps)) for component in plan.components])
        if self.looks_up:
            costs = np.full(costs.size, costs.sum())
        kept = KEPT * self.limit if self.dynamic and self.ticks is not None else self.limit
        return Rules(
            np.array([component.sum for component in plan.components], np.int64),
            np.array(plan.constants),
            np.array(plan.groups, np.int64),
            np.array([function == "MAX" for function in plan.functions]),
            np.array(pairs, np.int64).reshape(-1, 3),
            np.array(coded, np.int64).reshape(len(coded), self.events.rank.size),
            self.events.rank,
            costs,
            self.limit,
            kept,
            SLACK * error,
            self.looks_up,
            self.schedule,
        )

    def _pairs(self) -> tuple[list[tuple[int, int, int]], list[Int64]]:
        """What must hold between events of different parts: order, windows and comparisons, as codes by place."""
        plan, before = self.plan, set(self.plan.before)
        together = [set(component.steps) for component in plan.components]
        nothing = np.empty(0, np.int64)
        pairs: list[tuple[int, int, int]] = []
        coded: list[Int64] = []

        def add(one: int, two: int, operator: int, left: Int64 = nothing, right: Int64 = nothing) -> None:
            pairs.append((one, two, operator))
            coded.extend(side if side.size else np.zeros(self.events.rank.size, np.int64) for side in (left, right))

        steps = len(plan.alternative.steps)
        apart = [(a, b) for b in range(steps) for a in range(b) if not any({a, b} <= own for own in together)]
        limits, positions = self._window_codes()
        for one, two in apart:
            # What lies between two events in order says so already.
            if not any((one, step) in before and (step, two) in before for step in range(steps)):
                add(one, two, BEFORE if (one, two) in before else APART)
            if limits.size:
                add(one, two, OPERATORS[">="], limits, positions)
                if (one, two) not in before:
                    add(two, one, OPERATORS[">="], limits, positions)
        own = candidates(plan.alternative, self.events)
        for two, step in enumerate(plan.alternative.steps):
            for pair in step.compared:
                if (pair.earlier, two) in apart:
                    sides = [(pair.earlier, pair.earlier_side), (two, pair.this_side)]
                    left, right = self._codes(sides, own, ordered=pair.op not in ("=", "!="))
                    add(pair.earlier, two, OPERATORS[pair.op], left, right)
        return pairs, coded

    def _window_codes(self) -> tuple[Int64, Int64]:
        """Where windows of single matches end, and where events lie; empty where a tick's window holds all parts."""
        events = self.events
        if self.ticks is not None or events.window is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        everywhere = np.arange(events.rank.size, dtype=np.int32)
        return events.window_limit(everywhere).astype(np.int64), events.window_position.astype(np.int64)

    def _codes(self, sides: Sequence[tuple[int, Expr]], own: list[Int32], *, ordered: bool) -> list[Int64]:
        """The values of expressions of steps as codes [places] that can be compared; UNKNOWN where there is none."""
        alternative, found = self.plan.alternative, []
        values = [
            evaluate(side, step_rows(alternative, self.events, self.events.rows_at(own[step]))) for step, side in sides
        ]
        for (step, _), coded in zip(sides, codes(values, ordered=ordered), strict=True):
            column = np.full(self.events.rank.size, UNKNOWN, np.int64)
            column[own[step]] = coded
            found.append(column)
        return found

    def _keys(self) -> tuple[list[Int32], int]:
        """For each part the key of a path by the place of its key step; paths of other keys do not fit."""
        count = self.events.rank.size
        if not self.plan.key:
            return [np.zeros(count, np.int32) for _ in self.parts], 1
        if self.plan.key[0][1].name == PLACE:
            return [np.arange(count, dtype=np.int32) for _ in self.parts], max(1, count)
        own = candidates(self.plan.alternative, self.events)
        coded = self._codes([(step, column) for step, column in self.plan.key], own, ordered=False)
        distinct, dense = np.unique(np.concatenate(coded), return_inverse=True)
        parts = np.split(dense.astype(np.int32), len(coded))
        return parts, max(1, distinct.size)
