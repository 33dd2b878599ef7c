"""A detection plan and a table in, the matches out: as rows of the table, or as record batches of the result.

Contract: matches come in lexicographic order of their events' places in the stream (time, order, input), and memory is
bounded by the events and one chunk of partial matches per stage, whatever the number of matches. Checked by
tests/runtime/test_detect.py. The state is the events alone: what a stage holds can be rebuilt from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import Expr
from streamsift.physical.plan import DetectPlan
from streamsift.runtime import kernels
from streamsift.runtime.buffers import Packed, pack
from streamsift.runtime.evaluate import Rows, mask
from streamsift.runtime.events import BadRows, Events, prepare
from streamsift.runtime.kernels import Int32
from streamsift.runtime.output import known_columns, output_schema, result_batches

Gathered = dict[tuple[int, str], pa.Array]

CHUNK_MATCHES = 1 << 16


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps [first, last] that one kernel call binds, and the predicates to apply once they are bound."""

    first: int
    last: int
    filters: tuple[Expr, ...]


def detect(
    plan: DetectPlan,
    table: pa.Table,
    *,
    bad_rows: str = "fail",
    report: Callable[[BadRows], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The result of the plan on a table, in batches; none if nothing matches. Bad rows raise at once."""
    events = prepare(plan.query, table, bad_rows, report)
    return _batches(plan, events)


def _batches(plan: DetectPlan, events: Events) -> Iterator[pa.RecordBatch]:
    schema = output_schema(plan.query)
    known = known_columns(plan, CHUNK_MATCHES)
    for rows in match_rows(plan, events):
        yield from result_batches(plan, schema, events, known, rows)


def match_rows(plan: DetectPlan, events: Events, chunk: int = CHUNK_MATCHES) -> Iterator[Int32]:
    """The matches in chunks [steps, m]: the table row that each step binds."""
    packed = pack(plan, events)
    if packed is None:
        return
    waiting: list[Int32] = []
    for entries in _matches(plan, events, packed, chunk):
        rows = np.empty(entries.shape, np.int32)
        for number, of_step in enumerate(packed.rows):
            np.take(of_step, entries[number], out=rows[number], mode="clip")  # clip: no bounds check
        waiting.append(rows)
        # Filters may leave few matches of a chunk: gather them, as every batch has its price.
        if sum(part.shape[1] for part in waiting) >= chunk // 2:
            yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting, axis=1)
            waiting = []
    if waiting:
        yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting, axis=1)


def stages(plan: DetectPlan) -> list[Stage]:
    """The steps cut after every one with filters. The first stage is step 0 alone: its entries are partial matches."""
    found = [Stage(0, 0, plan.steps[0].filters)]
    first = 1
    for number, step in enumerate(plan.steps):
        if number >= 1 and (step.filters or number == len(plan.steps) - 1):
            found.append(Stage(first, number, step.filters))
            first = number + 1
    return found


def _matches(plan: DetectPlan, events: Events, packed: Packed, chunk: int) -> Iterator[Int32]:
    first, *rest = stages(plan)
    starts = np.arange(packed.rows[0].size, dtype=np.int32)[None, :]
    size = chunk if first.filters or not rest else starts.shape[1]
    for begin in range(0, starts.shape[1], size):
        partials = _filtered(plan, events, packed, first.filters, starts[:, begin : begin + size])
        if partials.shape[1]:
            yield from _extended(plan, events, packed, rest, partials, chunk)


def _extended(
    plan: DetectPlan, events: Events, packed: Packed, rest: list[Stage], partials: Int32, chunk: int
) -> Iterator[Int32]:
    """The partial matches extended by the remaining stages, depth first over chunks.

    A chunk is a view of memory that is written again when the next one is asked for.
    """
    if not rest:
        yield partials
        return
    stage, *later = rest
    out = np.empty((stage.last + 1, chunk), np.int32)
    match = np.zeros(stage.last + 1, np.int32)
    ranges = np.zeros((stage.last + 1, 2), np.int64)
    cursor = np.zeros(kernels.CURSOR_FIELDS, np.int64)
    partials = np.ascontiguousarray(partials)
    while not cursor[kernels.DONE]:
        count = kernels.extend(packed.buffers, partials, stage.first, stage.last, cursor, match, ranges, out)
        found = _filtered(plan, events, packed, stage.filters, out[:, :count])
        if found.shape[1]:
            yield from _extended(plan, events, packed, later, found, chunk)


def _filtered(plan: DetectPlan, events: Events, packed: Packed, filters: tuple[Expr, ...], entries: Int32) -> Int32:
    """The partial matches for which every filter is true; the predicates see the columns of the rows they bind."""
    step_of = {step.variable: number for number, step in enumerate(plan.steps)}
    for predicate in filters:
        if not entries.shape[1]:
            break
        gathered: Gathered = {}

        def column(variable: int, name: str, seen: Int32 = entries, cache: Gathered = gathered) -> pa.Array:
            if (variable, name) not in cache:
                step = step_of[variable]
                cache[variable, name] = events.columns.at(name, packed.rows[step][seen[step]])
            return cache[variable, name]

        entries = entries[:, mask(predicate, Rows(column, entries.shape[1], plan.query.text))]
    return entries
