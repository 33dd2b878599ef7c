"""An alternative with AND or negations and its events in, the matches out, chunk by chunk.

The pattern is enumerated depth first by a kernel, with the negations that kernels can decide. It is cut into stages
where Arrow has a say: at a step with predicates that are no comparison of two events, and at a negation with such ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import Alternative, Cache, Step
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.evaluate import Rows, mask
from streamsift.runtime.negation import layout, predicate_batches
from streamsift.runtime.negation.kernel import ASKS, YES, search
from streamsift.runtime.negation.layout import Frames
from streamsift.runtime.negation.packing import Packed, pack
from streamsift.runtime.negation.predicate_batches import MOST_AHEAD, Questions

CHUNK_TESTS = 1 << 13  # partial matches whose negation asks Arrow at a time

NOTHING = np.empty((0, 0), np.int32)


class NestedSearch:
    """Finds the matches of one alternative."""

    def __init__(
        self,
        alternative: Alternative,
        events: Events,
        chunk: int,
        cache: Cache = Cache.AUTO,
        enough: int | None = None,  # matches that are looked for at a time, if not as many as partial matches
    ) -> None:
        self.alternative, self.events, self.chunk = alternative, events, chunk
        self.enough = chunk if enough is None else enough
        self.packed = pack(alternative, events, cache)
        # The negations that ask Arrow: their node in the tree, and the step that decides them.
        self.asking = [(node, n.ready) for node, n in enumerate(alternative.negations, start=1) if n.needs_arrow]

    def matches(self) -> Iterator[Int32]:
        """Chunks [steps, m] of places. They are views of memory that the next chunk overwrites."""
        if self.packed is not None:
            yield from self._extended(self.packed, np.empty((0, 1), np.int32))

    def allowed(self, matches: Int32) -> Int32:
        """Those of the matches [steps, m], found without regard to negations, that none forbids."""
        return matches[:, ~self.forbidden(matches)]

    def forbidden(self, matches: Int32) -> Bool:
        """Which of the matches [steps, m], found without regard to negations, one forbids."""
        assert self.packed is not None, "there is a match, so every step has a candidate"
        found = np.zeros(matches.shape[1], np.bool_)
        for node in range(1, 1 + len(self.alternative.negations)):
            rest = np.flatnonzero(~found)
            if rest.size:
                found[rest] = self._occurs(self.packed, node, matches[:, rest])
        return found

    def _extended(self, packed: Packed, partials: Int32) -> Iterator[Int32]:
        """The matches that begin with partial matches [k, P]."""
        steps = self.alternative.steps
        if not partials.shape[1]:
            return
        if partials.shape[0] == len(steps):
            yield partials
            return
        last = self._stage_end(partials.shape[0])
        partials = np.ascontiguousarray(partials)
        frames = _frames(packed, 1)
        only, said = np.zeros(1, np.int64), np.zeros(1, np.int64)
        is_last = last == len(steps) - 1 and not steps[last].filters and last not in {at for _, at in self.asking}
        size = self.enough if is_last else self.chunk
        out = np.empty((last + 1, size), np.int32)
        count = size
        while count == size:
            count = search(packed.tree, packed.stream, packed.ring, frames, only, said, partials, last, out)
            yield from self._extended(packed, self._passing(packed, last, out[:, :count]))

    def _stage_end(self, first: int) -> int:
        """The first step from `first` on after which Arrow has a say, or the last."""
        steps = self.alternative.steps
        asked = {ready for _, ready in self.asking}
        return next((n for n in range(first, len(steps)) if steps[n].filters or n in asked), len(steps) - 1)

    def _passing(self, packed: Packed, last: int, partials: Int32) -> Int32:
        """The partial matches that pass what Arrow has to say after a stage."""
        keep = self._passes(self.alternative.steps[: last + 1], partials)
        if keep is not None:
            partials = partials[:, keep]
        for node, ready in self.asking:
            if ready == last and partials.shape[1]:
                partials = partials[:, ~self._occurs(packed, node, partials)]
        return partials

    def _passes(self, chain: Sequence[Step], partials: Int32) -> Bool | None:
        """Which partials pass the last step's filters; None if it has none."""
        filters = chain[-1].filters
        if not filters or not partials.shape[1]:
            return None
        row_of = {step.variable: number for number, step in enumerate(chain)}
        gathered: dict[tuple[int, str], pa.Array] = {}

        def column(variable: int, name: str) -> pa.Array:
            if (variable, name) not in gathered:
                rows = self.events.rows_at(partials[row_of[variable]])
                gathered[variable, name] = self.events.columns.at(name, rows)
            return gathered[variable, name]

        seen = Rows(column, partials.shape[1], self.alternative.query.text)
        keep = np.ones(partials.shape[1], np.bool_)
        for predicate in filters:
            keep &= mask(predicate, seen)
        return keep

    # --- negations of matches that are given ---
    def _occurs(self, packed: Packed, node: int, partials: Int32) -> Bool:
        """For each partial match whether a negation occurs: rounds of searches, each as far as the answers go."""
        found = np.zeros(partials.shape[1], np.bool_)
        for begin in range(0, partials.shape[1], CHUNK_TESTS):
            part = slice(begin, begin + CHUNK_TESTS)
            self._ask(packed, node, np.ascontiguousarray(partials[:, part]), found[part])
        return found

    def _ask(self, packed: Packed, node: int, partials: Int32, found: Bool) -> None:
        tree, stream, ring = packed.tree, packed.stream, packed.ring
        most = partials.shape[1] * MOST_AHEAD
        asked = Questions(
            np.full((packed.longest, most), -1, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
        )
        frames = _frames(packed, partials.shape[1])
        predicate_batches.begin(frames, node, partials)
        said = np.full(partials.shape[1], ASKS, np.int64)
        waiting = np.arange(partials.shape[1])
        while waiting.size:
            search(tree, stream, ring, frames, waiting, said, NOTHING, 0, NOTHING)
            waiting = waiting[said[waiting] == ASKS]
            count = predicate_batches.ask(tree, frames, waiting, asked)
            answers = np.zeros(count, np.bool_)
            for row in np.flatnonzero(np.bincount(asked.rows[:count])):
                about = np.flatnonzero(asked.rows[:count] == row)
                answers[about] = self._passes(packed.chains[row], asked.events[:, about])
            predicate_batches.hear(tree, frames, asked, answers)
        found[:] = said == YES


def _frames(packed: Packed, count: int) -> Frames:
    return Frames(
        np.full((count, packed.longest, layout.MARK_FIELDS), -1, np.int64),
        np.zeros((count, 1 + packed.levels, layout.LEVEL_FIELDS), np.int64),
        np.zeros((count, layout.STATUS_FIELDS), np.int64),
    )
