"""Describe what the state of a plan depends on, and reject a checkpoint with a different description.

The names of variables and output columns, and options such as caching, are not part of it: a stream resumes from its
checkpoint if only these change. With any other change, rows would be lost or duplicated.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from streamsift.errors import QueryError
from streamsift.logical.bound import BoundQuery
from streamsift.logical.describe import describe_expression, describe_merges, describe_pattern
from streamsift.physical.plan import AggregatePlan, Plan
from streamsift.spark.stream.placing import StreamPlacement


def describe_state(plan: Plan, keys: tuple[str, ...], buckets: int) -> dict[str, str]:
    """Return the parts of a plan that its state depends on. Checkpoints store these words: do not change them."""
    query, window = plan.query, plan.query.window
    # Variables are named by position, so that renaming them does not change the description.
    named = tuple(replace(v, name=f"v{v.index + 1}") for v in query.variables)
    query = replace(query, variables=named)
    counted = plan.branches if isinstance(plan, AggregatePlan) else ()
    parts = {
        "the pattern": "; ".join(line.strip() for line in describe_pattern(query)),
        "WHERE": " AND ".join(sorted(describe_expression(p.expression, named) for p in query.predicates)),
        "WITHIN": "" if window is None else f"{window.length} {window.kind.value}" + " EXCLUSIVE" * window.exclusive,
        "PARTITION BY": ", ".join(query.partition_by),
        "GROUP BY": ", ".join(query.group_by),
        "AGG": ", ".join(
            f"{a.function}({'' if a.variable is None else named[a.variable].name}{'.' + a.column if a.column else ''})"
            for a in query.aggregates
        ),
        "PREF": _preference(query),
        "UPDATE": "" if query.update is None else f"{query.update.length} {query.update.kind.value}",
        "EMIT": query.emit.value,
        "how it counts": ", ".join(branch.strategy.value for branch in counted),
        "time": query.binding.time,
        "type": query.binding.type or "",
        "order": query.binding.order or "",
        "the columns": ", ".join(f"{field.name} {field.type}" for field in query.schema),
        "the keys that events are spread by": ", ".join(keys),
        "the number of buckets (spark.sql.shuffle.partitions)": str(buckets),
    }
    return {name: text for name, text in parts.items() if text}


def _preference(query: BoundQuery) -> str:
    if query.ranking is None:
        return ""
    objectives = [
        f"{'MAX' if o.maximise else 'MIN'}[{describe_expression(o.expression, query.variables)}]"
        for o in query.ranking.objectives
    ]
    return f"{' AND '.join(objectives)} merged {describe_merges(query.ranking)}, the {query.ranking.limit} best"


def describe_states(placements: Sequence[StreamPlacement], buckets: Sequence[int]) -> str:
    """Return what the state of all plans depends on, as it is stored in each bucket."""
    are_several = sum(len(placement.plans) for placement in placements) > 1
    about = {
        f"{name}: {part}" if are_several else part: text
        for placement, count in zip(placements, buckets, strict=True)
        for name, plan in placement.plans.items()
        for part, text in describe_state(plan, placement.keys, count).items()
    }
    return json.dumps(about, ensure_ascii=False)


def check_same(saved: str, now: str) -> None:
    """Raise QueryError with the changes if a different query saved the state."""
    if saved == now:
        return
    before, after = json.loads(saved), json.loads(now)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    lines = [
        f"\n  {name}: {before.get(name, 'absent')} in the checkpoint, {after.get(name, 'absent')} in this query"
        for name in changed
    ]
    raise QueryError(
        "the checkpoint was written by a different query, so its state cannot be used" + "".join(lines),
        hint="restore the original query, or start the changed one with a new checkpointLocation.",
    )
