"""Group many plans by the distribution of their events: queries of one placement see the same tables.

By keys, where a query with more keys than another is placed by that one's; by common time slices, unless these would be
more than `MAX_LENGTHENED` times as long; by a partial key; the rest in one task. Keys are not cut by time: then a key's
totals and ranks are where its matches are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from streamsift.physical import Plan, RankPlan
from streamsift.spark.distribute import Distribution, Slices, distribution_of

MAX_LENGTHENED = 4  # times that slices may become longer so that queries have them in common


@dataclass(frozen=True, slots=True)
class Placement:
    """A distribution, and its plans, each with its own view of it: how many ticks of its own a slice has."""

    distribution: Distribution
    plans: dict[str, Plan]
    distributions: dict[str, Distribution]


def placements(plans: Mapping[str, Plan], tasks: int) -> list[Placement]:
    alone = {name: _not_cut(distribution_of(plan, tasks)) for name, plan in plans.items()}
    placed: dict[Distribution | str, list[str]] = {}
    keys: list[tuple[str, ...]] = sorted({how.keys for how in alone.values() if not how.is_replicated}, key=len)
    for name, how in alone.items():
        if how.slices is not None:
            placed.setdefault("slices", []).append(name)
        elif how.is_replicated or not how.keys:
            placed.setdefault(replace(how, why_not=()), []).append(name)
        else:
            fewest = next(key for key in keys if key and set(key) <= set(how.keys))
            placed.setdefault(Distribution(fewest), []).append(name)
    return [placement for way, names in placed.items() for placement in _placed(way, names, plans, alone)]


def _not_cut(how: Distribution) -> Distribution:
    return Distribution(how.keys) if how.keys and how.slices is not None else how


def _placed(
    way: Distribution | str, names: list[str], plans: Mapping[str, Plan], alone: Mapping[str, Distribution]
) -> Iterator[Placement]:
    if isinstance(way, Distribution):
        yield Placement(way, {name: plans[name] for name in names}, dict.fromkeys(names, way))
        return
    cuts = {name: cut for name in names if (cut := alone[name].slices) is not None}
    steps = {name: cut.length / cut.ticks_each for name, cut in cuts.items() if _has_ticks(plans[name])}
    common = _common(list(cuts.values()), list(steps.values()))
    if common is None:
        for name in names:
            yield Placement(alone[name], {name: plans[name]}, {name: alone[name]})
        return
    each = {name: int(common.length / steps[name]) if name in steps else 1 for name in names}
    own = {name: Distribution((), replace(common, ticks_each=each[name])) for name in names}
    yield Placement(Distribution((), common), {name: plans[name] for name in names}, own)


def _has_ticks(plan: Plan) -> bool:
    return isinstance(plan, RankPlan) and plan.query.update is not None


def _common(cuts: list[Slices], steps: list[Fraction]) -> Slices | None:
    """Return slices for all: as long as the longest, with whole ticks of each step; None if they were too long."""
    length = max(cut.length for cut in cuts)
    whole = [Fraction(1)] if all(cut.length.denominator == 1 for cut in cuts) else []
    unit = reduce(_least_common_multiple, [*steps, *whole], Fraction(0)) or length
    rounded = math.ceil(length / unit) * unit
    if rounded > MAX_LENGTHENED * length:
        return None
    return Slices(rounded, max(cut.before for cut in cuts), max(cut.after for cut in cuts))


def _least_common_multiple(one: Fraction, other: Fraction) -> Fraction:
    if not one:
        return other
    below = one.denominator * other.denominator
    return Fraction(math.lcm(one.numerator * other.denominator, other.numerator * one.denominator), below)


def describe_placements(of_all: list[Placement], tasks: int) -> Iterator[str]:
    """Say what goes where, for explain."""
    yield f"Spark: {sum(len(p.plans) for p in of_all)} queries, one scan and one shuffle over {tasks} tasks"
    for placement in of_all:
        how = placement.distribution
        by = f"by {', '.join(how.keys)}" if how.keys else "by slices of time" if how.is_replicated else "in one task"
        yield f"{by}: {', '.join(placement.plans)}"
    if len(of_all) > 1:
        yield f"an event goes {len(of_all)} ways, where some query of the way can use it"
