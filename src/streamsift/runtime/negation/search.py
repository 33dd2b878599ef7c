"""Find the matches of an alternative with AND or negations, chunk by chunk.

The pattern is enumerated depth first by a kernel, with the negations that kernels can decide. It is cut into stages
where a predicate needs Arrow: at a step with predicates that are no comparison of two events, and at a negation with
such ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamsift.physical.plan import Alternative, Cache, Step
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.matches import passing
from streamsift.runtime.negation import layout, predicate_batches
from streamsift.runtime.negation.kernel import OCCURS, UNDECIDED, search
from streamsift.runtime.negation.layout import Frames
from streamsift.runtime.negation.packing import PackedPattern, pack
from streamsift.runtime.negation.predicate_batches import PendingChecks

CHUNK_TESTS = 1 << 13  # partial matches whose negation is checked by Arrow at a time

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
        # The negations that need Arrow: their node in the tree, and the step that decides them.
        self.by_arrow = [(node, n.ready) for node, n in enumerate(alternative.negations, start=1) if n.needs_arrow]
        # The steps after which Arrow evaluates something, and the last.
        filtered = {number for number, step in enumerate(alternative.steps) if step.filters}
        self.stage_ends = sorted(filtered | {ready for _, ready in self.by_arrow} | {len(alternative.steps) - 1})

    def matches(self) -> Iterator[Int32]:
        """Yield chunks [steps, m] of places. They are views of memory that the next chunk overwrites."""
        if self.packed is not None:
            yield from self._extended(self.packed, np.empty((0, 1), np.int32))

    def allowed(self, matches: Int32) -> Int32:
        """Return those of the matches [steps, m], found without regard to negations, that none forbids."""
        return matches[:, ~self.forbidden(matches)]

    def forbidden(self, matches: Int32) -> Bool:
        """Return True for the matches [steps, m], found without regard to negations, that one forbids."""
        assert self.packed is not None, "there is a match, so every step has a candidate"
        forbidden = np.zeros(matches.shape[1], np.bool_)
        for node in range(1, 1 + len(self.alternative.negations)):
            rest = np.flatnonzero(~forbidden)
            if rest.size:
                forbidden[rest] = self._occurs(self.packed, node, matches[:, rest])
        return forbidden

    def _extended(self, packed: PackedPattern, partials: Int32) -> Iterator[Int32]:
        """Yield the matches that begin with partial matches [k, P]."""
        if not partials.shape[1]:
            return
        if partials.shape[0] == len(self.alternative.steps):
            yield partials
            return
        last = next(end for end in self.stage_ends if end >= partials.shape[0])
        partials = np.ascontiguousarray(partials)
        frames = _frames(packed, 1)
        frame, outcome = np.zeros(1, np.int64), np.zeros(1, np.int64)
        needs_arrow = self.alternative.steps[last].filters or last in {ready for _, ready in self.by_arrow}
        size = self.chunk if needs_arrow else self.enough
        out = np.empty((last + 1, size), np.int32)
        count = size
        while count == size:
            count = search(packed.tree, packed.stream, packed.ring, frames, frame, outcome, partials, last, out)
            yield from self._extended(packed, self._passing(packed, last, out[:, :count]))

    def _passing(self, packed: PackedPattern, last: int, partials: Int32) -> Int32:
        """Return the partial matches that pass what Arrow evaluates after a stage."""
        keep = self._passes(self.alternative.steps[: last + 1], partials)
        if keep is not None:
            partials = partials[:, keep]
        for node, ready in self.by_arrow:
            if ready == last and partials.shape[1]:
                partials = partials[:, ~self._occurs(packed, node, partials)]
        return partials

    def _passes(self, chain: Sequence[Step], partials: Int32) -> Bool | None:
        """Return True for partials that pass the last step's filters; None if it has none."""
        if not chain[-1].filters or not partials.shape[1]:
            return None
        bound = Alternative(self.alternative.query, tuple(chain), ())
        return passing(bound, self.events, chain[-1].filters, partials)

    # --- negations of matches that are given ---
    def _occurs(self, packed: PackedPattern, node: int, partials: Int32) -> Bool:
        """Return True for partial matches in which a negation occurs."""
        occurs = np.zeros(partials.shape[1], np.bool_)
        for begin in range(0, partials.shape[1], CHUNK_TESTS):
            part = slice(begin, begin + CHUNK_TESTS)
            occurs[part] = self._occurs_by_rounds(packed, node, np.ascontiguousarray(partials[:, part]))
        return occurs

    def _occurs_by_rounds(self, packed: PackedPattern, node: int, partials: Int32) -> Bool:
        """Search in rounds, each as far as the results of Arrow's predicates go."""
        tree, count = packed.tree, partials.shape[1]
        checks, frames = PendingChecks.of(count, packed.longest), _frames(packed, count)
        predicate_batches.begin(frames, node, partials)
        outcomes, waiting = np.full(count, UNDECIDED, np.int64), np.arange(count)
        while waiting.size:
            search(tree, packed.stream, packed.ring, frames, waiting, outcomes, NOTHING, 0, NOTHING)
            waiting = waiting[outcomes[waiting] == UNDECIDED]
            results = np.zeros(predicate_batches.collect(tree, frames, waiting, checks), np.bool_)
            rows = checks.rows[: results.size]
            for row in np.flatnonzero(np.bincount(rows)):
                which = np.flatnonzero(rows == row)
                results[which] = self._passes(packed.chains[row], checks.events[:, which])
            predicate_batches.hand_back(tree, frames, checks, results)
        return outcomes == OCCURS


def _frames(packed: PackedPattern, count: int) -> Frames:
    return Frames(
        np.full((count, packed.longest, layout.MARK_FIELDS), -1, np.int64),
        np.zeros((count, 1 + packed.levels, layout.LEVEL_FIELDS), np.int64),
        np.zeros((count, layout.STATUS_FIELDS), np.int64),
    )
