"""Decide which of several queries share counters, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streamsift.language.syntax import Emit
from streamsift.physical.count import is_at_edge
from streamsift.physical.plan import AggregatePlan, Plan, Strategy
from streamsift.physical.share.chopping import ChoppedQueries, chop
from streamsift.physical.share.prefix_trees import (
    Members,
    SharedTree,
    separate_cost,
    shared_cost,
    signature,
    tree_of,
)


class ShareMode(StrEnum):
    """Which queries share counters. The rows are the same with every mode."""

    AUTO = "auto"  # those for which sharing costs less
    ALWAYS = "always"  # all that have the first step in common, or two consecutive steps elsewhere
    NEVER = "never"  # none; still one scan for all queries


@dataclass(frozen=True, slots=True)
class SharingPlan:
    """Prefix trees, queries chopped into pieces, and why the others run alone."""

    plans: dict[str, Plan]
    trees: tuple[SharedTree, ...]
    chops: tuple[ChoppedQueries, ...]
    alone: dict[str, str]
    how: ShareMode


def share(plans: Mapping[str, Plan], how: ShareMode = ShareMode.AUTO) -> SharingPlan:
    """Share the prefixes of queries with the same first steps if that saves work; of the rest, share common pieces."""
    if how is ShareMode.NEVER:
        return SharingPlan(dict(plans), (), (), dict.fromkeys(plans, 'share="never"'), how)
    alone: dict[str, str] = {}
    families: dict[object, dict[str, AggregatePlan]] = {}
    for name, plan in plans.items():
        if not isinstance(plan, AggregatePlan):
            alone[name] = "it has no AGG clause"
        elif (obstacle := _obstacle(plan)) is not None:
            alone[name] = obstacle
        else:
            families.setdefault(_family(plan), {})[name] = plan
    trees: list[SharedTree] = []
    chops: list[ChoppedQueries] = []
    for members in families.values():
        paying, rest = _trees(members, how)
        trees += paying
        others = {name: members[name] for name in rest}
        chopped = chop(others, how is ShareMode.ALWAYS) if _may_be_chopped(members) else None
        if chopped is not None:
            chops.append(chopped)
        alone |= {name: why for name, why in rest.items() if chopped is None or name not in chopped.routes}
    return SharingPlan(dict(plans), tuple(trees), tuple(chops), alone, how)


def _trees(members: Members, how: ShareMode) -> tuple[list[SharedTree], dict[str, str]]:
    """Return the trees that pay off, and why the other queries are in none."""
    alike: dict[object, dict[str, AggregatePlan]] = {}
    for name, plan in members.items():
        alike.setdefault(signature(plan.query, plan.branches[0].alternative.steps[0]), {})[name] = plan
    trees: list[SharedTree] = []
    rest: dict[str, str] = {}
    for beginning in alike.values():
        tree = tree_of(beginning)
        if len(beginning) > 1 and (how is ShareMode.ALWAYS or shared_cost(tree) < separate_cost(beginning)):
            trees.append(tree)
            continue
        is_single = len(beginning) == 1
        reason = (
            "no compatible query starts with the same step" if is_single else "sharing would cost more than it saves"
        )
        if not _may_be_chopped(beginning):
            reason += "; steps after the first are shared only for COUNT with WITHIN"
        rest |= dict.fromkeys(beginning, reason)
    return trees, rest


def _may_be_chopped(members: Members) -> bool:
    """Return True if all queries have only COUNT and a window: pieces have no sums, and their starts must expire."""
    return all(plan.query.window is not None and _counts_only(plan) for plan in members.values())


def _obstacle(plan: AggregatePlan) -> str | None:
    """Return why a query cannot share counters; None if it can."""
    query, branch = plan.query, plan.branches[0]
    if len(plan.branches) > 1 or branch.strategy not in (Strategy.PREFIX, Strategy.TWO_STACK):
        return f"it uses strategy {', '.join(dict.fromkeys(each.strategy.value for each in plan.branches))}"
    if query.update is not None or query.emit is Emit.CHANGES or set(branch.keys) != set(query.group_by):
        return "its totals can change when no match ends"
    if query.has_count_window:
        return "it has a count window"
    if any(is_at_edge(negation) for negation in branch.alternative.negations):
        return "it has a leading or trailing negation"
    return None


def _family(plan: AggregatePlan) -> object:
    """Return the properties in which queries must agree to share counters. COUNT alone is faster than with sums."""
    query, branch = plan.query, plan.branches[0]
    window = query.window and (query.window.length, query.window.exclusive)
    return branch.strategy, window, query.group_by, query.partition_by, query.binding, _counts_only(plan)


def _counts_only(plan: AggregatePlan) -> bool:
    return all(aggregate.function == "COUNT" for aggregate in plan.query.aggregates)
