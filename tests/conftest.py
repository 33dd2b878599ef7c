"""Hypothesis profiles (`quick` unless STREAMSIFT_HYPOTHESIS names another), and which tests share a process."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# A generated query with its stream is many draws; the suite shares few cores, so time says nothing about the code.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

# The same examples every time, so that a commit passes or fails for what it changed; the large profile looks further.
settings.register_profile(
    "quick", max_examples=100, deadline=None, derandomize=True, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile(
    "large", max_examples=2000, deadline=None, derandomize=False, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("STREAMSIFT_HYPOTHESIS", "quick"))


class OneProcessForSpark(LoadScopeScheduling):
    """All Spark tests in one process: a session each would take more memory and start-up than it saves."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith("tests/spark/") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    # Not by the mark xdist_group: xdist 3.8 loses it with pytest 9.2, which keeps the ids of tests elsewhere.
    return OneProcessForSpark(config, log) if config.getvalue("dist") == "loadgroup" else None
