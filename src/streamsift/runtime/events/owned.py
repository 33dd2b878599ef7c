"""State which results of its events a task owns: other tasks, which have replicas of some of them, own the rest.

Rows of totals are no part of it: the caller drops those of others by their time and group.

Contract: each match and each tick has one owner, if every row and every slice has one
(tests/spark/distribute/test_slices.py, test_rank_slices.py, test_total_slices.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.events.update_ticks import OwnedTicks


@dataclass(frozen=True, slots=True)
class Owned:
    """The matches and ticks that a task owns; None: all of them."""

    rows: Bool | None = None  # [table rows] of detection and ranking: the matches with such a row
    steps: tuple[int | None, ...] = ()  # for each alternative the step whose event that row is; None: the first event
    ticks: OwnedTicks | None = None  # of a ranking with UPDATE


EVERYTHING = Owned()
