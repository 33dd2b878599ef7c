"""Declare the decisions that callers may take instead of the cost models. Every choice gives the same rows."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple, TypedDict, get_type_hints

from streamsift.errors import QueryError


class Cache(StrEnum):
    """When results of inner sub-patterns are cached for later partial matches."""

    AUTO = "auto"  # where the cost model expects that they are looked up again
    ON = "on"  # wherever it is possible
    OFF = "off"


class PlanShape(StrEnum):
    """The join tree that finds the events of a match."""

    AUTO = "auto"  # the cheapest tree for the rates and selectivities at hand, chosen anew as they drift
    LEFT = "left"  # ((1 2) 3) 4: left-deep
    RIGHT = "right"  # 1 (2 (3 4)): right-deep
    BUSHY = "bushy"  # (1 2) (3 4): two halves, joined
    INNER = "inner"  # 1 ((2 3) 4): from the middle outwards


class Condense(StrEnum):
    """When events with equal values are compared once, as a group."""

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
    """How a ranking finds the best matches. A strategy that does not apply is skipped."""

    AUTO = "auto"  # lazy, nra, join or enumerate: the first that can do it
    LAZY = "lazy"  # best paths of the stratified graph, one after the other, for all windows at once
    K_SSP = "k-ssp"  # the k best paths of each window, by the algorithm of the CPR thesis
    K_DSSP = "k-dssp"  # the same, with the paths that a window move leaves
    NRA = "nra"  # the components of the score, each best first, merged as they are read
    TA = "ta"  # the same, and what goes with a component's match is looked up in the others
    JOIN = "join"  # events best first, until those left cannot make a better match
    ENUMERATE = "enumerate"  # all matches


class Schedule(StrEnum):
    """The component that a merge reads next (nra and ta)."""

    WABS = "wabs"  # in the proportions that would have reached an earlier bound at the least cost
    ROUND_ROBIN = "round-robin"  # one after the other
    GRADIENT = "gradient"  # the one whose scores fell most over its last matches
    STATISTICS = "statistics"  # the one that should lower the bound most for its cost, as its scores fell so far


class Spread(StrEnum):
    """How the work of one query is distributed over Spark tasks."""

    AUTO = "auto"  # by time slices, of each key if there is one; by a partial key if it replicates fewer events
    KEYS = "keys"  # by keys only, a partial one if need be: one task if there are none
    SLICES = "slices"  # by time slices, of each key if there is one


class PlannerOption(NamedTuple):
    """An option as callers see it."""

    name: str
    type: type[StrEnum]
    default: StrEnum
    help: str
    applies_to: str  # which queries


def _option(default: StrEnum, help: str, applies_to: str) -> Any:
    return field(default=default, metadata={"help": help, "applies_to": applies_to})


@dataclass(frozen=True, slots=True)
class PlannerOptions:
    """The one table of options: the command line's, the checks of Python keywords and the documentation read it."""

    cache: Cache = _option(
        Cache.AUTO,
        "Cache the results of inner sub-patterns.",
        "`!`, SEQ of 4 events",
    )
    plan: PlanShape = _option(PlanShape.AUTO, "Shape of the join tree.", "patterns of two events or more")
    condense: Condense = _option(Condense.AUTO, "Compare events with equal values once, as a group.", "SEQ without `!`")
    strategy: CountBy = _option(CountBy.AUTO, "Strategy that computes aggregates.", "AGG")
    rank: RankBy = _option(RankBy.AUTO, "Strategy that finds the best matches.", "PREF")
    schedule: Schedule = _option(
        Schedule.STATISTICS, "Component of the score that a merge reads next.", "PREF by nra or ta"
    )
    spread: Spread = _option(Spread.AUTO, "Distribution over Spark tasks: by key or by time slice.", "Spark DataFrames")


@cache
def option_table() -> tuple[PlannerOption, ...]:
    types, defaults = get_type_hints(PlannerOptions), PlannerOptions()
    return tuple(
        PlannerOption(f.name, types[f.name], getattr(defaults, f.name), **f.metadata) for f in fields(PlannerOptions)
    )


class PlannerKeywords(TypedDict, total=False):
    """The same as keyword arguments of `Query.run`, `run_local` and `explain`, spelled out for type checkers."""

    # tests/physical/test_options.py holds them to the table.
    cache: Literal["auto", "on", "off"]
    plan: Literal["auto", "left", "right", "bushy", "inner"]
    condense: Literal["auto", "on", "off"]
    strategy: Literal["auto", "prefix", "sem", "two-stack", "pairs", "detect"]
    rank: Literal["auto", "lazy", "k-ssp", "k-dssp", "nra", "ta", "join", "enumerate"]
    schedule: Literal["wabs", "round-robin", "gradient", "statistics"]
    spread: Literal["auto", "keys", "slices"]


def planner_options(**given: str) -> PlannerOptions:
    """Return the options by name; raise if a name or value is unknown."""
    types = {option.name: option.type for option in option_table()}
    for name, value in given.items():
        if name not in types:
            raise TypeError(f"unknown option `{name}`; expected one of {', '.join(types)}")
        if value not in list(types[name]):
            *most, last = (f'"{member.value}"' for member in types[name])
            raise QueryError(f"invalid value for {name}: {value!r}", hint=f"expected {', '.join(most)} or {last}.")
    return PlannerOptions(**{name: types[name](value) for name, value in given.items()})  # type: ignore[arg-type]
