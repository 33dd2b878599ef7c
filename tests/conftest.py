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


# What is run first, by the beginning of a test's id: in order of time, so that no process is left with a long test at
# the end. `make test` runs the cases before all others, on two processes. They compile nearly all kernels; rankings
# need about half of them, and hardly any that the others need, so each is compiled once.
RANKINGS = ("ranking", "paper_ranking", "definitions")
FIRST = (
    "tests/spark/batch/test_cases_on_spark.py",
    "tests/spark/batch/test_cluster.py",
    "tests/spark/command/",
    "tests/spark/stream/test_cases_on_streams.py",
    "tests/spark/",
    "tests/physical/test_keys.py",
    "tests/test_without_jit.py",
    "tests/generated/",
    "tests/api/test_many.py",
    "tests/api/test_limits.py",
    "tests/command/test_cli.py",
)


def urgency(nodeid: str) -> int:
    return next((n for n, begin in enumerate(FIRST) if nodeid.startswith(begin)), len(FIRST))


class InOrderOfTime(LoadScopeScheduling):
    """Hands out tests one by one, but the Spark tests of a file, and the cases of rankings and all others, together."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/test_cases.py::test_answered_case["):
            return str(nodeid.partition("[")[2].partition(":")[0] in RANKINGS)
        return nodeid.partition("::")[0] if nodeid.startswith("tests/spark/") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    # Not by the mark xdist_group: xdist 3.8 loses it with pytest 9.2, which keeps the ids of tests elsewhere.
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return InOrderOfTime(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: urgency(item.nodeid))
