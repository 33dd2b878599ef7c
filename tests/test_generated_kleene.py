"""Generated queries with `+`, `*` and `[n]`, mixed with nesting and negation: the engine says what the oracle says."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings

from strategies import bindings, queries, streams
from streamsift.language import Script
from test_generated import check_answer

EXAMPLES = int(os.environ.get("STREAMSIFT_EXAMPLES", "0"))
LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"

DETECTION = {"aggregates": False, "ranking": False, "definitions": False}

Rows = list[dict[str, Any]]


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 1_000), deadline=None)
@given(queries(**DETECTION), streams(max_size=7), bindings())
def test_kleene_queries(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)
