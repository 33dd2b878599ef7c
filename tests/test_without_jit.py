"""The kernels as plain Python: the same cases, and generated queries, with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
EXAMPLES = "300" if os.environ.get("STREAMSIFT_HYPOTHESIS") == "large" else "30"
GENERATED = ["test_flat_queries", "test_nested_queries", "test_negations_in_negations"]
SHARED = ["test_sums_and_extremes_are_shared", "test_multi_connect"]
SELECTED = [
    "test_cases.py",
    "generated/test_generated_aggregation.py",
    "runtime/stream/test_engine.py",
    *(f"generated/test_generated.py::{name}" for name in GENERATED),
    *(f"api/test_many.py::{name}" for name in SHARED),
]


def test_cases_and_generated_queries_without_jit() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "STREAMSIFT_EXAMPLES": EXAMPLES}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *(str(TESTS / name) for name in SELECTED),
    ]
    done = subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "passed" in done.stdout
