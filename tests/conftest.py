"""Hypothesis profiles: `quick` unless STREAMSIFT_HYPOTHESIS names another."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A generated query with its stream is many draws; the suite shares few cores, so time says nothing about the code.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "quick", max_examples=100, deadline=None, derandomize=False, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile(
    "large", max_examples=2000, deadline=None, derandomize=False, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("STREAMSIFT_HYPOTHESIS", "quick"))
