"""Many plans in, the few ways in which their events meet in tasks out: queries of one way see the same tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from streamsift.physical import Plan, RankPlan
from streamsift.spark.distribute import Slices, Spreading, spreading

MOST_LENGTHENED = 4  # times that slices may become longer so that queries have them in common


@dataclass(frozen=True, slots=True)
class Placement:
    """A way, and the plans that go it, each with its own view of it: how many ticks of its own a slice has."""

    how: Spreading
    plans: dict[str, Plan]
    ways: dict[str, Spreading]


def placements(plans: Mapping[str, Plan], tasks: int) -> list[Placement]:
    """By keys, where a query with more keys than another goes by that one's; by slices of time; the rest in one task.

    Keys are not cut by time: then a key's totals and ranks are where its matches are.
    """
    alone = {name: _not_cut(spreading(plan, tasks)) for name, plan in plans.items()}
    found: dict[Spreading | str, list[str]] = {}
    keys: list[tuple[str, ...]] = sorted({how.keys for how in alone.values() if not how.is_copied}, key=len)
    for name, how in alone.items():
        if how.slices is not None:
            found.setdefault("slices", []).append(name)
        elif how.is_copied or not how.keys:
            found.setdefault(replace(how, why_not=()), []).append(name)
        else:
            fewest = next(key for key in keys if key and set(key) <= set(how.keys))
            found.setdefault(Spreading(fewest), []).append(name)
    return [placement for way, names in found.items() for placement in _placed(way, names, plans, alone)]


def _not_cut(how: Spreading) -> Spreading:
    return Spreading(how.keys) if how.keys and how.slices is not None else how


def _placed(
    way: Spreading | str, names: list[str], plans: Mapping[str, Plan], alone: Mapping[str, Spreading]
) -> Iterator[Placement]:
    if isinstance(way, Spreading):
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
    ways = {name: Spreading((), replace(common, ticks_each=each[name])) for name in names}
    yield Placement(Spreading((), common), {name: plans[name] for name in names}, ways)


def _has_ticks(plan: Plan) -> bool:
    return isinstance(plan, RankPlan) and plan.query.update is not None


def _common(cuts: list[Slices], steps: list[Fraction]) -> Slices | None:
    """Slices that serve all: as long as the longest, and of whole ticks for each step; None if they were too long."""
    length = max(cut.length for cut in cuts)
    whole = [Fraction(1)] if all(cut.length.denominator == 1 for cut in cuts) else []
    unit = reduce(_least_common_multiple, [*steps, *whole], Fraction(0)) or length
    rounded = math.ceil(length / unit) * unit
    if rounded > MOST_LENGTHENED * length:
        return None
    return Slices(rounded, max(cut.before for cut in cuts), max(cut.after for cut in cuts))


def _least_common_multiple(one: Fraction, other: Fraction) -> Fraction:
    if not one:
        return other
    below = one.denominator * other.denominator
    return Fraction(math.lcm(one.numerator * other.denominator, other.numerator * one.denominator), below)


def describe_placements(found: list[Placement], tasks: int) -> Iterator[str]:
    """What goes where, for explain."""
    yield f"Spark: {sum(len(p.plans) for p in found)} queries, one scan and one shuffle over {tasks} tasks"
    for placement in found:
        how = placement.how
        by = f"by {', '.join(how.keys)}" if how.keys else "by slices of time" if how.is_copied else "in one task"
        yield f"{by}: {', '.join(placement.plans)}"
    if len(found) > 1:
        yield f"an event goes {len(found)} ways, where some query of the way can use it"
