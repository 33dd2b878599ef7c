"""Group plans by the distribution of their events: the queries of a placement read the same tables.

A placement is by keys (a query whose keys include another query's keys is placed by those), by common time slices
(unless these would be more than `MAX_LENGTHENED` times as long), by a partial key, or in one task. Keys are not split
by time, so that one task has the matches, aggregates and ranks of a key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from streamsift.physical import Plan, RankPlan
from streamsift.spark.distribute import Distribution, Placement, Slices, distribution_of, tick_distance

MAX_LENGTHENED = 4  # how many times as long slices may become to be common to several queries


def placements(plans: Mapping[str, Plan], tasks: int) -> list[Placement]:
    alone = {name: replace(distribution_of(plan, tasks), why_not=()) for name, plan in plans.items()}
    alone = {name: replace(how, slices=None) if how.keys else how for name, how in alone.items()}
    common = _common_slices({name: how.slices for name, how in alone.items() if how.slices is not None}, plans)
    keys = sorted((how.keys for how in alone.values() if how.keys and not how.is_replicated), key=len)
    placed: dict[Distribution | str, Placement] = {}
    for name, how in alone.items():
        group: Distribution | str = how
        if how.slices is not None:
            how, group = (how, name) if common is None else (Distribution((), common), "slices")
        elif how.keys and how.partial is None:
            how = group = Distribution(next(fewest for fewest in keys if set(fewest) <= set(how.keys)))
        placed.setdefault(group, Placement(how, {})).plans[name] = plans[name]
    return list(placed.values())


def _common_slices(cuts: Mapping[str, Slices], plans: Mapping[str, Plan]) -> Slices | None:
    """Return slices for all queries, with whole ticks of each; None if they would be too long."""
    if not cuts:
        return None
    length = max(cut.length for cut in cuts.values())
    ranked = (plan.query for name, plan in plans.items() if name in cuts and isinstance(plan, RankPlan))
    units = [tick_distance(query) for query in ranked if query.update is not None]
    if all(cut.length.denominator == 1 for cut in cuts.values()):
        units.append(Fraction(1))
    # The least common multiple of fractions in lowest terms.
    numerators, denominators = zip(*(unit.as_integer_ratio() for unit in units or [length]), strict=True)
    unit = Fraction(math.lcm(*numerators), math.gcd(*denominators))
    rounded = math.ceil(length / unit) * unit
    if rounded > MAX_LENGTHENED * length:
        return None
    return Slices(rounded, max(cut.before for cut in cuts.values()), max(cut.after for cut in cuts.values()))
