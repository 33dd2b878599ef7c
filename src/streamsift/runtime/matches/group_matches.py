"""Hold a chunk of matches as places: single events, and the elements of Kleene groups."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64


@dataclass(frozen=True, slots=True)
class GroupMatches:
    """m matches; the elements of a match's maximal group are places[first:stop]."""

    singles: Int32  # [steps, m] single events
    places: Int32
    first: Int64  # [groups, m]
    stop: Int64  # [groups, m]
    origins: Int64  # [m] the match of single events that each match was built from

    @classmethod
    def of_places(cls, places: Int32) -> GroupMatches:
        """Return matches without Kleene groups, given their places [steps, m]."""
        none = np.empty((0, places.shape[1]), np.int64)
        return cls(places, np.empty(0, np.int32), none, none, np.empty(places.shape[1], np.int64))

    def __len__(self) -> int:
        return self.first.shape[1]

    def only(self, keep: Bool | Int64 | slice) -> GroupMatches:
        return GroupMatches(
            self.singles[:, keep], self.places, self.first[:, keep], self.stop[:, keep], self.origins[keep]
        )

    @property
    def sizes(self) -> Int64:
        """Return the sizes of groups [groups, m]."""
        return self.stop - self.first

    def empty_groups(self) -> Int64:
        """Return for each match a bit mask of its empty groups."""
        bits = np.left_shift(1, np.arange(self.first.shape[0], dtype=np.int64))
        return ((self.sizes == 0) * bits[:, None]).sum(axis=0)

    def events(self) -> Int32:
        """Return the single events, and the first and last element of each group; for an empty group, any event."""
        if not self.first.shape[0]:
            return self.singles
        ends = np.full((2 * self.first.shape[0], len(self)), -1, np.int32)
        for group, (first, stop) in enumerate(zip(self.first, self.stop, strict=True)):
            bound = stop > first
            ends[2 * group, bound] = self.places[first[bound]]
            ends[2 * group + 1, bound] = self.places[stop[bound] - 1]
        events = np.vstack([self.singles, ends])
        return np.where(events < 0, events.max(axis=0), events)

    def elements(self) -> Int32:
        """Return the elements of each match's groups [most elements, m], padded with an event of the match."""
        sizes = self.sizes
        elements = np.repeat(self.events()[:1], int(sizes.sum(axis=0).max(initial=0)), axis=0)
        used = np.zeros(len(self), np.int64)
        for first, size in zip(self.first, sizes, strict=True):
            for number in range(int(size.max(initial=0))):
                has = np.flatnonzero(size > number)
                elements[used[has], has] = self.places[first[has] + number]
                used[has] += 1
        return elements


def parts_of(sizes: Int64, most: int) -> list[slice]:
    """Split matches with groups of these sizes [groups, m] into parts of about `most` elements."""
    borders = [0, sizes.shape[1]]
    if sizes.sum() > most:
        borders[1:1] = (np.flatnonzero(np.diff(np.cumsum(sizes.sum(axis=0)) // most)) + 1).tolist()
    return [slice(begin, end) for begin, end in pairwise(borders)]
