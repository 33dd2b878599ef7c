"""A killed stream goes on from its checkpoint; `make kill-rounds` does the same many times."""

from __future__ import annotations

import kill_rounds


def test_one_round() -> None:
    kill_rounds.rounds(1, seed=5, files=5)
