"""Keep the k best scored matches of each bucket, in whatever order they come.

Contract: the k best by score, then by the events' times variable by variable, then by `order`, then by input order
(tests/runtime/rank/test_best.py). Memory is a few times k per bucket and one chunk, whatever the number of matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.rank.buckets import not_below_kth, ranks
from streamsift.runtime.resources import reserve

KEPT_BYTES = 100  # for each match, beside its places: what sorting takes
PENDING = 1 << 17  # matches that may wait for the next sorting, at least


@dataclass(frozen=True, slots=True)
class Scored:
    """Matches [m] with their scores; places [variables, m] of their events, -1 where there is none.

    Kleene matches instead have their chunk for an alternative, and for places [1, m] their number in it.
    """

    bucket: Int64
    score: Float64
    places: Int32
    alternative: Int32

    def at(self, which: np.ndarray) -> Scored:
        return Scored(self.bucket[which], self.score[which], self.places[:, which], self.alternative[which])


def joined(parts: Sequence[Scored]) -> Scored:
    if len(parts) == 1:
        return parts[0]
    return Scored(
        np.concatenate([part.bucket for part in parts]),
        np.concatenate([part.score for part in parts]),
        np.concatenate([part.places for part in parts], axis=1),
        np.concatenate([part.alternative for part in parts]),
    )


@dataclass(slots=True)
class Best:
    """The k best so far."""

    limit: int
    levels: Sequence[Int32]
    kept: Scored | None = None
    pending: list[Scored] = field(default_factory=list)
    waiting: int = 0

    def add(self, matches: Scored) -> None:
        matches = matches.at(self._may_count(matches))
        if not matches.score.size:
            return
        self.pending.append(matches)
        self.waiting += matches.score.size
        # As many may wait as are kept: so each is sorted a logarithmic number of times, whatever the buckets.
        if self.waiting >= max(PENDING, 0 if self.kept is None else self.kept.score.size):
            self.settle()

    def _may_count(self, matches: Scored) -> np.ndarray:
        """Return which matches are not below the worst of the k that their bucket has already."""
        if self.kept is None:
            return np.ones(matches.score.size, np.bool_)
        place = np.searchsorted(self.kept.bucket, matches.bucket, side="right") - 1
        first = place - (self.limit - 1)
        is_full = (first >= 0) & (self.kept.bucket[np.maximum(first, 0)] == matches.bucket)
        return ~is_full | (matches.score >= self.kept.score[np.maximum(place, 0)])

    def settle(self) -> Scored | None:
        """Return the k best of each bucket, by bucket, best first; None if there is no match at all."""
        if self.pending:
            matches = joined(self.pending if self.kept is None else [self.kept, *self.pending])
            reserve(KEPT_BYTES * matches.score.size + 4 * matches.places.nbytes, "the best of each group and tick")
            self.pending, self.waiting = [], 0
            # By score alone first: ties are settled only among those that may stay.
            matches = matches.at(not_below_kth(matches.bucket, matches.score, self.limit))
            keys = [level[row] for level in self.levels for row in matches.places]
            matches = matches.at(np.lexsort([*reversed(keys), -matches.score, matches.bucket]))
            self.kept = matches.at(ranks(matches.bucket) <= self.limit)
        return self.kept
