"""Measure intermediate results: the rows that each join node builds, and peak memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from streamsift.physical.explain.joins import names_of
from streamsift.physical.plan.options import PlannerOptions
from streamsift.physical.plan.plan import Alternative
from streamsift.runtime.detect.adaptive import AdaptiveSearch
from streamsift.runtime.detect.run import CHUNK_MATCHES
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events


def searched(alternative: Alternative, events: Events, choices: PlannerOptions) -> AdaptiveSearch:
    """Search the single events and return the search, whose log has the rows of each join."""
    positive = Alternative(alternative.query, alternative.steps, ())
    search = AdaptiveSearch(positive, events, candidates(positive, events), choices, CHUNK_MATCHES)
    for _ in search.matches():
        pass
    return search


def rows_built(search: AdaptiveSearch) -> dict[str, int]:
    """Return the rows that each inner join node built, by the names of its variables."""
    names, found = names_of(search.alternative), dict[str, int]()
    for chosen in search.log:
        for steps, rows in chosen.rows.items():
            if 1 < len(steps) < len(names):
                node = " ".join(names[step] for step in sorted(steps))
                found[node] = found.get(node, 0) + rows
    return found


def format_rows(rows: dict[str, int]) -> str:
    return ", ".join(f"({node}) {count:,}" for node, count in rows.items()) or "matches only"


def peak_mb(run: Callable[[], object]) -> float:
    """Return the additional peak memory of a process that runs a function: Arrow, NumPy, kernels and Python together.

    The function runs in a child process, so that only its memory is counted and it cannot reuse freed memory.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).malloc_trim(0)
        pa.default_memory_pool().release_unused()
        Path("/proc/self/clear_refs").write_text("5")  # reset VmHWM, the peak resident memory
        before = _resident_kb("VmRSS")
        run()
        os.write(writing, str(_resident_kb("VmHWM") - before).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        grown_kb = int(pipe.read() or -1)
    os.waitpid(child, 0)
    assert grown_kb >= 0, "the run failed in its child process"
    return grown_kb / 1e3


def _resident_kb(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
