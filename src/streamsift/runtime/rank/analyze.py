"""Report what each schedule of a ranking plan's merges reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streamsift.physical.plan import MergePlan, RankPlan
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import ticks_of
from streamsift.runtime.paths import GaveUp
from streamsift.runtime.rank.merge import RankMerge
from streamsift.runtime.rank.merge_schedules import SCHEDULES


def merge_accesses(plan: RankPlan, events: Events) -> Iterator[str]:
    """Yield the accesses of all windows together, by each schedule, whether or not the run merges."""
    assert plan.query.ranking is not None
    ticks = ticks_of(plan.query, events) if plan.query.update else None
    for number, branch in enumerate(plan.branches, start=1):
        if not isinstance(branch, MergePlan):
            continue
        which = f"alternative {number}, " if len(plan.branches) > 1 else ""
        for schedule in SCHEDULES:
            merge = RankMerge(replace(branch, schedule=schedule), events, ticks, plan.query.ranking.limit)
            if isinstance(merge.best(), GaveUp):
                yield f"{which}merge by {schedule.value}: given up, too many matches of a part would be read"
                continue
            read = merge.accesses
            known = f", {read.known:,} of them known from the window before" if merge.dynamic else ""
            looked_up = f", {read.random:,} by lookup" if branch.looks_up else ""
            windows = f" in {read.windows:,} windows" if ticks is not None else ""
            yield f"{which}merge by {schedule.value}: {read.sorted:,} matches of parts read{windows}{known}{looked_up}"
