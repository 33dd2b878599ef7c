"""The k best of each bucket agree with sorting all matches, whatever the order of arrival."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsift.runtime.rank import best
from streamsift.runtime.rank.best import Best, Scored

TIMES = np.array([0, 0, 1, 1, 2, 2, -1], np.int32)  # two events at each time; the last stands for no event
PLACES = np.array([0, 1, 2, 3, 4, 5, -1], np.int32)

# Bucket, score, and the places of the events of two variables, -1 for none.
MATCHES = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0, np.inf, -np.inf]), st.integers(-1, 5), st.integers(-1, 5)
    ),
    max_size=40,
)
Match = tuple[int, float, int, int]


def scored(matches: list[Match]) -> Scored:
    bucket, score, first, second = zip(*matches, strict=True)
    places = np.array([first, second], np.int32)
    return Scored(np.array(bucket, np.int64), np.array(score), places, np.zeros(len(matches), np.int32))


def expected(matches: list[Match], limit: int) -> list[Match]:
    """Sort by score, then by the times of events variable by variable, missing events first, then by place."""
    ordered = sorted(matches, key=lambda m: (m[0], -m[1], TIMES[m[2]], TIMES[m[3]], m[2], m[3]))
    return [m for n, m in enumerate(ordered) if sum(o[0] == m[0] for o in ordered[:n]) < limit]


@given(matches=MATCHES, chunk=st.integers(1, 9), limit=st.integers(1, 4), pending=st.sampled_from([1, 5, 1 << 17]))
def test_the_best_are_those_that_sorting_puts_first(matches: list[Match], chunk: int, limit: int, pending: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best, "PENDING", pending)
        kept = Best(limit, [TIMES, PLACES])
        for start in range(0, len(matches), chunk):
            kept.add(scored(matches[start : start + chunk]))
        found = kept.settle()
    rows = [] if found is None else list(zip(found.bucket, found.score, *found.places, strict=True))
    assert rows == expected(matches, limit)
