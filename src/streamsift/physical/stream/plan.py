"""Collect every decision of a stream: what makes rows final, which rows are looked at, what is retained and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.plan import AggregatePlan, DetectPlan, Plan, RankPlan, Step, Strategy
from streamsift.physical.stream.final import StateWindow, counts_rows, is_awaited, state_windows, windows
from streamsift.physical.stream.finalizing_steps import FinalizedAlternative, finalized, last_steps
from streamsift.physical.stream.unsupported import check_stream


class DecideBy(Enum):
    """What makes the rows of a plan final."""

    MATCHES = auto()  # finalizing events: only newly final matches are built
    RUNNING_TOTALS = auto()  # the counters of each key and the totals of each group; no event is retained
    WINDOW_TOTALS = auto()  # the two stacks of each key go on from where they were
    RECOMPUTED = auto()  # the events of the window, as the watermark advances


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """How a plan runs on a stream.

    `keys` are the columns by which the rows that a result looks at are found; none: all of them are looked at.
    """

    plan: Plan
    decide_by: DecideBy
    keys: tuple[str, ...]
    alternatives: tuple[FinalizedAlternative, ...]  # how the matches of each are found; none unless by MATCHES
    last_steps: tuple[tuple[Step, ...], ...]  # for each alternative those whose event may be the last of a match
    waits: bool  # some match becomes final later than its last event
    windows: tuple[tuple[b.BoundWindow, tuple[str, ...]], ...]  # with the columns by which a count window counts apart
    state_windows: tuple[StateWindow, ...]  # a reason for each window, one behind the other, that state must cover
    counts_rows: bool  # so that no row may be dropped before its position is known
    why_recomputed: str | None  # of totals; None if they are updated incrementally


def stream_plan(plan: Plan) -> StreamPlan:
    """Plan a stream; what it cannot have raises."""
    check_stream(plan)
    recomputed = _why_recomputed(plan) if isinstance(plan, AggregatePlan) else None
    decide_by = _decide_by(plan, recomputed)
    found_by = {DecideBy.MATCHES: _match_keys, DecideBy.RECOMPUTED: _group_keys}.get(decide_by)
    return StreamPlan(
        plan=plan,
        decide_by=decide_by,
        keys=found_by(plan) if found_by is not None else (),
        alternatives=tuple(finalized(plan, a) for a in plan.alternatives) if isinstance(plan, DetectPlan) else (),
        last_steps=tuple(map(last_steps, plan.alternatives)),
        waits=is_awaited(plan),
        windows=tuple(windows(plan.query)),
        state_windows=state_windows(plan),
        counts_rows=counts_rows(plan.query),
        why_recomputed=recomputed,
    )


def _decide_by(plan: Plan, recomputed: str | None) -> DecideBy:
    if isinstance(plan, DetectPlan):
        return DecideBy.MATCHES
    if isinstance(plan, RankPlan):
        return DecideBy.RECOMPUTED
    counts_prefixes = plan.query.window is None and all(br.strategy is Strategy.PREFIX for br in plan.branches)
    if counts_prefixes and _extremes_have_codes(plan.query):
        return DecideBy.RUNNING_TOTALS
    return DecideBy.WINDOW_TOTALS if recomputed is None else DecideBy.RECOMPUTED


def _match_keys(plan: Plan) -> tuple[str, ...]:
    """Return the columns by which the rows of a match are found."""
    query = plan.query
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return query.partition_by  # all rows of a partition have positions
    return plan.keys


def _group_keys(plan: Plan) -> tuple[str, ...]:
    """Return the columns by which the rows that new rows of totals look at are found.

    Where every row of the result is one of a group in which a match ends, only such groups matter.
    """
    query = plan.query
    if isinstance(plan, RankPlan) or query.update is not None or query.emit is Emit.CHANGES or is_awaited(plan):
        return ()
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return query.partition_by if set(query.partition_by) <= set(query.group_by) else ()
    return query.group_by


# --- totals ----------------------------------------------------------------------------------------------------------


def _why_recomputed(plan: AggregatePlan) -> str | None:
    """Return why totals are recomputed from the events of the window; None if they are updated incrementally."""
    query, counted = plan.query, (Strategy.PREFIX, Strategy.TWO_STACK)
    if (
        other := next((branch.strategy for branch in plan.branches if branch.strategy not in counted), None)
    ) is not None:
        return f"{other.value} looks at the events of the window"
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return "the window counts rows"
    if query.emit is Emit.CHANGES:
        return "EMIT CHANGES compares with rows that are told already"
    if any(len(branch.alternative.steps) == 1 and set(branch.keys) != set(query.group_by) for branch in plan.branches):
        return "a single event without a key is a match"
    if pa.types.is_decimal(query.schema.field(query.binding.time).type):
        return "the digits of decimal times depend on the events"
    if not _extremes_have_codes(query):
        return "extremes of texts and decimals are ranked among the events"
    return None


def _extremes_have_codes(query: b.BoundQuery) -> bool:
    extremes = [a.column for a in query.aggregates if a.function in ("MIN", "MAX") and a.column is not None]
    return all(column == b.TIME or _has_codes(query.schema.field(column).type) for column in extremes)


def _has_codes(kind: pa.DataType) -> bool:
    """Whether a number of 64 bits stands for each value: whole numbers, doubles, times."""
    whole = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    time = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind)
    return bool(whole or time or kind == pa.float64() or kind == pa.float32())
