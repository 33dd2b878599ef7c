"""Collect the decisions of a stream: what makes rows final, which rows are read, what is retained and why.

Raise for queries that are undefined or not supported on a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import pyarrow as pa

from streamsift.errors import QueryError, UnsupportedQuery
from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.logical.durations import limits_nothing, unit_of
from streamsift.physical.plan import AggregatePlan, DetectPlan, Plan, RankPlan, Step, Strategy
from streamsift.physical.stream.final import StateWindow, counts_rows, is_awaited, state_windows, windows
from streamsift.physical.stream.finalizing_steps import FinalizedAlternative, finalized, last_steps


class DecideBy(Enum):
    """The source from which final rows are computed."""

    MATCHES = auto()  # finalizing events: only newly final matches are built
    RUNNING_TOTALS = auto()  # the counters of each key and the totals of each group; no event is retained
    WINDOW_TOTALS = auto()  # the two stacks of each key, updated incrementally
    RECOMPUTED = auto()  # the events of the window, as the watermark advances


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """How a plan runs on a stream.

    `keys` are the columns that select the rows to read; if there are none, all rows are read.
    """

    plan: Plan
    decide_by: DecideBy
    keys: tuple[str, ...]
    alternatives: tuple[FinalizedAlternative, ...]  # how the matches of each are found; only for MATCHES
    last_steps: tuple[tuple[Step, ...], ...]  # for each alternative, those whose event can be the last of a match
    waits: bool  # some match becomes final after its last event
    windows: tuple[tuple[b.BoundWindow, tuple[str, ...]], ...]  # with the partition columns of count windows
    state_windows: tuple[StateWindow, ...]  # a reason for each consecutive window that state must cover
    counts_rows: bool  # no row may be dropped before its position is known
    why_recomputed: str | None  # why totals are recomputed; None if they are updated incrementally


def stream_plan(plan: Plan) -> StreamPlan:
    """Plan a stream; raise QueryError or UnsupportedQuery if a stream cannot run the query."""
    waits = is_awaited(plan)
    _check(plan, waits)
    recomputed = _why_recomputed(plan) if isinstance(plan, AggregatePlan) else None
    decide_by = _decide_by(plan, recomputed)
    return StreamPlan(
        plan=plan,
        decide_by=decide_by,
        keys=_keys(plan, decide_by, waits),
        alternatives=tuple(finalized(plan, a) for a in plan.alternatives) if isinstance(plan, DetectPlan) else (),
        last_steps=tuple(map(last_steps, plan.alternatives)),
        waits=waits,
        windows=tuple(windows(plan.query)),
        state_windows=state_windows(plan),
        counts_rows=counts_rows(plan.query),
        why_recomputed=recomputed,
    )


def _check(plan: Plan, waits: bool) -> None:
    """Raise if a stream cannot run the query."""
    query = plan.query
    if isinstance(plan, DetectPlan) and query.window is None:
        hint = "add the maximum duration of a match, such as WITHIN 1 hour."
        raise QueryError("detection on a stream requires WITHIN", query.text, query.pattern.span, hint)
    if isinstance(plan, RankPlan) and query.update is None:
        hint = "add UPDATE: a stream has no end, and UPDATE 1 min ranks at every full minute."
        raise QueryError("ranking on a stream requires UPDATE", query.text, query.pattern.span, hint)
    _check_windows(query)
    if not isinstance(plan, DetectPlan) and waits:
        if query.window is None:
            hint = "add the maximum duration of a match, such as WITHIN 1 hour."
            message = "a pattern whose matches wait for later events requires WITHIN on a stream"
            raise QueryError(message, query.text, query.pattern.span, hint)
        # A row over all keys would wait for keys that may never get another event.
        for window, keys in windows(query):
            if window.kind is b.WindowKind.COUNT and keys:
                message = (
                    "a streaming query with AGG or PREF cannot wait for the end of a count window with PARTITION BY"
                )
                hint = "use a time window, or end the pattern with a single event."
                raise UnsupportedQuery(message, query.text, window.span, hint)


def _check_windows(query: b.BoundQuery) -> None:
    """Raise if a window never ends, or if time windows and count windows, or different partitions, are mixed."""
    unit, kinds = unit_of(query), set()
    for window, keys in windows(query):
        if limits_nothing(window, unit):
            apart = f"no two values of `{query.binding.time}` ({unit}) are that far apart"
            message = f"WITHIN {window.text} limits nothing on a stream: {apart}"
            hint = "use the maximum duration of a match, such as WITHIN 3600."
            raise QueryError(message, query.text, window.span, hint)
        kinds.add((window.kind, keys if window.kind is b.WindowKind.COUNT else ()))
    if len(kinds) > 1:
        message = (
            "a streaming query cannot mix time windows with count windows, or count windows over different partitions"
        )
        hint = "use only time windows, or only count windows with the same PARTITION BY."
        raise UnsupportedQuery(message, query.text, window.span, hint)


def _decide_by(plan: Plan, recomputed: str | None) -> DecideBy:
    if isinstance(plan, DetectPlan):
        return DecideBy.MATCHES
    if isinstance(plan, RankPlan):
        return DecideBy.RECOMPUTED
    counts_prefixes = plan.query.window is None and all(br.strategy is Strategy.PREFIX for br in plan.branches)
    if counts_prefixes and _extremes_have_codes(plan.query):
        return DecideBy.RUNNING_TOTALS
    return DecideBy.WINDOW_TOTALS if recomputed is None else DecideBy.RECOMPUTED


def _keys(plan: Plan, decide_by: DecideBy, waits: bool) -> tuple[str, ...]:
    """Return the columns that select the rows to read for a match, or for new rows of totals.

    If every new row belongs to a group in which a match ends, only such groups are read.
    """
    query = plan.query
    if decide_by is DecideBy.MATCHES:
        return query.partition_by if query.has_count_window else plan.keys  # all rows of a partition have positions
    is_whole = isinstance(plan, RankPlan) or query.update is not None or query.emit is Emit.CHANGES or waits
    if decide_by is not DecideBy.RECOMPUTED or is_whole:
        return ()
    if query.has_count_window:
        return query.partition_by if set(query.partition_by) <= set(query.group_by) else ()
    return query.group_by


# --- totals ----------------------------------------------------------------------------------------------------------


def _why_recomputed(plan: AggregatePlan) -> str | None:
    """Return why totals are recomputed from the events of the window; None if they are updated incrementally."""
    query, strategies = plan.query, [branch.strategy for branch in plan.branches]
    incremental = (Strategy.PREFIX, Strategy.TWO_STACK)
    if (other := next((strategy for strategy in strategies if strategy not in incremental), None)) is not None:
        return f"{other.value} reads all events of the window"
    if query.has_count_window:
        return "the query has a count window"
    if query.emit is Emit.CHANGES:
        return "EMIT CHANGES compares with rows that were already emitted"
    if any(len(branch.alternative.steps) == 1 and set(branch.keys) != set(query.group_by) for branch in plan.branches):
        return "a single event is a match even without a key"
    if pa.types.is_decimal(query.schema.field(query.binding.time).type):
        return "the encoding of decimal times depends on the events"
    if not _extremes_have_codes(query):
        return "MIN and MAX of this type need all values of the window"
    return None


def _extremes_have_codes(query: b.BoundQuery) -> bool:
    """Return True if all values of MIN and MAX have 64-bit codes: integers, floating-point numbers and times."""
    columns = [a.column for a in query.aggregates if a.function in ("MIN", "MAX") and a.column not in (None, b.TIME)]
    types = [query.schema.field(column).type for column in columns]
    return all(
        (pa.types.is_integer(kind) and not pa.types.is_uint64(kind))
        or pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
        or pa.types.is_duration(kind)
        or kind in (pa.float64(), pa.float32())
        for kind in types
    )
