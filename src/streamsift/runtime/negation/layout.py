"""Define the arrays of the nested search: a pattern with its negations, cached results, and search states.

All events are places, and an interval [low, high) is a range of places. Steps are numbered along the path from the
pattern down: the numbers of a negation's steps continue those of the enclosing pattern.
"""

from __future__ import annotations

from typing import NamedTuple

from streamsift.runtime.arrays.dtypes import Int32, Int64

# Columns of Tree.nodes: node 0 is the pattern, the others are negations.
FIRST, COUNT, STEPS, CHILDREN_START, CHILDREN_STOP, READY, CONFLICTS = range(7)
LOWER_START, LOWER_STOP, UPPER_START, UPPER_STOP, LOWER_EDGE, UPPER_EDGE = range(7, 13)
NEEDS_ARROW, EARLIEST, RING_BASE, RING_MASK, READS_START, READS_STOP, OWN_WINDOW = range(13, 20)
HOLDS_FOR_LATER_EVENTS, NODE_FIELDS = range(20, 22)
# Values of LOWER_EDGE and UPPER_EDGE: bounded by the steps in LOWER_START:LOWER_STOP of Tree.numbers, by the window, or
# by the match. OWN: by the window or the match of the definition whose steps are listed.
BY_STEPS, BY_WINDOW, BY_MATCH, BY_OWN_WINDOW, BY_OWN_END = range(5)
# Columns of Tree.steps.
NUMBER, OFFSETS_BASE, LINK_BASE, LINK_STEP, PAIRS_START, PAIRS_STOP, AFTER_START, AFTER_STOP = range(8)
ORDER, OTHERS_START, OTHERS_STOP, GUARDED, FILTERED, FILTER_READS, LIMITS_START, LIMITS_STOP, STEP_FIELDS = range(8, 17)
# Columns of Tree.pairs, of Tree.limits (after EARLIER) and of Tree.reads.
EARLIER, OPERATOR, PAIR_FIELDS = range(3)
WINDOW_ROW, IS_UPPER, LIMIT_FIELDS = range(1, 4)
READ_STEP, READ_BASE, READ_FIELDS = range(3)
# Fields of Frames.marks, for each step that is bound or being bound; RESULTS: bits of Arrow's results, not read yet.
EVENT, ENTRY, STOP, REASONS, HIGH, RESULTS, RESULT_COUNT = range(7)
# More fields, at a negation's first step: its interval, the upper bound before widening, its entry in the ring.
LOW, UNWIDENED_HIGH, RING_ENTRY, MARK_FIELDS = range(7, 11)
# Fields of Frames.levels.
NODE, STEP, CHILD, LEVEL_FIELDS = range(4)
# Fields of Frames.status.
LEVEL, PHASE, NEXT_PARTIAL, ONE_NEGATION, AHEAD, STATUS_FIELDS = range(6)


class Tree(NamedTuple):
    """A packed pattern with its negations and the candidates of all steps, which ascend within each lookup group."""

    nodes: Int64  # [nodes, NODE_FIELDS]; the children of a node are contiguous
    steps: Int64  # [steps, STEP_FIELDS]; ORDER: bits of all steps of the node that must precede this one
    numbers: Int64  # lists of step numbers; OTHERS: steps that could bind the same event
    places: Int32  # the candidates of all steps
    offsets: Int64  # at OFFSETS_BASE + group: where the group's candidates start in `places`; one more for the end
    hints: Int64  # [offsets] where the last search in a group ended
    links: Int32  # at LINK_BASE + place of the event of LINK_STEP: its group, -1 for none
    pairs: Int64  # [pairs, PAIR_FIELDS]
    codes: Int64  # [2 * pairs, places] the two sides of each pair
    limits: Int64  # [limits, LIMIT_FIELDS] bounds from definition windows; WINDOW_ROW is a row of Reach.own_windows
    reads: Int64  # [reads, READ_FIELDS] outer values that the result of a negation depends on
    values: Int32  # at READ_BASE + place of the event of READ_STEP: a code of its value, -1 if unknown


class Ring(NamedTuple):
    """Cached results of negations, in one ring buffer per negation, which starts at its RING_BASE.

    A result depends on the interval and on the outer values that the negation reads. An entry, keyed by the interval
    start and these values, stores two interval ends: from where on the sub-pattern occurs, and up to where it is
    absent. One entry therefore serves most lookups with its start. Section 5 of "Processing Nested Complex Sequence
    Pattern Queries over Event Streams" caches neither negated nor correlated sub-patterns.

    Contract: the slot of an entry is its start plus a hash of its values, modulo the size of the ring, which is bounded
    by the events of a window. Entries behind the window are overwritten, so memory is bounded. Keys that share a slot
    evict each other and are never confused (tests/runtime/negation/test_nested.py,
    `test_cached_or_not_the_rows_are_the_same` and `test_rings_hold_a_window`).
    """

    keys: Int32  # [entries, 1 + reads] the start of the interval, then the values; -1 if empty
    occurs_from: Int32  # [entries] the sub-pattern occurs in [start, end) for every end from this one on
    absent_until: Int32  # [entries] the sub-pattern is absent for every end up to this one
    lookups: Int64  # [nodes]
    cache_hits: Int64  # [nodes]
    min_hit_rate: float  # a ring with fewer hits is abandoned after its trial


class Frames(NamedTuple):
    """The states of searches, one frame per search in progress."""

    marks: Int64  # [frames, steps on the longest path, MARK_FIELDS]
    levels: Int64  # [frames, 1 + depth of nested negations, LEVEL_FIELDS]
    status: Int64  # [frames, STATUS_FIELDS]
