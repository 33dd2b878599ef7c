"""Decide which of many queries are counted together, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.count import is_at_edge
from streamsift.physical.plan import AggregatePlan, Plan, Strategy
from streamsift.physical.share.chopping import ChoppedQueries, chop
from streamsift.physical.share.prefix_trees import SharedTree, separate_cost, shared_cost, signature, tree_of


class ShareMode(StrEnum):
    """Which queries are counted together. Every choice gives the same rows."""

    AUTO = "auto"  # those for which it costs less
    ALWAYS = "always"  # all that have a step in common at the beginning, or two elsewhere
    NEVER = "never"  # none: one scan, each counted for itself


@dataclass(frozen=True, slots=True)
class SharingPlan:
    """Trees, queries chopped into pieces, and why the others run alone."""

    plans: dict[str, Plan]
    trees: tuple[SharedTree, ...]
    chops: tuple[ChoppedQueries, ...]
    alone: dict[str, str]
    how: ShareMode


def share(plans: Mapping[str, Plan], how: ShareMode = ShareMode.AUTO) -> SharingPlan:
    """The cheapest sharing: trees of those that begin alike, where that saves work; of the rest, pieces in common."""
    if how is ShareMode.NEVER:
        return SharingPlan(dict(plans), (), (), dict.fromkeys(plans, "as asked"), how)
    alone: dict[str, str] = {}
    families: dict[object, dict[str, AggregatePlan]] = {}
    for name, plan in plans.items():
        obstacle = _obstacle(plan)
        if obstacle is not None or not isinstance(plan, AggregatePlan):
            alone[name] = obstacle or ""
        else:
            families.setdefault(_family(plan), {})[name] = plan
    trees: list[SharedTree] = []
    chops: list[ChoppedQueries] = []
    for members in families.values():
        found, rest = _trees(members, how)
        trees += found
        inner = {name: members[name] for name in rest}
        chopped = chop(inner, how is ShareMode.ALWAYS) if _may_be_chopped(members) else None
        if chopped is not None:
            chops.append(chopped)
        alone |= {name: why for name, why in rest.items() if chopped is None or name not in chopped.routes}
    return SharingPlan(dict(plans), tuple(trees), tuple(chops), alone, how)


def _trees(members: Mapping[str, AggregatePlan], how: ShareMode) -> tuple[list[SharedTree], dict[str, str]]:
    """The trees that pay, and why the other queries are in none."""
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
        reason = (
            "no other query of its kind begins like it"
            if len(beginning) == 1
            else "sharing would cost more than it saves"
        )
        if not _may_be_chopped(beginning):
            reason += "; inner parts are shared only for COUNT within a window"
        rest |= dict.fromkeys(beginning, reason)
    return trees, rest


def _may_be_chopped(members: Mapping[str, AggregatePlan]) -> bool:
    """Pieces have counters, not sums. Without a window a counter for each prefix costs less than one for each start of
    a piece, which never leaves."""
    return all(plan.query.window is not None and _counts_only(plan) for plan in members.values())


def _obstacle(plan: Plan) -> str | None:
    """Why a query is not counted together with others."""
    if not isinstance(plan, AggregatePlan):
        return "it asks for matches"
    query, branch = plan.query, plan.branches[0]
    if len(plan.branches) > 1 or branch.strategy not in (Strategy.PREFIX, Strategy.TWO_STACK):
        return f"it is counted by {', '.join(dict.fromkeys(b.strategy.value for b in plan.branches))}"
    if query.update is not None or query.emit is Emit.CHANGES or set(branch.keys) != set(query.group_by):
        return "its values change between the ends of matches"
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return "its window counts rows"
    if any(is_at_edge(negation) for negation in branch.alternative.negations):
        return "it has a negation at an edge"
    return None


def _family(plan: AggregatePlan) -> object:
    """What queries must have in common to be counted together: strategy, window, groups, binding; whether COUNT is all
    they ask for, which is counted faster."""
    query, branch = plan.query, plan.branches[0]
    window = query.window and (query.window.length, query.window.exclusive)
    return branch.strategy, window, query.group_by, query.partition_by, query.binding, _counts_only(plan)


def _counts_only(plan: AggregatePlan) -> bool:
    return all(aggregate.function == "COUNT" for aggregate in plan.query.aggregates)
