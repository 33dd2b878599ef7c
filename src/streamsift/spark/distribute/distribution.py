"""Choose how the events of a plan are distributed over tasks, with the reasons that explain prints.

Events are co-located by a key, by time slices (of each key if there is one), by a partial key (the other events are
replicated to every task), or all in one task: the first that the plan allows, unless the caller asks for another.

Contract: the task that owns a match, or a row of totals or ranks, has every event that it depends on; one task owns it
(tests/spark/distribute/test_slices.py, test_total_slices.py, test_rank_slices.py, test_partial_keys.py, test_skew.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.logical.bound import WindowKind
from streamsift.physical import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.physical.detect import PartialKey, partial_key
from streamsift.physical.plan import Spread
from streamsift.spark.columns import counted_keys
from streamsift.spark.distribute.slices import Slices, describe_length, slices

MAX_COPIES = 1  # of an event, on average, that may be made for a partial key
_NO_SLICES = 'spread="keys" asks for no slices of time'


@dataclass(frozen=True, slots=True)
class Distribution:
    """How events are co-located: by key, by time slice, or all together; `why_not` has the reasons against others."""

    keys: tuple[str, ...]
    slices: Slices | None = None  # of each key
    partial: PartialKey | None = None  # the key is one of some variables only: the other events are replicated
    why_not: tuple[str, ...] = ()

    @property
    def is_replicated(self) -> bool:
        """Return True if an event may go to several shards."""
        return self.slices is not None or self.partial is not None


def distribution_of(plan: Plan, tasks: int) -> Distribution:
    keys, cut = shuffle_keys(plan), slices(plan)
    requested = (plan if isinstance(plan, DetectPlan) else plan.detection).choices.spread
    why_no_slices = cut if isinstance(cut, str) else _NO_SLICES if requested is Spread.KEYS else ""
    if keys and isinstance(plan, RankPlan) and (plan.query.update or not needs_merge(plan, Distribution(keys))):
        why_no_slices = "the best of a key are found where all of it is"  # and cut, they would need a merge
    if keys and why_no_slices:
        return Distribution(keys, why_not=(why_no_slices,))
    if isinstance(cut, Slices) and (keys or requested is Spread.SLICES):
        return Distribution(keys, cut)
    if requested is Spread.KEYS:
        cut = _NO_SLICES
    partial = partial_key(plan) if isinstance(plan, DetectPlan) and not counted_keys(plan.query) else None
    why_no_key: list[str] = []
    if partial is not None:
        copies = _copies(partial, tasks)
        if copies <= MAX_COPIES and (isinstance(cut, str) or copies <= cut.copies):
            instead = cut if isinstance(cut, str) else f"they would make {float(cut.copies):.2g} copies"
            return Distribution((partial.column,), partial=partial, why_not=(f"not cut by time: {instead}",))
        too_many = f": {_copied(partial, plan)}, to all {tasks} tasks" if copies > MAX_COPIES else ""
        why_no_key = [f"by {partial.column} it would be {copies:.2g}{too_many}"]
    if isinstance(cut, Slices):
        return Distribution((), cut, why_not=tuple(why_no_key))
    return Distribution((), why_not=tuple(dict.fromkeys([why_one_task(plan), cut, *why_no_key])))


def _copies(partial: PartialKey, tasks: int) -> float:
    return float(partial.share * (tasks - 1))


def _copied(partial: PartialKey, plan: Plan) -> str:
    """Name the variables whose events are replicated."""
    steps = (
        alternative.query.variables[step.variable].name
        for alternative, copied in zip(plan.alternatives, partial.copied, strict=True)
        for step in copied
    )
    return f"events of {', '.join(dict.fromkeys(steps))}, about {float(partial.share):.2g} of all"


def describe_distribution(how: Distribution, plan: Plan, tasks: int) -> Iterator[str]:
    """Say how the work is distributed over Spark tasks, for explain."""
    keys = ", ".join(how.keys)
    if how.slices is not None:
        each = f"{describe_length(how.slices, plan.query)} each"
        yield f"Spark: cut into slices of time{f' of each {keys}' if keys else ''}, {each}, which go round the tasks"
        more = "".join(f"; {reason}" for reason in how.why_not)
        yield f"{_owned(plan)}; about {float(how.slices.copies):.2g} copies for each event{more}"
    elif how.partial is not None:
        yield f"Spark: shuffled by {keys}, with {_copied(how.partial, plan)}, copied to all {tasks} tasks"
        yield f"{_copies(how.partial, tasks):.2g} copies for each event; {how.why_not[0]}"
    elif keys:
        yield f"Spark: shuffled by {keys}, one Python call per partition"
        yield f"a key is one task's work: {how.why_not[0]}"
    else:
        yield f"Spark: one task: {', and '.join(how.why_not)}"


def _owned(plan: Plan) -> str:
    if isinstance(plan, AggregatePlan):
        return "a task counts the rows whose time lies in its slices"
    if plan.query.ranking is not None and plan.query.update is not None:
        return "a task ranks the ticks in its slices"
    return "a task finds the matches that start in its slices"


def shuffle_keys(plan: Plan) -> tuple[str, ...]:
    """Return columns to split the work by. A count window counts positions over a whole stream or partition."""
    query = plan.query
    keys = _aggregate_keys(query) if isinstance(plan, AggregatePlan) else query.partition_by or plan.keys
    return tuple(key for key in keys if all(key in columns for columns in counted_keys(query)))


def _aggregate_keys(query: b.BoundQuery) -> tuple[str, ...]:
    """Return columns such that a group's rows are made where all of it is; with EMIT CHANGES, where all events are."""
    assert query.window is not None or query.update is None
    if query.update is not None and query.update.kind is WindowKind.COUNT:
        return query.partition_by  # each partition has its own ticks
    if query.emit is Emit.CHANGES:
        return ()
    if query.window is not None and query.window.kind is WindowKind.COUNT:
        return query.partition_by if set(query.partition_by) <= set(query.group_by) else ()
    return query.group_by


def why_one_task(plan: Plan) -> str:
    """Return why a plan without keys to shuffle by has none."""
    query = plan.query
    if not isinstance(plan, AggregatePlan):
        counted = "a count window counts the rows of all keys; PARTITION BY would count per key"
        return counted if plan.keys else "no column is shared by all variables"
    if query.emit is Emit.CHANGES:
        return "with EMIT CHANGES an event of any group can show that another changed"
    if query.window is not None and query.window.kind is WindowKind.COUNT:
        return "a count window counts the rows of all groups; PARTITION BY their columns would count per group"
    return "without GROUP BY the values are over all events"


def needs_merge(plan: Plan, distribution: Distribution) -> bool:
    """Return True if matches that are ranked together may be found by different tasks.

    With time slices a tick has one owner; without ticks matches have different ones.
    """
    query = plan.query
    if not isinstance(plan, RankPlan):
        return False
    if distribution.is_replicated:
        return query.update is None
    keys = distribution.keys
    ticks_of_a_key = query.update is not None and query.update.kind is WindowKind.COUNT
    return bool(keys) and not set(keys) <= set(query.group_by) and not ticks_of_a_key
