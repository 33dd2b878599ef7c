"""Define experiments, their workloads, and the engines compared, which must return equal results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from benchmarks.harness.answers import Answer
from benchmarks.harness.clock import Clock, Taken, taken_by

Result = TypeVar("Result")
DEFAULT_SEED = 1


class Side(StrEnum):
    """The role of an engine or strategy in a comparison."""

    OURS = "ours"  # Streamsift as users run it
    RIVAL = "rival"  # another engine
    YARDSTICK = "yardstick"  # our own plain baseline


@dataclass(frozen=True, slots=True)
class Contender:
    """One engine or strategy that runs a workload."""

    name: str
    side: Side
    answer: Callable[[], Answer]  # runs once, which warms up, and returns the answer
    run: Callable[[], Taken]  # runs once more and returns the time


@dataclass(frozen=True, slots=True)
class Skipped:
    """An engine that cannot run on this machine, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Workload:
    """One query on one set of events."""

    name: str
    events: int
    contenders: tuple[Contender, ...]
    skipped: tuple[Skipped, ...] = ()
    query: str = ""
    parameters: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """Scale, repetitions, cores and other settings of a run."""

    scale: float = 1.0  # factor for the number of events
    repetitions: int = 3  # minimum; short runs get more
    budget_s: float = 30.0  # for the repetitions of one engine or strategy; it runs at least once
    cores: int = 1
    seed: int = DEFAULT_SEED
    clock: Clock = Clock.WALL
    only: str = ""  # run only workloads whose name contains this

    def scaled(self, events: int) -> int:
        return max(1, round(events * self.scale))

    def seeded(self, own: int) -> int:
        """Return the seed for a generator with its own default; the default setting keeps the generator's seed."""
        return own + self.seed - DEFAULT_SEED


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Experiment:
    """A name, a one-sentence description, and workloads, which are created one after the other."""

    name: str
    about: str
    workloads: Callable[[Settings], Iterator[Workload]]


def in_process(name: str, side: Side, run: Callable[[], Result], answered: Callable[[Result], Answer]) -> Contender:
    """Compare a function in this process; only its call is timed, not computing the answer."""
    return Contender(name, side, lambda: answered(run()), lambda: taken_by(run))
