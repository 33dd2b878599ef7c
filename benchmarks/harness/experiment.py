"""What a benchmark measures: an experiment has workloads, a workload has contenders that must give the same answer."""

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
    """Who a contender is."""

    OURS = "ours"  # what users of Streamsift run
    RIVAL = "rival"  # another engine
    YARDSTICK = "yardstick"  # a plain program of our own that shows what the idea alone costs


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to answer a workload's question."""

    name: str
    side: Side
    answer: Callable[[], Answer]  # runs once, warms up, and says what came out
    run: Callable[[], Taken]  # runs once more, and says how long it took


@dataclass(frozen=True, slots=True)
class Skipped:
    """A contender that cannot take part on this machine, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Workload:
    """One question about one set of events."""

    name: str
    events: int
    contenders: tuple[Contender, ...]
    skipped: tuple[Skipped, ...] = ()
    query: str = ""
    parameters: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """How large, how often, on how many cores."""

    scale: float = 1.0  # times the number of events
    repetitions: int = 3  # at least: short runs get more
    budget_s: float = 30.0  # for the repetitions of one contender; one at least
    cores: int = 1
    seed: int = DEFAULT_SEED
    clock: Clock = Clock.WALL
    only: str = ""  # workloads with this in their name

    def scaled(self, events: int) -> int:
        return max(1, round(events * self.scale))

    def seeded(self, own: int) -> int:
        """For a generator that has another seed than 1 of its own: the default leaves it as it is."""
        return own + self.seed - DEFAULT_SEED


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Experiment:
    """A name, what it is about in a sentence, and its workloads, made one after the other."""

    name: str
    about: str
    workloads: Callable[[Settings], Iterator[Workload]]


def in_process(name: str, side: Side, run: Callable[[], Result], answered: Callable[[Result], Answer]) -> Contender:
    """A contender that is a function here: only the call is timed, not what its answer is."""
    return Contender(name, side, lambda: answered(run()), lambda: taken_by(run))
