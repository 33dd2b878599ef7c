"""Build Catalyst conditions for the rows that can affect a result, evaluated in the JVM before any shuffle.

Contract: a condition keeps every row that the engine would use, and may keep more. The engine evaluates every predicate
again by the rules of the language, so predicates without an exact Catalyst counterpart are omitted here. A comparison
that the language evaluates to unknown may have any value here: three-valued logic is monotone, so a true predicate
stays true (tests/spark/batch/test_generated_on_spark.py, tests/spark/batch/test_cases_on_spark.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import BooleanType, DecimalType

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical import Plan
from streamsift.physical.plan import Step
from streamsift.runtime.events.times import parse_text_times
from streamsift.spark.workers import loader

if TYPE_CHECKING:
    import pandas as pd

_COMPARE = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_EXACT_DOUBLE = 2**52
_DECIMAL_DIGITS = 38
_INT64 = range(-(2**63), 2**63)


def column(name: str) -> SparkColumn:
    """Return a column by its exact name, which may contain any characters."""
    return F.col("`" + name.replace("`", "``") + "`")


def by_position(df: DataFrame) -> DataFrame:
    """Rename the columns to c0, c1, …: mapInArrow cannot name columns with dots or backticks."""
    return df.toDF(*(f"c{i}" for i in range(len(df.columns))))


def text(name: str) -> SparkColumn:
    """Return a string column without its collation, under which different strings can be equal."""
    return column(name).cast("string")


def is_bad(query: b.BoundQuery) -> SparkColumn:
    """Return a condition for bad rows, whose time or order cannot be used; exactly those that the engine rejects."""
    binding = query.binding
    if binding.time_kind is b.TimeKind.TEXT:
        bad: SparkColumn = _is_no_time()(text(binding.time))
    else:
        bad = _is_no_value(binding.time, query.schema)
    return bad | _is_no_value(binding.order, query.schema) if binding.order else bad


def _is_no_value(name: str, schema: pa.Schema) -> SparkColumn:
    is_float = pa.types.is_floating(schema.field(name).type)
    return column(name).isNull() | F.isnan(column(name)) if is_float else column(name).isNull()


def _is_no_time() -> Callable[[SparkColumn], SparkColumn]:
    """Return a function of Spark that is true for strings that are no times. PySpark 4.0 has no `arrow_udf`."""
    import pandas as pd  # slow to import, and only needed for string times

    load = loader(_are_no_times)

    def is_no_time(texts: pd.Series) -> pd.Series:
        work, errors = load()
        with errors():
            return work(texts)

    is_no_time.__annotations__ = {"texts": pd.Series, "return": pd.Series}  # Spark evaluates the hints
    return pandas_udf(is_no_time, BooleanType())  # type: ignore[call-overload] # of the decorator's form


def _are_no_times(texts: pd.Series) -> pd.Series:
    return parse_text_times(pa.array(texts, pa.string(), from_pandas=True)).is_null().to_pandas()


def counted_keys(query: b.BoundQuery) -> list[tuple[str, ...]]:
    """Return the partition columns of each count window, of the query and of definitions."""
    windows = [(query.window, query.partition_by)]
    windows += [(d.window, d.partition_by or query.partition_by) for d in query.pattern.windowed_definitions()]
    return [keys for window, keys in windows if window is not None and window.kind is b.WindowKind.COUNT]


def can_matter(plan: Plan) -> SparkColumn | None:
    """Return a condition for rows that some step can bind, or None if every row must be kept."""
    if counted_keys(plan.query) or plan.query.emit is Emit.CHANGES:
        return None  # with EMIT CHANGES, rows without a key also reveal changes
    # The query of an alternative also has variables for the elements of Kleene groups.
    return can_be_bound([(step, a.query) for a in plan.alternatives for step in a.all_steps()])


def describe_filter(plan: Plan) -> str:
    """Return the line of explain on which rows are shuffled."""
    if can_matter(plan) is None:
        return "filter: none; every row is shuffled"
    return "filter: only rows of the pattern's event classes that pass single-event predicates are shuffled"


def can_be_bound(steps: Iterable[tuple[Step, b.BoundQuery]]) -> SparkColumn | None:
    """Return a condition for rows that one of the steps can bind, or None if every row can be bound."""
    types: dict[str, list[str]] = {}  # one `isin` for all classes without predicates
    conditions: list[SparkColumn] = []
    for step, query in steps:
        event_class = query.variables[step.variable].event_class
        type_column = query.binding.type if event_class.rule is b.ClassRule.TYPE else None
        predicates = (*step.local, event_class.predicate) if event_class.predicate is not None else step.local
        parts = [_exact(part, query.schema) for predicate in predicates for part in _conjuncts(predicate)]
        exact = [part for part in parts if part is not None]
        if exact:
            exact += [text(type_column) == F.lit(event_class.name)] if type_column is not None else []
            conditions.append(reduce(and_, exact))
        elif type_column is not None:
            types.setdefault(type_column, []).append(event_class.name)
        else:
            return None
    conditions += [text(column).isin(names) for column, names in types.items()]
    return reduce(or_, conditions) if conditions else F.lit(False)


def all_or_none(
    join: Callable[[SparkColumn, SparkColumn], SparkColumn], conditions: Iterable[SparkColumn | None]
) -> SparkColumn | None:
    """Join the conditions, or return None if one of them is None."""
    parts = list(conditions)
    exact = [part for part in parts if part is not None]
    return reduce(join, exact) if len(exact) == len(parts) else None


def _conjuncts(expression: b.Expr) -> list[b.Expr]:
    if isinstance(expression, b.Operation) and expression.op == "and":
        return [part for operand in expression.operands for part in _conjuncts(operand)]
    return [expression]


def _exact(expression: b.Expr, schema: pa.Schema) -> SparkColumn | None:
    """Return the same condition in Catalyst, or None if Catalyst evaluates it differently."""
    match expression:
        case b.Operation(op="and" | "or"):
            join = and_ if expression.op == "and" else or_
            return all_or_none(join, (_exact(operand, schema) for operand in expression.operands))
        case b.Operation(op="not", operands=(operand,)):
            inner = _exact(operand, schema)
            return None if inner is None else ~inner
        case b.Operation(op="is_null", operands=(b.Column(name=name),)) if name != b.TIME:
            return column(name).isNull()
        case b.Operation(op="like", operands=(b.Column() as left, b.Constant(value=str() as form))) if "\\" not in form:
            return text(left.name).like(form)
        case b.Operation(op="in", operands=(b.Column() as left, *items)):
            return all_or_none(or_, (_comparison("=", left, item, schema) for item in items))
        case b.Operation(operands=(b.Column() as left, b.Constant() as right)):
            return _comparison(expression.op, left, right, schema)
        case _:
            return None


def _comparison(op: str, left: b.Column, right: b.Expr, schema: pa.Schema) -> SparkColumn | None:
    if op not in _COMPARE or not isinstance(right, b.Constant) or left.name == b.TIME:
        return None
    compare = _COMPARE[op]
    match (left.kind, right.value):
        case (b.Kind.STRING, str() as value):
            return compare(text(left.name), F.lit(value))
        case (b.Kind.DECIMAL, int() | Decimal() as value):
            literal = _decimal(value, schema.field(left.name).type)
            return None if literal is None else compare(column(left.name), literal)
        case (b.Kind.INTEGER, int() as value) if value in _INT64:
            return compare(column(left.name), F.lit(value))
        case (b.Kind.INTEGER | b.Kind.FLOAT | b.Kind.BOOLEAN, int() | float() as value) if abs(value) < _EXACT_DOUBLE:
            return compare(column(left.name), F.lit(value))
        case _:
            return None  # for example, timestamps without zone: Catalyst would compare them in the session's zone


def _decimal(value: int | Decimal, other: pa.DataType) -> SparkColumn | None:
    """Return the literal, or None if a type for it and for `other` needs more digits than Spark supports."""
    number = Decimal(value)
    exponent = int(number.as_tuple().exponent)
    scale = max(0, -exponent)
    whole = max(1, len(number.as_tuple().digits) + exponent)
    if max(whole, other.precision - other.scale) + max(scale, other.scale) > _DECIMAL_DIGITS:
        return None
    return F.lit(f"{number:f}").cast(DecimalType(whole + scale, scale))
