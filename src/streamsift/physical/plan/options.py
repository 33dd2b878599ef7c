"""What callers may decide instead of the cost models. Every choice gives the same rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Literal, TypedDict

from streamsift.errors import QueryError


class Cache(StrEnum):
    """Whether answers of inner sub-patterns are kept for later partial matches."""

    AUTO = "auto"  # where the cost model expects that they are asked for again
    ON = "on"  # wherever it is possible
    OFF = "off"


class PlanShape(StrEnum):
    """Which tree of joins finds the events of a match."""

    AUTO = "auto"  # the cheapest tree for the rates and selectivities at hand, chosen anew as they drift
    LEFT = "left"  # ((1 2) 3) 4: each event looks ahead
    RIGHT = "right"  # 1 (2 (3 4)): each event looks back
    BUSHY = "bushy"  # (1 2) (3 4): two halves, joined
    INNER = "inner"  # 1 ((2 3) 4): from the middle outwards


class Condense(StrEnum):
    """Whether events with equal values are compared once, as a group."""

    AUTO = "auto"  # per step, where the measured condensation degree promises a benefit
    ON = "on"  # wherever it is possible
    OFF = "off"


class CountBy(StrEnum):
    """How an aggregation counts; `plan.Strategy` says what each does."""

    AUTO = "auto"  # the cheapest that the pattern allows
    PREFIX = "prefix"
    SEM = "sem"
    TWO_STACK = "two-stack"
    PAIRS = "pairs"
    DETECT = "detect"


class RankBy(StrEnum):
    """How a ranking finds the best matches. What a pattern or its preferences rule out is passed over."""

    AUTO = "auto"  # lazy, nra, join or enumerate: the first that can do it
    LAZY = "lazy"  # best paths of the stratified graph, one after the other, for all windows at once
    K_SSP = "k-ssp"  # the k best paths of each window, by the algorithm of the CPR thesis
    K_DSSP = "k-dssp"  # the same, with the paths that a window move leaves
    NRA = "nra"  # the parts that objectives speak of, each best first, merged as they come
    TA = "ta"  # the same, and what goes with a part's match is looked up in the others
    JOIN = "join"  # events best first, until those left cannot make a better match
    ENUMERATE = "enumerate"  # all matches


class Schedule(StrEnum):
    """Which part a merge reads next (nra and ta)."""

    WABS = "wabs"  # in the proportions that would have reached an earlier bound at the least cost
    ROUND_ROBIN = "round-robin"  # one after the other
    GRADIENT = "gradient"  # the one whose scores fell most over its last matches
    STATISTICS = "statistics"  # the one that should lower the bound most for its cost, as its scores fell so far


class Spread(StrEnum):
    """How the work of one query is cut into Spark tasks."""

    AUTO = "auto"  # by slices of time, of each key if there is one; by a key of some variables if it makes fewer copies
    KEYS = "keys"  # by keys only, one of some variables if need be: one task where there are none
    SLICES = "slices"  # by slices of time, of each key if there is one


@dataclass(frozen=True, slots=True)
class PlannerOptions:
    cache: Cache = Cache.AUTO
    plan: PlanShape = PlanShape.AUTO
    condense: Condense = Condense.AUTO
    strategy: CountBy = CountBy.AUTO
    rank: RankBy = RankBy.AUTO
    schedule: Schedule = Schedule.WABS
    spread: Spread = Spread.AUTO


class PlannerKeywords(TypedDict, total=False):
    """The same as keyword arguments of `Query.run`, `run_local` and `explain`."""

    cache: Literal["auto", "on", "off"]
    plan: Literal["auto", "left", "right", "bushy", "inner"]
    condense: Literal["auto", "on", "off"]
    strategy: Literal["auto", "prefix", "sem", "two-stack", "pairs", "detect"]
    rank: Literal["auto", "lazy", "k-ssp", "k-dssp", "nra", "ta", "join", "enumerate"]
    schedule: Literal["wabs", "round-robin", "gradient", "statistics"]
    spread: Literal["auto", "keys", "slices"]


_KINDS: dict[str, type[StrEnum]] = {
    "cache": Cache,
    "plan": PlanShape,
    "condense": Condense,
    "strategy": CountBy,
    "rank": RankBy,
    "schedule": Schedule,
    "spread": Spread,
}


def planner_options(**given: str) -> PlannerOptions:
    """The choices by name; an unknown name or value raises."""
    known = [field.name for field in fields(PlannerOptions)]
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"there is no option `{name}`; there are {', '.join(known)}")
        if value not in list(_KINDS[name]):
            *most, last = (f'"{kind.value}"' for kind in _KINDS[name])
            raise QueryError(f"{name}={value!r}", hint=f"it is {', '.join(most)} or {last}.")
    return PlannerOptions(**{name: _KINDS[name](value) for name, value in given.items()})  # type: ignore[arg-type]
