"""Send class names to Python as small integers, and make them strings again there."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical import bound as b
from streamsift.physical import Plan
from streamsift.spark.columns.filters import text

CODE = "$streamsift_class"  # a column in place of the type's, from the shuffle on
MAX_NAMES = 100  # as a byte
OTHER = "(of no class of the pattern)"  # shown of rows that cannot be used; no other row with it is looked at


def class_names(plan: Plan) -> tuple[str, ...]:
    """Return the names, if all that a match can hold is one of them; else none, and the type stays text."""
    query = plan.query
    classes = {variable.event_class for variable in query.variables}
    if query.binding.type is None or any(each.rule is not b.ClassRule.TYPE for each in classes):
        return ()
    names = sorted({each.name for each in classes})
    is_text = pa.types.is_string(query.schema.field(query.binding.type).type)
    return tuple(names) if is_text and len(names) <= MAX_NAMES else ()


def class_code(query: b.BoundQuery, names: Sequence[str]) -> SparkColumn:
    """Return 1 for the first name, …, 0 for any other string, null for none."""
    assert query.binding.type is not None
    return F.array_position(F.array(*map(F.lit, names)), text(query.binding.type)).cast("tinyint")


def with_class_names(events: pa.Table, query: b.BoundQuery, names: Sequence[str]) -> pa.Table:
    """Return the events with texts again."""
    assert query.binding.type is not None
    place = events.column_names.index(query.binding.type)
    codes = events.column(place).combine_chunks()
    texts = pc.take(pa.array([OTHER, *names], pa.string()), codes)
    return events.set_column(place, query.binding.type, texts)
