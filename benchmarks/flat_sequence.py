"""A seed in; how much faster SEQ(A a, B b, C c) WHERE [key] WITHIN w is detected than DuckDB joins it, out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.logical.bound import (
    Binding,
    BoundQuery,
    ClassRule,
    Column,
    EventClass,
    Kind,
    Leaf,
    Sequence,
    TimeKind,
    Variable,
    WholeEvent,
    Window,
    WindowKind,
)
from streamsift.physical.plan import DetectPlan, Pair, Step

EVENTS = 2_000_000
KEYS = 1_000
EVENTS_PER_KEY_AND_WINDOW = 24
MICROSECONDS_PER_EVENT = 50
WINDOW_US = MICROSECONDS_PER_EVENT * KEYS * EVENTS_PER_KEY_AND_WINDOW


def make_events(classes: int, events: int = EVENTS, seed: int = 1) -> pa.Table:
    """Events in order of time, a few of them at the same microsecond; classes and keys uniformly at random."""
    random = np.random.default_rng(seed)
    names = pa.array([chr(ord("A") + number) for number in range(classes)])
    time = np.sort(random.integers(0, events * MICROSECONDS_PER_EVENT, events))
    return pa.table(
        {
            "ts": pa.array(time, pa.timestamp("us")),
            "kind": names.take(pa.array(random.integers(0, classes, events))),
            "key": random.integers(0, KEYS, events),
            "value": random.random(events),
        }
    )


def make_plan(schema: pa.Schema) -> DetectPlan:
    variables = tuple(
        Variable(number, name.lower(), EventClass(name, ClassRule.TYPE), None, 0) for number, name in enumerate("ABC")
    )
    query = BoundQuery(
        pattern=Sequence(tuple(Leaf(number) for number in range(3))),
        variables=variables,
        predicates=(),
        window=Window(WindowKind.TIME, Fraction(WINDOW_US, 10**6), False, ""),
        partition_by=(),
        group_by=(),
        aggregates=(),
        ranking=None,
        update=None,
        emit=next(iter(Emit)),
        output=tuple(WholeEvent(v.index, v.name) for v in variables),
        show_bounds=True,
        binding=Binding("ts", TimeKind.TIMESTAMP, "kind"),
        schema=schema,
        text="",
    )

    def same_key(step: int) -> Pair:
        sides = [Column(variable, "key", Kind.INTEGER) for variable in (step - 1, step)]
        return Pair(step - 1, "=", sides[0], sides[1])

    steps = tuple(Step(k, (), (same_key(k),) if k else (), (), ()) for k in range(3))
    return DetectPlan(query, steps, ("key",), ())
