"""Declare the options that override the cost models. No option changes the rows of a result."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple, TypedDict, get_type_hints

from streamsift.errors import QueryError


class Cache(StrEnum):
    """When results of inner sub-patterns are cached for later partial matches."""

    AUTO = "auto"  # if the cost model expects enough cache hits
    ON = "on"  # wherever possible
    OFF = "off"


class PlanShape(StrEnum):
    """The join tree that finds the events of a match."""

    AUTO = "auto"  # the cheapest tree for the measured rates and selectivities, adapted as they change
    LEFT = "left"  # ((1 2) 3) 4: left-deep
    RIGHT = "right"  # 1 (2 (3 4)): right-deep
    BUSHY = "bushy"  # (1 2) (3 4): both halves are joins
    INNER = "inner"  # 1 ((2 3) 4): from the middle outwards


class Condense(StrEnum):
    """When events with equal values are compared once, as a group."""

    AUTO = "auto"  # per step, if the measured condensation degree promises a benefit
    ON = "on"  # wherever possible
    OFF = "off"


class CountBy(StrEnum):
    """How an aggregation counts; `plan.Strategy` describes each way."""

    AUTO = "auto"  # the cheapest that the pattern allows
    PREFIX = "prefix"
    SEM = "sem"
    TWO_STACK = "two-stack"
    PAIRS = "pairs"
    DETECT = "detect"


class RankBy(StrEnum):
    """How a ranking finds the best matches. A strategy that does not apply is skipped."""

    AUTO = "auto"  # lazy, nra, join or enumerate: the first that applies
    LAZY = "lazy"  # best paths of the stratified graph, one by one, for all windows at once
    K_SSP = "k-ssp"  # the k best paths of each window, by the algorithm of the CPR thesis
    K_DSSP = "k-dssp"  # the same, reusing the paths that stay in the window when it moves
    NRA = "nra"  # the components of the score, each best first, merged as they are read
    TA = "ta"  # the same, with lookups in the other components for each match that is read
    JOIN = "join"  # events best first, until no unread event can reach the top k
    ENUMERATE = "enumerate"  # all matches


class Schedule(StrEnum):
    """The component that a merge reads next (nra and ta)."""

    WABS = "wabs"  # in the proportions that would have reached an earlier bound at the lowest cost
    ROUND_ROBIN = "round-robin"  # each in turn
    GRADIENT = "gradient"  # the one whose scores fell most over its last matches
    STATISTICS = "statistics"  # the one expected to lower the bound most for its cost, from its scores so far


class Spread(StrEnum):
    """How the work of one query is distributed over Spark tasks."""

    AUTO = "auto"  # by time slice (per key if there is one), or by a partial key if that replicates fewer events
    KEYS = "keys"  # by key only, or by a partial key; one task if there is neither
    SLICES = "slices"  # by time slice, per key if there is one


class PlannerOption(NamedTuple):
    """One planner option."""

    name: str
    type: type[StrEnum]
    default: StrEnum
    help: str
    applies_to: str  # which queries


def _option(default: StrEnum, help: str, applies_to: str) -> Any:
    return field(default=default, metadata={"help": help, "applies_to": applies_to})


@dataclass(frozen=True, slots=True)
class PlannerOptions:
    """All planner options. The command line, the checks of Python keywords and the documentation read this table."""

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
    """The planner options as keyword arguments of `Query.run`, `run_local` and `explain`, for type checkers."""

    # tests/physical/test_options.py compares them with the table.
    cache: Literal["auto", "on", "off"]
    plan: Literal["auto", "left", "right", "bushy", "inner"]
    condense: Literal["auto", "on", "off"]
    strategy: Literal["auto", "prefix", "sem", "two-stack", "pairs", "detect"]
    rank: Literal["auto", "lazy", "k-ssp", "k-dssp", "nra", "ta", "join", "enumerate"]
    schedule: Literal["wabs", "round-robin", "gradient", "statistics"]
    spread: Literal["auto", "keys", "slices"]


def planner_options(**given: str) -> PlannerOptions:
    """Return the options; raise if a name or value is unknown."""
    types = {option.name: option.type for option in option_table()}
    for name, value in given.items():
        if name not in types:
            raise TypeError(f"unknown option `{name}`; expected one of {', '.join(types)}")
        if value not in list(types[name]):
            *most, last = (f'"{member.value}"' for member in types[name])
            raise QueryError(f"invalid value for {name}: {value!r}", hint=f"expected {', '.join(most)} or {last}.")
    return PlannerOptions(**{name: types[name](value) for name, value in given.items()})  # type: ignore[arg-type]
