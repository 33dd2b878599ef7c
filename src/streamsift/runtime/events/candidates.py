"""A plan and its events in, the places in the stream that may bind each step out: its class and local predicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.bound import BoundQuery, ClassRule, EventClass, Expr
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.arrays.grouping import chosen, group_entries
from streamsift.runtime.events.class_names import find_names
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import plain
from streamsift.runtime.expressions.evaluate import Rows, mask


def candidates(plan: Alternative, events: Events) -> list[Int32]:
    """For each step the places in the stream whose rows are of its class and pass its local predicates."""
    classes = [plan.query.variables[step.variable].event_class for step in plan.steps]
    by_class = _in_partitions(places_by_class(plan, events), plan.query, events)
    known: dict[tuple[int, tuple[Expr, ...]], Int32] = {}
    found = []
    for step, event_class in zip(plan.steps, classes, strict=True):
        # Steps of the same rows that ask the same have the same places.
        key = id(by_class[event_class]), tuple(predicate.renamed({step.variable: 0}) for predicate in step.local)
        if key not in known:
            known[key] = _passing(step.local, by_class[event_class], plan, events)
        found.append(known[key])
    return found


def _passing(predicates: Sequence[Expr], places: Int32, plan: Alternative, events: Events) -> Int32:
    if not predicates or not places.size:
        return places
    rows = stream_rows(plan, events, places)
    keep = np.ones(places.size, np.bool_)
    for predicate in predicates:
        keep &= mask(predicate, rows)
    return chosen(places, keep)


def step_rows(plan: Alternative, events: Events, rows: Int32) -> Rows:
    """What the expressions of one step see at these rows of the table, whichever variable they name."""
    return Rows(lambda _, name: events.columns.at(name, rows), rows.size, plan.query.text)


def stream_rows(plan: Alternative, events: Events, places: Int32) -> Rows:
    """The same at ascending places of the stream; nothing is gathered if they are all of the table."""
    if events.in_input_order and places.size == events.columns.table.num_rows:
        return Rows(lambda _, name: events.columns.whole(name), places.size, plan.query.text)
    return step_rows(plan, events, events.rows_at(places))


def places_by_class(plan: Alternative, events: Events) -> dict[EventClass, Int32]:
    """The places of the rows of each class that a step has, negated ones too, whatever partition they are in."""
    classes = {plan.query.variables[step.variable].event_class for step in plan.all_steps()}
    found = {each: events.by_class[each] for each in classes if each in events.by_class}
    typed = sorted({each.name for each in classes - found.keys() if each.rule is ClassRule.TYPE})
    by_name = _places_by_name(typed, plan.query, events) if typed else {}
    everywhere = np.arange(events.rows.size, dtype=np.int32)
    for event_class in classes - found.keys():
        match event_class.rule:
            case ClassRule.TYPE:
                found[event_class] = by_name[event_class.name]
            case ClassRule.ANY | ClassRule.ALL:
                found[event_class] = everywhere
            case ClassRule.WITH:
                assert event_class.predicate is not None
                holds = mask(event_class.predicate, stream_rows(plan, events, everywhere))
                found[event_class] = np.flatnonzero(holds).astype(np.int32)
    return found


def _in_partitions(found: dict[EventClass, Int32], query: BoundQuery, events: Events) -> dict[EventClass, Int32]:
    """Without the rows that are in no partition."""
    if not query.partition_by or not events.window_position.size or events.window_position.min() >= 0:
        return found
    within = {id(places): places[events.window_position[places] >= 0] for places in found.values()}
    return {event_class: within[id(places)] for event_class, places in found.items()}


def _places_by_name(names: Sequence[str], query: BoundQuery, events: Events) -> dict[str, Int32]:
    """The places of the rows of each type: one pass, however many names."""
    assert query.binding.type is not None
    types = events.columns.whole(query.binding.type)
    if pa.types.is_null(types.type):
        return dict.fromkeys(names, np.empty(0, np.int32))
    if pa.types.is_dictionary(types.type):
        of_value = pc.index_in(plain(types.dictionary), value_set=_texts(names, plain(types.dictionary).type))
        rows, numbers = _known(of_value.take(types.indices))
    elif pa.types.is_string(types.type) and all(names):
        rows, numbers = find_names(names, types)
    else:
        types = plain(types)
        rows, numbers = _known(pc.index_in(types, value_set=_texts(names, types.type)))
    if not events.in_input_order:
        of_row = np.full(len(types), -1, np.int32)
        of_row[rows] = numbers
        rows, numbers = np.arange(events.rows.size, dtype=np.int32), of_row[events.rows]
    starts, order = group_entries(numbers, len(names))
    places = rows[order]
    return {name: places[starts[number] : starts[number + 1]] for number, name in enumerate(names)}


def _texts(names: Sequence[str], kind: pa.DataType) -> pa.Array:
    return pa.array(names, pa.string()).cast(kind)


def _known(numbers: pa.Array) -> tuple[Int32, Int32]:
    """Where an int32 column is not null, and its values there."""
    filled = pc.fill_null(numbers, -1).to_numpy()
    rows = np.flatnonzero(filled >= 0).astype(np.int32)
    return rows, filled[rows]
