"""Run the plan of a row pattern on a table of whole partitions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import Expr
from streamsift.physical.row_match import RowPlan
from streamsift.runtime.expressions.columns import plain
from streamsift.runtime.resources import add_to_match_count
from streamsift.runtime.row_match.matching import start_run
from streamsift.runtime.row_match.null_on_error import evaluate_or_null
from streamsift.runtime.row_match.order import plain_column, sort_rows
from streamsift.runtime.row_match.output import result_batches


def execute(plan: RowPlan, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the result in batches of the schema `plan.output`; no batch if it is empty.

    Columns that the plan computes are taken from the table if it has them. Rows that are equal under ORDER BY keep
    their order, and partitions are returned in the order of their keys.
    """
    if table.num_rows == 0:
        return
    bound = plan.bound
    rows = sort_rows(with_computed(plan, table), bound.partition_by, bound.order_by)
    with np.errstate(all="ignore"):  # without JIT, kernels compute with NumPy's numbers
        for matches in start_run(plan, rows).matches():
            add_to_match_count(int(np.count_nonzero(matches.number)))
            yield from result_batches(plan, rows, matches)


def with_computed(plan: RowPlan, table: pa.Table) -> pa.Table:
    """Return the table with the computed columns that it lacks."""
    columns = dict.fromkeys(table.column_names)
    for column in plan.bound.computed:
        if column.name not in columns:
            expression = column.local
            assert expression is not None, f"{column.name} can only be computed by Spark"
            table = table.append_column(column.name, _computed(plan, table, expression, column.data_type))
    return table


def _computed(plan: RowPlan, table: pa.Table, expression: object, data_type: pa.DataType) -> pa.Array:
    value: Expr = expression  # type: ignore[assignment]
    return evaluate_or_null(
        value, lambda _, name: plain(plain_column(table, name)), table.num_rows, plan.bound.text, data_type
    )
