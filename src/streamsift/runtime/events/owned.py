"""State which results a task owns; other tasks, which hold replicas of some of its events, own the others.

Rows of aggregates are not covered: the caller drops those of other tasks by time and group.

Contract: each match and each tick has one owner if every row and every slice has one
(tests/spark/distribute/test_slices.py, test_rank_slices.py, test_total_slices.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.events.update_ticks import OwnedTicks


@dataclass(frozen=True, slots=True)
class Owned:
    """The matches and ticks that a task owns; None means all."""

    rows: Bool | None = None  # [table rows] rows whose matches the task owns, for detection and ranking
    steps: tuple[int | None, ...] = ()  # per alternative, the step whose row owns the match; None: the first event
    ticks: OwnedTicks | None = None  # for a ranking with UPDATE


EVERYTHING = Owned()
