"""Find rows without a usable time or order; raise an error, or drop and report them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError, BadRowsWarning, warn
from streamsift.logical.bound import Binding, BoundQuery, TimeKind
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Int64
from streamsift.runtime.events.times import time_and_order
from streamsift.runtime.expressions.columns import Columns, fixed_width, nulls, plain

SHOWN_ROWS, SHOWN_COLUMNS, SHOWN_CHARACTERS = 5, 6, 60  # in errors and warnings


@dataclass(frozen=True, slots=True)
class BadRows:
    """The number of rows without a usable time or order, and the values of the first few."""

    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        shown = "".join(f"\n  {example}" for example in self.examples)
        more = f"\n  and {self.count - len(self.examples):,} more" if self.count > len(self.examples) else ""
        return f"{self.count:,} {'row has' if self.count == 1 else 'rows have'} no usable time or order:{shown}{more}"


Report: TypeAlias = Callable[[BadRows], None] | None


def bad_mask(time: pa.Array, order: Int64) -> Bool | None:
    """Return a mask of the rows without a usable time or order; None if there are none."""
    time = plain(time)
    bad = nulls(time)
    if pa.types.is_floating(time.type):
        nan = np.isnan(fixed_width(time.cast(pa.float64()), np.dtype(np.float64)))
        bad = nan if bad is None else bad | nan
    if order.size:
        bad = (order == UNKNOWN) if bad is None else bad | (order == UNKNOWN)
    return bad if bad is not None and bad.any() else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def find_bad_rows(query: BoundQuery, table: pa.Table) -> tuple[Bool, BadRows] | None:
    """Return a mask and a description of the rows without a usable time or order; None if there are none."""
    binding, columns = query.binding, Columns(table)
    bad = bad_mask(*time_and_order(columns, binding))
    return None if bad is None else (bad, _described(bad, binding, columns))


def bad_rows_error(bad_rows: BadRows, binding: Binding) -> BadInputError:
    rule = f" (`{binding.time}` must be an ISO-8601 timestamp)" if binding.time_kind is TimeKind.TEXT else ""
    return BadInputError(f'{bad_rows}\nHint: fix these rows{rule}, or drop them with bad_rows="drop".')


def _described(bad: Bool, binding: Binding, columns: Columns) -> BadRows:
    """Describe bad rows: their number and the values of the first few."""
    first = np.flatnonzero(bad)[:SHOWN_ROWS]
    # Show time and order first, then enough other columns to identify the row.
    bound = [name for name in (binding.time, binding.order, binding.type) if name is not None]
    names = [*bound, *(name for name in columns.table.column_names if name not in bound)][:SHOWN_COLUMNS]
    shown = [columns.at(name, first.astype(np.int32)).to_pylist() for name in names]
    examples = tuple(
        ", ".join(f"{name} = {_shown(value)}" for name, value in zip(names, values, strict=True))
        for values in zip(*shown, strict=True)
    )
    return BadRows(int(bad.sum()), examples)


def handle_bad_rows(bad: Bool, binding: Binding, columns: Columns, bad_rows: str, report: Report) -> None:
    """Raise if `bad_rows` is "fail"; otherwise report the dropped rows, or warn if there is no `report`."""
    dropped = _described(bad, binding, columns)
    if bad_rows == "fail":
        raise bad_rows_error(dropped, binding)
    if report is not None:
        report(dropped)
    else:
        warn(f"dropped bad rows: {dropped}", BadRowsWarning)
