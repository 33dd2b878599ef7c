"""Plan totals and rankings over all keys as parts: each part has some of the keys, and the rows of parts are merged.

Every match has one key, so it is found in one part. The totals of a tick are the sums of those of its parts, and its k
best matches are among the k best of each part. An average is merged from sums and numbers of values.
"""

from __future__ import annotations

from dataclasses import replace

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.plan import AggregatePlan, Plan, RankPlan


def part_plan(plan: Plan) -> Plan | None:
    """Return the plan of each part, whose rows `runtime.stream.merged_rows` merges; None if parts cannot be merged."""
    query = plan.query
    if not plan.keys or query.update is None or query.update.kind is not b.WindowKind.TIME:
        return None
    if isinstance(plan, RankPlan):
        return replace(plan, with_ties=True)
    if not isinstance(plan, AggregatePlan) or query.group_by or query.emit is Emit.CHANGES:
        return None
    aggregates = tuple(part for number, one in enumerate(query.aggregates) for part in aggregates_of_part(number, one))
    return replace(plan, detection=replace(plan.detection, query=replace(query, aggregates=aggregates)))


def aggregates_of_part(number: int, one: b.AggregateOutput) -> tuple[b.AggregateOutput, ...]:
    """Return the aggregates of each part from which an aggregate is merged: itself, or for AVG its sum and number."""
    if one.function != "AVG":
        return (replace(one, name=f"${number}"),)
    return replace(one, function="SUM", name=f"${number}"), replace(one, function="COUNT", name=f"${number} values")
