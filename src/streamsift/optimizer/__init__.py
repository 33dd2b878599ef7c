"""Rewrite a bound query to an equivalent, cheaper one by rules, applied in order.

- `inline_definitions`: replace definitions without window and keys by their patterns;
- `unwrap_single_operands`: replace SEQ(x), AND(x) and OR(x) by x;
- `flatten_sequences`: merge a nested SEQ into the enclosing SEQ;
- `drop_implied_equalities`: drop equalities that other equalities imply;
- `prune_columns`: drop columns that the query does not read.
"""

from __future__ import annotations

from collections.abc import Callable

from streamsift.logical import BoundQuery
from streamsift.optimizer.drop_implied_equalities import drop_implied_equalities
from streamsift.optimizer.flatten_sequences import flatten_sequences
from streamsift.optimizer.inline_definitions import inline_definitions
from streamsift.optimizer.prune_columns import prune_columns
from streamsift.optimizer.unwrap_single_operands import unwrap_single_operands

RULES: tuple[Callable[[BoundQuery], BoundQuery], ...] = (
    inline_definitions,
    unwrap_single_operands,
    flatten_sequences,
    drop_implied_equalities,
    prune_columns,
)


def optimize(query: BoundQuery) -> tuple[BoundQuery, tuple[str, ...]]:
    """Return the optimized query and the names of the rules that changed it."""
    changed: list[str] = []
    for rule in RULES:
        better = rule(query)
        if better != query:
            changed.append(rule.__name__)
        query = better
    return query, tuple(changed)
