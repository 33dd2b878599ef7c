"""Collected elements and a key in, the same split by the key's values out: `[attr]` where no single event tells it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from streamsift.physical.plan import Key
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.groups.elements import Elements


@dataclass(frozen=True, slots=True)
class Collected:
    """The elements of all growing variables, in every order of AND: places[start[o, g, i]:stop[o, g, i]].

    Column i belongs to match `origins[i]`; a match has one column, or one for each value of its keys.
    """

    places: Int32
    start: Int64  # [orders, growing, columns]
    stop: Int64
    origins: Int64  # [columns]
    closed: Bool  # [growing, columns] groups that must stay empty here
    some: Int64  # [keys, columns] groups (a bit mask) of which one is not empty here

    @staticmethod
    def of(elements: Iterable[Elements], orders: int, matches: int) -> Collected:
        """Elements for each order and each growing variable; buffers that are the same are taken once."""
        buffers: dict[int, tuple[int, Int32]] = {}
        starts, stops = [], []
        size = 0
        for places, start, stop in elements:
            if id(places) not in buffers:
                buffers[id(places)] = size, places
                size += places.size
            base = buffers[id(places)][0]
            starts.append(start + base)
            stops.append(stop + base)
        parts = [places for _, places in buffers.values()]
        growing = len(starts) // orders
        return Collected(
            parts[0] if len(parts) == 1 else np.concatenate(parts),
            np.stack(starts).reshape(orders, growing, matches),
            np.stack(stops).reshape(orders, growing, matches),
            np.arange(matches),
            np.zeros((growing, matches), np.bool_),
            np.empty((0, matches), np.int64),
        )

    def by_origin(self) -> Collected:
        """The same columns, those of a match beside each other."""
        if (self.origins[1:] >= self.origins[:-1]).all():
            return self
        order = np.argsort(self.origins, kind="stable")
        return Collected(
            self.places,
            self.start[:, :, order],
            self.stop[:, :, order],
            self.origins[order],
            self.closed[:, order],
            self.some[:, order],
        )


def by_key(found: Collected, key: Key, codes: Int64, may_be_empty: Sequence[bool]) -> Collected:
    """Each column once for every value that an element of the key's variables has there.

    Where all of these groups may be empty, once more for that: then they stay closed.
    """
    members = [number for number, _ in key.members]
    orders, columns = found.start.shape[0], found.origins.size
    width = int(codes.max(initial=0)) + 1
    pairs: dict[tuple[int, int], Int64] = {}
    sorted_places: dict[tuple[int, int], Int32] = {}
    for order in range(orders):
        for member in members:
            start, stop = found.start[order, member], found.stop[order, member]
            entries = np.concatenate([np.empty(0, np.int64), *map(np.arange, start, stop)])
            places = found.places[entries]
            pair = np.repeat(np.arange(columns), stop - start) * width + codes[places]
            by_pair = np.argsort(pair, kind="stable")
            pairs[order, member], sorted_places[order, member] = pair[by_pair], places[by_pair]
    values = distinct(np.concatenate([*pairs.values(), np.empty(0, np.int64)]))
    empty = np.arange(columns) if all(may_be_empty[member] for member in members) else np.empty(0, np.int64)
    parents = np.concatenate([values // width, empty])
    is_empty = np.arange(parents.size) >= values.size
    start, stop = found.start[:, :, parents], found.stop[:, :, parents]
    base = found.places.size
    for (order, member), own in pairs.items():
        start[order, member, : values.size] = base + np.searchsorted(own, values, side="left")
        stop[order, member, : values.size] = base + np.searchsorted(own, values, side="right")
        base += own.size
    closed = found.closed[:, parents]
    closed[members] |= is_empty
    some = np.where(is_empty, 0, sum(1 << member for member in members))
    return Collected(
        np.concatenate([found.places, *sorted_places.values()]),
        start,
        stop,
        found.origins[parents],
        closed,
        np.vstack([found.some[:, parents], some]),
    )
