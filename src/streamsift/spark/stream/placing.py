"""Place the queries of a stream: the columns that their events are hashed by, and the buckets of each placement.

Queries that have a key in common share a placement, and with it one copy of the events. Queries without a common key
are placed as in a batch (`spark/share/placements.py`), and each placement has buckets of its own, with a copy of the
events that its queries can use. Totals and rankings at ticks that cover several buckets are computed in each bucket
and merged (`merging`); what can be merged is in `physical.stream.part_plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamsift.language.syntax import Emit
from streamsift.logical.bound import WindowKind
from streamsift.physical import AggregatePlan, Plan, RankPlan
from streamsift.physical.share import ShareMode
from streamsift.physical.stream import part_plan
from streamsift.runtime.stream import ManyEngine
from streamsift.spark.distribute import Distribution, needs_merge, shuffle_keys, stacked_numbers, why_one_task
from streamsift.spark.stream.buckets import BucketCount


@dataclass(frozen=True, slots=True)
class StreamPlacement:
    """The queries whose events are hashed by the same columns; without columns, they share one bucket."""

    keys: tuple[str, ...]
    plans: dict[str, Plan]
    sharing: ShareMode = ShareMode.AUTO

    @property
    def merged(self) -> dict[str, Plan]:
        """Return the queries whose rows are merged from the buckets."""
        return {name: plan for name, plan in self.plans.items() if is_merged(plan, self.keys)}

    @property
    def engine_plans(self) -> dict[str, Plan]:
        """Return what the engine of a bucket runs."""
        return {name: _part(plan) if name in self.merged else plan for name, plan in self.plans.items()}


def stream_placements(plans: Mapping[str, Plan], sharing: ShareMode = ShareMode.AUTO) -> tuple[StreamPlacement, ...]:
    """Place queries: all by the keys that they have in common, else each by the fewest keys of a query that it has."""
    of_all = {name: stream_keys(plan) for name, plan in plans.items()}
    first, *others = of_all.values()
    common = tuple(key for key in first if all(key in keys for keys in others))
    if common:
        return (StreamPlacement(common, dict(plans), sharing),)
    by_length = sorted((keys for keys in of_all.values() if keys), key=len)
    placed: dict[tuple[str, ...], dict[str, Plan]] = {}
    for name, keys in of_all.items():
        fewest = next((fewer for fewer in by_length if set(fewer) <= set(keys)), ()) if keys else ()
        placed.setdefault(fewest, {})[name] = plans[name]
    return tuple(StreamPlacement(keys, dict(placed_plans), sharing) for keys, placed_plans in placed.items())


def stream_keys(plan: Plan) -> tuple[str, ...]:
    """Return the columns that events are distributed by."""
    keys = shuffle_keys(plan)
    if not keys:
        return plan.keys if isinstance(plan, AggregatePlan) and part_plan(plan) is not None else ()
    return () if needs_merge(plan, Distribution(keys)) and part_plan(plan) is None else keys


def is_merged(plan: Plan, keys: tuple[str, ...]) -> bool:
    """Return True if different buckets have matches of the same row or ranking."""
    if isinstance(plan, AggregatePlan):
        return bool(keys) and not shuffle_keys(plan)
    return needs_merge(plan, Distribution(keys))


def why_one_bucket(plan: Plan) -> str:
    """Return why the events of a plan are in one bucket."""
    query, keys = plan.query, ", ".join(plan.keys)
    counts_rows = any(w is not None and w.kind is WindowKind.COUNT for w in (query.window, query.update))
    if not isinstance(plan, AggregatePlan) or counts_rows or query.emit is Emit.CHANGES or query.group_by:
        return why_one_task(plan)
    if not keys:
        return "no column is shared by all variables, so totals cannot be computed per key"
    return f"without UPDATE, a match of any {keys} can make a row of the totals over all of them"


def describe_merge(plan: Plan) -> str:
    """Return the line of explain on how the rows of buckets are merged."""
    what = "ranks its own matches" if isinstance(plan, RankPlan) else "computes the totals of its own keys"
    then = "merges the top k" if isinstance(plan, RankPlan) else "adds up the totals"
    return f"merge: each bucket {what}; in the same micro-batch, one task {then} of each tick"


def new_engine(placement: StreamPlacement) -> ManyEngine:
    """Return the engine of a new bucket."""
    return ManyEngine(placement.engine_plans, sharing=placement.sharing)


def _part(plan: Plan) -> Plan:
    part = part_plan(plan)
    assert part is not None
    return part


@dataclass(frozen=True, slots=True)
class PlacedBuckets:
    """The numbers of the buckets of each placement: the values that Spark groups messages by."""

    counts: tuple[BucketCount, ...]

    def numbers(self) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of each placement in the running stream. A placement has one bucket of a partition."""
        each = [count.of_this_stream() for count in self.counts]
        stacks = stacked_numbers(max(each), len(each))
        return tuple(
            tuple(stack[place] for stack in stacks) if many > 1 else (stacks[place % len(stacks)][place],)
            for place, many in enumerate(each)
        )

    def placement(self, bucket: int) -> int:
        """Return the placement of a bucket."""
        return next(place for place, numbers in enumerate(self.numbers()) if bucket in numbers)

    def total(self) -> int:
        return sum(map(len, self.numbers()))
