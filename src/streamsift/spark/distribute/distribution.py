"""Choose how the events of a plan are distributed over tasks, with the reasons that explain prints.

Events are co-located by key, by time slice (per key if there is one), by a partial key (the other events are replicated
to every task), or all in one task. The first that the plan allows is used, unless the caller requests another.

Contract: exactly one task owns a match, or a row of aggregates or ranks, and has every event that it depends on
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

MAX_COPIES = 1  # per event, on average, for a partial key
_NO_SLICES = 'spread="keys" disables time slices'


@dataclass(frozen=True, slots=True)
class Distribution:
    """How events are co-located: by key, by time slice, or all together. `why_not` has the reasons against others."""

    keys: tuple[str, ...]
    slices: Slices | None = None  # per key, if there are keys
    partial: PartialKey | None = None  # only some variables have the key; events of the others are replicated
    why_not: tuple[str, ...] = ()

    @property
    def is_replicated(self) -> bool:
        """Return True if an event can be sent to several shards."""
        return self.slices is not None or self.partial is not None


def distribution_of(plan: Plan, tasks: int) -> Distribution:
    keys, cut = shuffle_keys(plan), slices(plan)
    requested = (plan if isinstance(plan, DetectPlan) else plan.detection).choices.spread
    why_no_slices = cut if isinstance(cut, str) else _NO_SLICES if requested is Spread.KEYS else ""
    if keys and isinstance(plan, RankPlan) and (plan.query.update or not needs_merge(plan, Distribution(keys))):
        why_no_slices = "one task ranks all matches of a key"  # slices would need a merge
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
            instead = cut if isinstance(cut, str) else f"that would make {float(cut.copies):.2g} replicas per event"
            return Distribution((partial.column,), partial=partial, why_not=(f"not split by time: {instead}",))
        too_many = f" ({_copied(partial, plan)}, to all {tasks} tasks)" if copies > MAX_COPIES else ""
        why_no_key = [f"not by {partial.column}: that would make {copies:.2g} replicas per event{too_many}"]
    if isinstance(cut, Slices):
        return Distribution((), cut, why_not=tuple(why_no_key))
    return Distribution((), why_not=tuple(dict.fromkeys([why_one_task(plan), cut, *why_no_key])))


def _copies(partial: PartialKey, tasks: int) -> float:
    return float(partial.share * (tasks - 1))


def _copied(partial: PartialKey, plan: Plan) -> str:
    """Describe the replicated events: their variables and their estimated share."""
    steps = (
        alternative.query.variables[step.variable].name
        for alternative, copied in zip(plan.alternatives, partial.copied, strict=True)
        for step in copied
    )
    return f"events of {', '.join(dict.fromkeys(steps))}, about {float(partial.share):.2g} of all"


def describe_distribution(how: Distribution, plan: Plan, tasks: int) -> Iterator[str]:
    """Yield the lines of explain on how the work is distributed over Spark tasks."""
    keys = ", ".join(how.keys)
    if how.slices is not None:
        length, per_key = describe_length(how.slices, plan.query), f" per {keys}" if keys else ""
        yield f"Spark: split into time slices{per_key} ({length} each), assigned to tasks round-robin"
        yield f"results: {_owned(plan)}"
        yield "; ".join([f"replicas: about {float(how.slices.copies):.2g} per event", *how.why_not])
    elif how.partial is not None:
        yield f"Spark: shuffled by {keys}; {_copied(how.partial, plan)}, are replicated to all {tasks} tasks"
        yield f"replicas: about {_copies(how.partial, tasks):.2g} per event; {how.why_not[0]}"
    elif keys:
        yield f"Spark: shuffled by {keys}; one Python call per partition"
        yield f"not split by time: {how.why_not[0]}"
    else:
        yield f"Spark: one task: {'; '.join(how.why_not)}"


def _owned(plan: Plan) -> str:
    if isinstance(plan, AggregatePlan):
        return "a task returns the rows whose time is in its slices"
    if plan.query.ranking is not None and plan.query.update is not None:
        return "a task ranks the ticks in its slices"
    return "a task returns the matches that start in its slices"


def shuffle_keys(plan: Plan) -> tuple[str, ...]:
    """Return the columns to shuffle by. Count windows allow only keys within which they count."""
    query = plan.query
    keys = _aggregate_keys(query) if isinstance(plan, AggregatePlan) else query.partition_by or plan.keys
    return tuple(key for key in keys if all(key in columns for columns in counted_keys(query)))


def _aggregate_keys(query: b.BoundQuery) -> tuple[str, ...]:
    """Return columns that put all events of a group in one task; none with EMIT CHANGES, which needs all events."""
    assert query.window is not None or query.update is None
    if query.update is not None and query.update.kind is WindowKind.COUNT:
        return query.partition_by  # ticks are per partition
    if query.emit is Emit.CHANGES:
        return ()
    if query.window is not None and query.window.kind is WindowKind.COUNT:
        return query.partition_by if set(query.partition_by) <= set(query.group_by) else ()
    return query.group_by


def why_one_task(plan: Plan) -> str:
    """Return why a plan has no keys to shuffle by."""
    query = plan.query
    if not isinstance(plan, AggregatePlan):
        counted = "the count window counts the rows of all keys (PARTITION BY would count per key)"
        return counted if plan.keys else "no column is shared by all variables"
    if query.emit is Emit.CHANGES:
        return "with EMIT CHANGES, an event of any group can reveal a change in another"
    if query.window is not None and query.window.kind is WindowKind.COUNT:
        return "the count window counts the rows of all groups (PARTITION BY the group's columns would count per group)"
    return "without GROUP BY, the aggregates cover all events"


def needs_merge(plan: Plan, distribution: Distribution) -> bool:
    """Return True if different tasks can find matches that are ranked together.

    With time slices, a tick has one owner, but matches without ticks have several.
    """
    query = plan.query
    if not isinstance(plan, RankPlan):
        return False
    if distribution.is_replicated:
        return query.update is None
    keys = distribution.keys
    ticks_of_a_key = query.update is not None and query.update.kind is WindowKind.COUNT
    return bool(keys) and not set(keys) <= set(query.group_by) and not ticks_of_a_key
