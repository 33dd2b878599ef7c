"""Decide whether queries can use the promise that events arrive in order (`ordered=`).

The horizon of a key is then its latest event, so the promise helps only queries whose variables are all equal in these
columns. Queries that run together use it all or not at all, because they share which events are late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamsift.errors import QueryError
from streamsift.physical.plan import Plan

Ordered = bool | str | Sequence[str] | None


def ordered_columns(ordered: Ordered, columns: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns of `ordered=` as they are written in the schema; () for True, None for no promise."""
    if ordered is None or ordered is False:
        return None
    if ordered is True:
        return ()
    names = [ordered] if isinstance(ordered, str) else list(ordered)
    if not names or not all(isinstance(name, str) for name in names):
        hint = 'use True, a column such as ordered="id", or a list of columns.'
        raise QueryError(f"invalid value for ordered: {ordered!r}", hint=hint)
    return tuple(dict.fromkeys(_resolved(name, columns) for name in names))


def _resolved(name: str, columns: Sequence[str]) -> str:
    if name in columns:
        return name
    alike = [column for column in columns if column.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    raise QueryError(f"no column `{name}`, which ordered names", hint=f"the columns are {', '.join(columns)}.")


def used_order(plans: Iterable[Plan], ordered: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the columns whose keys arrive in order, if all plans can use that; () for all events."""
    if ordered is None or any(why_unordered(plan, ordered) is not None for plan in plans):
        return None
    return ordered


def why_unordered(plan: Plan, ordered: tuple[str, ...]) -> str | None:
    """Return why a plan cannot use that events equal in these columns arrive in order; None if it can."""
    if plan.query.has_count_window:
        missing = [column for column in ordered if column not in plan.query.partition_by]
        why = "the window counts rows of several values of {}, because PARTITION BY does not have it"
    else:
        missing = [column for column in ordered if column not in plan.keys]
        why = "not all variables, negated ones included, are equal in {}"
    return why.format(" and ".join(missing)) if missing else None
