"""Events that are counted on from earlier ones in, the same behind examples of what their columns may hold out.

The examples make measures look the same for every batch (`steady_measures.py`); no step of the plan binds them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, Column, Kind
from streamsift.physical.plan import AggregatePlan, Alternative, Step
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.count.incremental_measures import with_examples
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.state import the_only_key

IS_EVENT = "$event"  # Column.name: a row is an event, and no example


def prepared(query: BoundQuery, table: pa.Table) -> Events:
    """The events after rows that are examples of what their columns may hold."""
    table, count = with_examples(query, table)
    events = prepare(query, table)
    is_event = np.arange(table.num_rows) >= count
    return replace(events, columns=events.columns.with_array(IS_EVENT, pa.array(is_event)))


def of_events(plan: AggregatePlan) -> AggregatePlan:
    """The plan with steps that bind events only, and no examples."""

    def marked(step: Step) -> Step:
        return replace(step, local=(*step.local, Column(step.variable, IS_EVENT, Kind.BOOLEAN)))

    def of(alternative: Alternative) -> Alternative:
        negations = tuple(replace(n, steps=tuple(map(marked, n.steps))) for n in alternative.negations)
        return replace(alternative, steps=tuple(map(marked, alternative.steps)), negations=negations)

    branches = tuple(replace(branch, alternative=of(branch.alternative)) for branch in plan.branches)
    detection = replace(plan.detection, alternatives=tuple(branch.alternative for branch in branches))
    return replace(plan, branches=branches, detection=detection)


def key_rows(events: Events, places: Int32, columns: tuple[str, ...]) -> pa.Table:
    """The keys at these places."""
    if not columns:
        return the_only_key(places.size)
    rows = events.rows_at(places)
    return pa.table({name: events.columns.at(name, rows) for name in columns})
