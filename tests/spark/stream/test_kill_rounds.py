"""A killed stream resumes from its checkpoint. In the large profile: `make test` kills workers of generated streams.

`make kill-rounds` does the same many times.
"""

from __future__ import annotations

import pytest

import kill_rounds
from test_generated import LARGE


@pytest.mark.skipif(not LARGE, reason="a driver that is killed and started again takes minutes: make test-large")
def test_a_killed_driver_or_worker() -> None:
    kill_rounds.rounds(4, seed=5)
