"""Drop columns that no expression reads, unless the query returns whole events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from streamsift.logical import bound as b


def prune_columns(query: b.BoundQuery) -> b.BoundQuery:
    if any(isinstance(item, b.WholeEvent) for item in query.output):
        return query
    binding = query.binding
    needed = {binding.time, *query.partition_by, *query.group_by}
    needed |= {key for node in query.pattern.walk() if isinstance(node, b.SubPattern) for key in node.partition_by}
    needed |= {name for name in (binding.type, binding.order) if name is not None}
    needed |= {aggregate.column for aggregate in query.aggregates if aggregate.column is not None}
    expressions = [item.expression for item in query.output if isinstance(item, b.Computed)]
    expressions += [v.event_class.predicate for v in query.variables if v.event_class.predicate is not None]
    expressions += [predicate.expression for predicate in query.predicates]
    expressions += [objective.expression for objective in query.ranking.objectives] if query.ranking else []
    needed = needed.union(*map(_columns_of, expressions))
    return replace(query, schema=pa.schema([field for field in query.schema if field.name in needed]))


def _columns_of(expression: b.Expr) -> Iterator[str]:
    for part in expression.walk():
        match part:
            case b.Column(name=name) | b.GroupAggregate(column=str() as name):
                yield name  # may be TIME, which is not in the schema
