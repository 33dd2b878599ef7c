"""Columns that nothing reads are not read: unless a whole event is returned, only those that expressions name."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from streamsift.logical import bound as b


def prune_columns(query: b.BoundQuery) -> b.BoundQuery:
    if any(isinstance(item, b.WholeEvent) for item in query.output):
        return query
    binding = query.binding
    needed = {binding.time, *query.partition_by, *query.group_by, *_keys_of(query.pattern)}
    needed |= {name for name in (binding.type, binding.order) if name is not None}
    needed |= {aggregate.column for aggregate in query.aggregates if aggregate.column is not None}
    expressions = [item.expression for item in query.output if isinstance(item, b.Computed)]
    expressions += [v.event_class.predicate for v in query.variables if v.event_class.predicate is not None]
    expressions += [predicate.expression for predicate in query.predicates]
    expressions += [objective.expression for objective in query.ranking.objectives] if query.ranking else []
    needed = needed.union(*map(_columns_of, expressions))
    return replace(query, schema=pa.schema([field for field in query.schema if field.name in needed]))


def _keys_of(node: b.Node) -> frozenset[str]:
    """The columns that definitions are partitioned by."""
    match node:
        case b.SubPattern():
            return frozenset(node.partition_by) | _keys_of(node.child)
        case b.Negated():
            return _keys_of(node.child)
        case b.Sequence() | b.Conjunction() | b.Disjunction():
            return frozenset().union(*map(_keys_of, node.children))
        case _:
            return frozenset()


def _columns_of(expression: b.Expr) -> frozenset[str]:
    match expression:
        case b.Column():
            return frozenset({expression.name})  # TIME is no column of the schema: harmless
        case b.Operation():
            return frozenset().union(*map(_columns_of, expression.operands))
        case b.GroupAggregate(column=str() as column):
            return frozenset({column})
        case _:
            return frozenset()
