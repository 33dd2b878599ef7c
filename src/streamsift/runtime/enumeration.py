"""Partial matches in, longer ones out, depth first: every step inside its interval, every negation once it is decided.

The order is that of "Processing Nested Complex Sequence Pattern Queries over Event Streams": outer events first, then
the search inside the intervals between them. Only whole results are written.
"""

from __future__ import annotations

from numba import njit

from streamsift.runtime import existence as e
from streamsift.runtime import ranges as r
from streamsift.runtime.existence import Frames
from streamsift.runtime.kernels import Int32, Int64
from streamsift.runtime.ranges import Stream, Tree
from streamsift.runtime.ring import Ring


@njit(cache=True, nogil=True)
def extend(
    tree: Tree,
    stream: Stream,
    ring: Ring,
    frames: Frames,
    partials: Int32,
    last: int,
    cursor: Int64,
    out: Int32,
) -> int:
    """Extends partial matches [k, P] by the steps k to `last`; returns how many it wrote to out [last + 1, C].

    When `out` is full the search stops with its state in the cursor and in frame 0; it is done when cursor[DEPTH] < 0.
    Negations that need Arrow are left to the caller.
    """
    marks, first = frames.marks[0], partials.shape[0]
    partial, depth, count = cursor[r.NEXT_PARTIAL], cursor[r.DEPTH], 0
    while count < out.shape[1]:
        if depth < first:
            if partial == partials.shape[1]:
                depth = -1
                break
            for number in range(first):
                marks[number, r.EVENT] = partials[number, partial]
            partial += 1
            depth = first
            r.open_in_window(tree, stream, marks, depth)
        if not bind_next(tree, stream, ring, frames, depth):
            depth -= 1
        elif depth < last:
            depth += 1
            r.open_in_window(tree, stream, marks, depth)
        else:
            for number in range(last + 1):
                out[number, count] = marks[number, r.EVENT]
            count += 1
    cursor[r.NEXT_PARTIAL], cursor[r.DEPTH] = partial, depth
    return count


@njit(cache=True, nogil=True)
def bind_next(tree: Tree, stream: Stream, ring: Ring, frames: Frames, step: int) -> bool:
    """Binds the next candidate of a step of the pattern that no negation forbids; False if there is none."""
    marks = frames.marks[0]
    while marks[step, r.ENTRY] < marks[step, r.STOP]:
        place = tree.places[marks[step, r.ENTRY]]
        if place >= marks[step, r.HIGH]:
            return False
        marks[step, r.ENTRY] += 1
        if r.admits(tree, stream, marks, step, r.NO_OWN_STEPS, place, step):
            marks[step, r.EVENT] = place
            if tree.steps[step, r.GUARDED] == 0 or not is_forbidden(tree, stream, ring, frames, step):
                return True
    return False


@njit(cache=True, nogil=True)
def is_forbidden(tree: Tree, stream: Stream, ring: Ring, frames: Frames, step: int) -> bool:
    """Whether a negation occurs that is decided once this step is bound."""
    for node in range(tree.nodes[0, r.CHILDREN_START], tree.nodes[0, r.CHILDREN_STOP]):
        if tree.nodes[node, r.READY] == step and tree.nodes[node, r.NEEDS_ARROW] == 0:
            e.start(frames, 0, node)
            if e.decide(tree, stream, ring, frames, 0) == e.YES:
                return True
    return False
