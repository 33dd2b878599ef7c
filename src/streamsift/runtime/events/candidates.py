"""Find the candidates of each step: the places of its class that pass its single-event predicates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from streamsift.logical.bound import BoundQuery, ClassRule, EventClass, Expr
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Int32, UInt8
from streamsift.runtime.arrays.grouping import chosen, group_entries
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import nulls, plain
from streamsift.runtime.expressions.evaluate import Rows, mask


def candidates(plan: Alternative, events: Events) -> list[Int32]:
    """Return for each step the places of its class that pass its single-event predicates."""
    classes = [plan.query.variables[step.variable].event_class for step in plan.steps]
    by_class = _in_partitions(places_by_class(plan, events), plan.query, events)
    passing: dict[tuple[int, tuple[Expr, ...]], Int32] = {}
    of_steps = []
    for step, event_class in zip(plan.steps, classes, strict=True):
        # Steps of one class with equal predicates share their places.
        key = id(by_class[event_class]), tuple(predicate.renamed({step.variable: 0}) for predicate in step.local)
        if key not in passing:
            passing[key] = _passing(step.local, by_class[event_class], plan, events)
        of_steps.append(passing[key])
    return of_steps


def _passing(predicates: Sequence[Expr], places: Int32, plan: Alternative, events: Events) -> Int32:
    if not predicates or not places.size:
        return places
    rows = stream_rows(plan.query, events, places)
    keep = np.ones(places.size, np.bool_)
    for predicate in predicates:
        keep &= mask(predicate, rows)
    return chosen(places, keep)


def step_rows(plan: Alternative, events: Events, rows: Int32) -> Rows:
    """Return the given table rows for evaluating expressions of one step; the variable is ignored."""
    return Rows(lambda _, name: events.columns.at(name, rows), rows.size, plan.query.text)


def stream_rows(query: BoundQuery, events: Events, places: Int32) -> Rows:
    """Return the rows at ascending places for evaluating expressions of one step; the whole table is not copied."""
    is_whole = events.in_input_order and places.size == events.columns.table.num_rows
    rows = None if is_whole else events.rows_at(places)
    return Rows(lambda _, name: events.columns.at(name, rows), places.size, query.text)


def places_by_class(plan: Alternative, events: Events) -> dict[EventClass, Int32]:
    """Return the places of each class that a step binds, including negated steps and rows without a partition."""
    classes = {plan.query.variables[step.variable].event_class for step in plan.all_steps()}
    by_class = {each: events.by_class[each] for each in classes if each in events.by_class}
    typed = sorted({each.name for each in classes - by_class.keys() if each.rule is ClassRule.TYPE})
    by_name = _places_by_name(typed, plan.query, events) if typed else {}
    everywhere = np.arange(events.rows.size, dtype=np.int32)
    for event_class in classes - by_class.keys():
        match event_class.rule:
            case ClassRule.TYPE:
                by_class[event_class] = by_name[event_class.name]
            case ClassRule.ANY | ClassRule.ALL:
                by_class[event_class] = everywhere
            case ClassRule.WITH:
                assert event_class.predicate is not None
                holds = mask(event_class.predicate, stream_rows(plan.query, events, everywhere))
                by_class[event_class] = np.flatnonzero(holds).astype(np.int32)
    return by_class


def _in_partitions(by_class: dict[EventClass, Int32], query: BoundQuery, events: Events) -> dict[EventClass, Int32]:
    """Drop the places of rows without a partition."""
    if not query.partition_by or not events.window_position.size or events.window_position.min() >= 0:
        return by_class
    within = {id(places): places[events.window_position[places] >= 0] for places in by_class.values()}
    return {event_class: within[id(places)] for event_class, places in by_class.items()}


def _places_by_name(names: Sequence[str], query: BoundQuery, events: Events) -> dict[str, Int32]:
    """Return the places of the rows of each type, in one pass for all names."""
    assert query.binding.type is not None
    types = events.columns.whole(query.binding.type)
    if pa.types.is_null(types.type):
        return dict.fromkeys(names, np.empty(0, np.int32))
    if pa.types.is_string(types.type) and all(names):
        rows, numbers = _find_names(names, types)
    else:
        is_encoded = pa.types.is_dictionary(types.type)
        values = plain(types.dictionary if is_encoded else types)
        index = pc.index_in(values, value_set=pa.array(names, pa.string()).cast(values.type))
        of_row = pc.fill_null(index.take(types.indices) if is_encoded else index, -1).to_numpy()
        rows = np.flatnonzero(of_row >= 0).astype(np.int32)
        numbers = of_row[rows]
    if not events.in_input_order:
        of_row = np.full(len(types), -1, np.int32)
        of_row[rows] = numbers
        rows, numbers = np.arange(events.rows.size, dtype=np.int32), of_row[events.rows]
    starts, order = group_entries(numbers, len(names))
    places = rows[order]
    return {name: places[starts[number] : starts[number + 1]] for number, name in enumerate(names)}


def _find_names(names: Sequence[str], texts: pa.Array) -> tuple[Int32, Int32]:
    """Return the rows whose string is one of `names` (none is empty), and the number of the name for each."""
    _, offsets, data = texts.buffers()
    if data is None or data.size == 0:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    rows, numbers = _match_names(
        np.frombuffer(offsets, np.int32, count=len(texts) + 1, offset=texts.offset * 4),
        np.frombuffer(data, np.uint8),
        *_hash_table(tuple(names)),
    )
    missing = nulls(texts)
    if missing is not None:
        keep = ~missing[rows]
        rows, numbers = rows[keep], numbers[keep]
    return rows, numbers


@lru_cache
def _hash_table(names: tuple[str, ...]) -> tuple[Int32, UInt8, Int32, Int32]:
    """Return the offsets and bytes of the names, and the buckets and chain of their hash table."""
    encoded = [name.encode() for name in names]
    buckets, chain = np.full(256, -1, np.int32), np.full(len(names), -1, np.int32)
    for number, name in enumerate(encoded):
        mark = (31 * name[0] + 7 * name[-1] + len(name)) & 255
        chain[number], buckets[mark] = buckets[mark], number
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return offsets, np.frombuffer(b"".join(encoded), np.uint8), buckets, chain


@njit(cache=True, nogil=True)
def _match_names(
    offsets: Int32, data: UInt8, name_offsets: Int32, name_data: UInt8, buckets: Int32, chain: Int32
) -> tuple[Int32, Int32]:
    """Find the strings that equal one of the names; return their indices, ascending, and the number of each name.

    String i is data[offsets[i]:offsets[i + 1]] in UTF-8; names are stored likewise, and none is empty. The hash table
    uses (31 first byte + 7 last byte + length) mod 256: buckets [256] has a name with that hash or -1, chain [names]
    the next one.
    """
    texts = np.empty(offsets.size - 1, np.int32)
    count = 0
    # Filter by hash first, without a branch to mispredict: a string that is not kept is overwritten by the next one.
    for i in range(texts.size):
        length = offsets[i + 1] - offsets[i]
        first = int(data[min(offsets[i], data.size - 1)])
        last = int(data[max(offsets[i + 1] - 1, 0)])
        texts[count] = i
        count += buckets[(31 * first + 7 * last + length) & 255] >= 0
    codes = np.empty(count, np.int32)
    kept = 0
    for candidate in range(count):
        i = texts[candidate]
        start = offsets[i]
        length = offsets[i + 1] - start
        code = -1
        if length > 0:
            code = buckets[(31 * int(data[start]) + 7 * int(data[start + length - 1]) + length) & 255]
        while code >= 0:
            name = name_offsets[code]
            same = 0
            if name_offsets[code + 1] - name == length:
                while same < length and name_data[name + same] == data[start + same]:
                    same += 1
                if same == length:
                    break
            code = chain[code]
        texts[kept] = i
        codes[kept] = code
        kept += code >= 0
    return texts[:kept], codes[:kept]
