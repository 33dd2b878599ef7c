"""Compiling kernels is announced once, after it has taken a while in total."""

from __future__ import annotations

from threading import Event
from time import sleep

import pytest
from numba import njit
from numba.core.event import end_event, start_event

from streamsift.runtime.resources import announce_compiling

KIND = "numba:compile"


def compile_for(seconds: float) -> None:
    """Broadcast what Numba broadcasts when it compiles a kernel."""
    start_event(KIND)
    sleep(seconds)
    end_event(KIND)


@pytest.mark.parametrize(
    ("durations", "announcements"),
    [([], 0), ([0.01], 0), ([0.3], 1), ([0.15, 0.15], 1), ([0.3, 0.3], 1)],
    ids=["none", "short", "long", "in total", "once"],
)
def test_long_compiles_are_announced_once(durations: list[float], announcements: int) -> None:
    announced: list[str] = []
    with announce_compiling(lambda: announced.append("compiling"), seconds=0.2):
        for duration in durations:
            compile_for(duration)
    assert len(announced) == announcements
    compile_for(0.0)
    assert len(announced) == announcements


@pytest.mark.parametrize("inner_kernels", [0, 2])
def test_a_running_compile_is_announced(inner_kernels: int) -> None:
    announced = Event()
    with announce_compiling(announced.set, seconds=0.05):
        start_event(KIND)
        for _ in range(inner_kernels):
            compile_for(0.0)
        assert announced.wait(timeout=10)
        end_event(KIND)


def test_an_abandoned_compile_is_not_announced_later() -> None:
    announced = Event()
    with announce_compiling(announced.set, seconds=0.05):
        start_event(KIND)
    assert not announced.wait(timeout=0.2)


def test_numba_reports_a_kernel_that_it_compiles() -> None:
    announced = Event()
    kernel = njit(lambda number: number + 1)
    with announce_compiling(announced.set, seconds=0):
        assert kernel(1) == 2
    assert announced.is_set()
    announced.clear()
    with announce_compiling(announced.set, seconds=0):
        assert kernel(2) == 3
    assert not announced.is_set()
