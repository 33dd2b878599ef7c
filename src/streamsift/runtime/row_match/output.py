"""Build result rows from matches: partition columns, measures and, for ALL ROWS, the columns of the input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamsift.language.row_match.syntax import RowsPerMatch
from streamsift.physical.row_match import RowPlan
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.row_match.matching import RowMatches
from streamsift.runtime.row_match.measures import MatchValues, OutputRows
from streamsift.runtime.row_match.order import SortedRows

BATCH_ROWS = 1 << 18


def result_batches(plan: RowPlan, rows: SortedRows, matches: RowMatches) -> Iterator[pa.RecordBatch]:
    """Yield the result rows of matches, within a partition in order of match start."""
    output = output_rows(plan, matches)
    if output.row.size == 0:
        return
    values = MatchValues(plan, rows, matches)
    for first in range(0, output.row.size, BATCH_ROWS):
        yield _batch(plan, rows, values, output.part(first, first + BATCH_ROWS), matches)


def output_rows(plan: RowPlan, matches: RowMatches) -> OutputRows:
    """Return the rows of the result: one for each match, or one for each of its rows that is not excluded."""
    count = matches.start.size
    every = np.arange(count, dtype=np.int64)
    if not plan.all_rows:
        last = matches.start + np.maximum(matches.length - 1, 0)
        return OutputRows(every, last, matches.offsets[1:])
    # A row for each row of a match, and one for each empty match and unmatched row.
    single = matches.length == 0
    if plan.bound.rows_per_match is RowsPerMatch.OMIT_EMPTY:
        single &= matches.number == 0
    match = np.repeat(every, matches.length + single)
    first = np.cumsum(matches.length + single) - (matches.length + single)
    place = np.arange(match.size, dtype=np.int64) - first[match]
    end = matches.offsets[match] + np.where(single[match], 0, place + 1)
    excluded = np.array(plan.program.excluded, np.bool_)
    if excluded.any():
        kept: Bool = (
            single[match] | ~excluded[matches.labels[np.maximum(end - 1, 0)]] if matches.labels.size else single
        )
        match, place, end = match[kept], place[kept], end[kept]
    return OutputRows(match, matches.start[match] + place, end)


def _batch(
    plan: RowPlan, rows: SortedRows, values: MatchValues, output: OutputRows, matches: RowMatches
) -> pa.RecordBatch:
    bound = plan.bound
    measures = {measure.name: measure for measure in bound.measures}
    places = pa.array(output.row)
    unmatched: Bool = matches.number[output.match] == 0
    columns = []
    for field in bound.output:
        if field.name in measures:
            array = values.measure(measures[field.name], output, unmatched)
        else:
            array = rows.column(field.name).take(places)
        columns.append(array if array.type == field.type else array.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=bound.output)
