"""The semi-join reduction keeps exactly the events with a partner, compared with brute force."""

import numpy as np
import pytest

from streamsift.runtime.arrays.comparing import OPERATORS, holds
from streamsift.runtime.arrays.dtypes import LARGEST, UNKNOWN
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.arrays.hashing import numbered
from streamsift.runtime.detect.semi_join import NO_CODES, have_partner

PLACES = 60


def draw(random: np.random.Generator, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw places sorted by group, and the offsets of the groups."""
    places = np.flatnonzero(random.random(PLACES) < random.choice([0.1, 0.5, 1.0])).astype(np.int32)
    offsets, order = group_entries(random.integers(-1, groups, places.size).astype(np.int32), groups)
    return places[order], offsets


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", None])
@pytest.mark.parametrize("seed", range(40))
def test_an_event_is_kept_exactly_if_its_group_has_a_partner(seed: int, operator: str | None) -> None:
    random = np.random.default_rng(seed)
    groups = int(random.integers(1, 4))
    (own, own_offsets), (others, other_offsets) = draw(random, groups), draw(random, groups)
    values = np.array([UNKNOWN, UNKNOWN + 1, -1, 0, 1, LARGEST - 1, LARGEST])
    codes, other_codes = random.choice(values, PLACES), random.choice(values, PLACES)
    first = np.sort(random.integers(0, PLACES, PLACES)).astype(np.int32)
    last = np.sort(random.integers(0, PLACES, PLACES)).astype(np.int32)
    beyond, number = int(random.integers(0, 2)), OPERATORS[operator or "<"]
    compared = (codes, other_codes) if operator else (NO_CODES, NO_CODES)
    kept = have_partner(own, own_offsets, compared[0], others, other_offsets, compared[1], first, last, beyond, number)
    for group in range(groups):
        candidates = others[other_offsets[group] : other_offsets[group + 1]]
        for i in range(own_offsets[group], own_offsets[group + 1]):
            place = own[i]
            partners = (o for o in candidates if first[place] <= o < last[place] + beyond)
            expected = any(operator is None or holds(number, codes[place], other_codes[o]) for o in partners)
            assert kept[i] == expected


@pytest.mark.parametrize("distinct", [1, 3, 511, 512, 513, 5_000])
def test_equal_values_have_one_number_in_order_of_appearance(distinct: int) -> None:
    random = np.random.default_rng(distinct)
    values = random.integers(UNKNOWN, LARGEST, distinct)[random.integers(0, distinct, 4 * distinct)]
    numbers, count = numbered(values)
    seen: dict[int, int] = {}
    assert numbers.tolist() == [seen.setdefault(value, len(seen)) for value in values.tolist()]
    assert count == len(seen)
