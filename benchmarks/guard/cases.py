"""List the guarded cases: a part of the engine, a query that exercises it, and the most similar frozen loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

import streamsift as ss
from benchmarks.data.uniform import REAL, uniform_events
from streamsift.physical.plan.plan import AggregatePlan, DetectPlan, RankPlan
from streamsift.runtime import match_places
from streamsift.runtime.count.run import aggregate
from streamsift.runtime.detect.run import detect
from streamsift.runtime.events.prepare import prepare_relevant
from streamsift.runtime.rank.run import rank

EVENTS = 200_000
CLASSES = 8
KEYS = 500


class Part(StrEnum):
    """The part of a run that is timed."""

    PREPARE = "prepare"  # from a table to sorted, filtered events
    ROWS = "rows"  # from events to the rows of matches
    WHOLE = "whole"  # from events to result batches


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    query: str
    part: Part
    frozen: str
    choices: tuple[tuple[str, str], ...] = ()


CASES = (
    Case("prepare", "SEQ(A a, B b) WITHIN 10", Part.PREPARE, "memory"),
    Case("sequence", "SEQ(A a, B b, C c) WITHIN 60", Part.ROWS, "branches"),
    Case("sequence by key", "SEQ(A a, B b, C c) WHERE [key] WITHIN 60000", Part.ROWS, "branches"),
    Case("comparison", "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 100", Part.ROWS, "branches"),
    Case("structs of matches", "SEQ(A a, B b, C c) WITHIN 60", Part.WHOLE, "memory"),
    Case("negation", "SEQ(A a, !D d, B b) WHERE [key] WITHIN 40000", Part.ROWS, "branches"),
    Case("nested negation", "SEQ(A a, !SEQ(D d, E e), B b) WITHIN 100", Part.ROWS, "branches"),
    Case("groups", "SEQ(A a, B+ b, C c) WITHIN 60", Part.WHOLE, "memory"),
    Case("any order", "A a & B b & C c WITHIN 30", Part.ROWS, "branches"),
    Case("bushy joins", "SEQ(A a, B b, C c, D d) WITHIN 60", Part.ROWS, "branches", (("plan", "bushy"),)),
    Case(
        "condensed",
        "SEQ(A a, B b, C c) WHERE a.y > b.y AND b.y > c.y WITHIN 100",
        Part.ROWS,
        "branches",
        (("condense", "on"),),
    ),
    Case(
        "count, two-stack",
        "SEQ(A a, B b, C c) AGG COUNT WITHIN 1000",
        Part.WHOLE,
        "additions",
        (("strategy", "two-stack"),),
    ),
    Case(
        "count, start marking",
        "SEQ(A a, B b, C c) AGG COUNT WITHIN 200",
        Part.WHOLE,
        "additions",
        (("strategy", "sem"),),
    ),
    Case("count by key", "SEQ(A a, B b, C c) GROUP BY key AGG COUNT WITHIN 20000", Part.WHOLE, "additions"),
    Case("sums", "SEQ(A a, B b, C c) AGG COUNT, SUM(b.x), MAX(c.x) WITHIN 1000", Part.WHOLE, "additions"),
    Case(
        "count of pairs",
        "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AGG COUNT WITHIN 25",
        Part.WHOLE,
        "additions",
    ),
    Case(
        "ranking",
        "SEQ(A a, B b, C c) WITHIN 1000 UPDATE 200 PREF MAX[a.x + b.x + c.x] RETURN 5",
        Part.WHOLE,
        "branches",
    ),
    Case(
        "ranking by key",
        "SEQ(A a, B b, C c) GROUP BY key WITHIN 20000 PREF MAX[a.x + c.x] RETURN 5",
        Part.WHOLE,
        "branches",
    ),
    Case(
        "rank join",
        "SEQ(A a, B b, C c) WITHIN 50 UPDATE 500 PREF MAX[a.x * b.x * c.x] RETURN 5",
        Part.WHOLE,
        "branches",
    ),
)


def make_events() -> pa.Table:
    """Return events whose `x` rarely repeats and whose `y` has few values."""
    return uniform_events(EVENTS, CLASSES, key=KEYS, x=REAL, y=20)


def runner(case: Case, table: pa.Table) -> Callable[[], int]:
    """Run the timed part and return the number of rows."""
    plan = ss.query(case.query).plan(table.schema, "t", "kind", None, dict(case.choices))
    if case.part is Part.PREPARE:
        return lambda: prepare_relevant(plan, table).rank.size
    events = prepare_relevant(plan, table)
    match plan:
        case DetectPlan() if case.part is Part.ROWS:
            return lambda: sum(rows.shape[1] for rows in match_places(plan.alternatives[0], events, plan.choices))
        case DetectPlan():
            return lambda: sum(batch.num_rows for batch in detect(plan, events))
        case AggregatePlan():
            return lambda: sum(batch.num_rows for batch in aggregate(plan, events))
        case RankPlan():
            return lambda: sum(batch.num_rows for batch in rank(plan, events))
    raise AssertionError(plan)
