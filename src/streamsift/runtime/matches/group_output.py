"""Matches with groups in, Arrow record batches of the result out: a group is an array of structs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import TIME, Column, Computed, TimeKind, WholeEvent
from streamsift.physical.plan import Alternative
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import take
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.matches.group_matches import GroupMatches
from streamsift.runtime.matches.group_values import GroupValues
from streamsift.runtime.matches.output import event_type

BATCH_ELEMENTS = 1 << 20


def group_batches(
    alternative: Alternative, schema: pa.Schema, events: Events, found: GroupMatches
) -> Iterator[pa.RecordBatch]:
    """The result of the matches, few elements at a time."""
    part = np.cumsum(found.sizes.sum(axis=0)) // BATCH_ELEMENTS
    borders = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(found)]
    for begin, end in pairwise(borders):
        yield from _batches(alternative, schema, events, found.only(slice(begin, end)))


def _batches(
    alternative: Alternative, schema: pa.Schema, events: Events, found: GroupMatches
) -> Iterator[pa.RecordBatch]:
    try:
        yield _batch(alternative, schema, events, found)
    except pa.ArrowInvalid:
        # Texts so long that a batch of them passes Arrow's 2 GB: half the matches at a time.
        if len(found) < 2:
            raise
        half = len(found) // 2
        yield from _batches(alternative, schema, events, found.only(slice(0, half)))
        yield from _batches(alternative, schema, events, found.only(slice(half, len(found))))


def _batch(alternative: Alternative, schema: pa.Schema, events: Events, found: GroupMatches) -> pa.RecordBatch:
    assert alternative.groups is not None
    query, values = alternative.query, GroupValues(alternative.query, alternative.groups, events, found)
    arrays: list[pa.Array] = []
    for item, field in zip(query.output, schema, strict=False):
        match item:
            case WholeEvent(variable=variable) if not values.is_bound(variable):
                arrays.append(pa.nulls(len(found), field.type))
            case WholeEvent(variable=variable):
                arrays.append(_whole(query.schema, values, variable))
            case Computed(expression=Column(variable=variable, name=name)):
                arrays.append(_cast(values.column(variable, name), field.type))
            case Computed(expression=expression):
                arrays.append(_cast(evaluate(expression, values.rows()), field.type))
    if query.show_bounds:
        time = TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time
        bound = found.events()
        for ends in (bound.min(axis=0), bound.max(axis=0)):
            arrays.append(take(events.columns.whole(time), pa.array(events.rows_at(ends))))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _whole(schema: pa.Schema, values: GroupValues, variable: int) -> pa.Array:
    fields = list(event_type(schema))
    parts = [_cast(values.column(variable, field.name), field.type) for field in fields]
    structs = pa.StructArray.from_arrays(parts, fields=fields)
    if not values.is_group(variable):
        return structs
    offsets = values.elements(variable)[1]
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), structs)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
