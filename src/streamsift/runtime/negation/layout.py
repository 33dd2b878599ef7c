"""Lay out the arrays of the nested search: a pattern with its negations, cached results, states of searches.

All events are places in the stream. An interval is [low, high) in places, and [least, most] in window positions, which
differ from places only for count windows within partitions. The steps of a pattern and of the negations inside it are
numbered along the path from the pattern down: a negation's steps go on from those of the pattern around it.
"""

from __future__ import annotations

from typing import NamedTuple

from streamsift.runtime.arrays.dtypes import Int32, Int64

# Columns of Tree.nodes: the pattern is node 0, the others are negations.
FIRST, COUNT, STEPS, CHILDREN_START, CHILDREN_STOP, READY, CONFLICTS = range(7)
LOWER_START, LOWER_STOP, UPPER_START, UPPER_STOP, LOWER_EDGE, UPPER_EDGE = range(7, 13)
NEEDS_ARROW, EARLIEST, RING_BASE, RING_MASK, READS_START, READS_STOP, OWN_WINDOW = range(13, 20)
HOLDS_FOR_LATER_EVENTS, NODE_FIELDS = range(20, 22)
# Values of LOWER_EDGE and UPPER_EDGE: the steps in LOWER_START:LOWER_STOP of Tree.numbers, or an edge of the window.
BY_STEPS, BY_WINDOW, BY_MATCH, BY_OWN_WINDOW, BY_OWN_END = range(5)  # OWN: of the definition whose steps are listed
# Columns of Tree.steps.
NUMBER, OFFSETS_BASE, LINK_BASE, LINK_STEP, PAIRS_START, PAIRS_STOP, AFTER_START, AFTER_STOP = range(8)
ORDER, OTHERS_START, OTHERS_STOP, GUARDED, FILTERED, FILTER_READS, LIMITS_START, LIMITS_STOP, STEP_FIELDS = range(8, 17)
# Columns of Tree.pairs, of Tree.limits (after EARLIER) and of Tree.reads.
EARLIER, OPERATOR, PAIR_FIELDS = range(3)
WINDOW_ROW, IS_UPPER, LIMIT_FIELDS = range(1, 4)
READ_STEP, READ_BASE, READ_FIELDS = range(3)
# Fields of Frames.marks, for each step that is bound or being bound; RESULTS: bits of Arrow's results, not yet read.
EVENT, ENTRY, STOP, REASONS, HIGH, RESULTS, RESULT_COUNT = range(7)
# More of them, at a negation's first step: its interval, the upper bound before it was widened, its entry in the ring.
LOW, UNWIDENED_HIGH, RING_ENTRY, MARK_FIELDS = range(7, 11)
# Fields of Frames.levels.
NODE, STEP, CHILD, LEVEL_FIELDS = range(4)
# Fields of Frames.status.
LEVEL, PHASE, NEXT_PARTIAL, ONE_NEGATION, AHEAD, STATUS_FIELDS = range(6)


class Tree(NamedTuple):
    """A pattern and its negations, and the events that their steps may bind, packed.

    The places of a step ascend within each of its lookup groups.
    """

    nodes: Int64  # [nodes, NODE_FIELDS]; the children of a node are neighbors
    steps: Int64  # [steps, STEP_FIELDS]; ORDER: bits of all steps of the node that come before this one
    numbers: Int64  # lists of step numbers; OTHERS: steps that could bind the same event
    places: Int32  # the candidates of all steps
    offsets: Int64  # OFFSETS_BASE + group: where the group's candidates start in `places`; one more for the end
    hints: Int64  # [offsets] where the last search in a group ended
    links: Int32  # LINK_BASE + place of the event of LINK_STEP: its group, -1 for none
    pairs: Int64  # [pairs, PAIR_FIELDS]
    codes: Int64  # [2 * pairs, places] the two sides of each pair
    limits: Int64  # [limits, LIMIT_FIELDS] by definitions' windows: WINDOW_ROW is a row of Reach.own_windows
    reads: Int64  # [reads, READ_FIELDS] what the result of a negation depends on, besides its interval
    values: Int32  # READ_BASE + place of the event of READ_STEP: equal for equal values, -1 where unknown


class Ring(NamedTuple):
    """Cached results of negations. RING_BASE of a negation is where its entries begin.

    A result depends on the interval and on the outer values that the negation reads. For each start of an interval and
    these values an entry has two ends: from which on the sub-pattern occurs, and up to which it is absent. So it serves
    most lookups of its start. Section 5 of "Processing Nested Complex Sequence Pattern Queries over Event Streams"
    caches neither negated nor correlated sub-patterns.

    Contract: the slot of an entry follows from its start, modulo the size, which is at least the events of a window:
    entries behind the window are overwritten, and memory is bounded. A slot that another key takes is lost, never
    mistaken for it (tests/runtime/negation/test_nested.py, `test_cached_or_not_the_rows_are_the_same` and
    `test_rings_hold_a_window`).
    """

    keys: Int32  # [entries, 1 + reads] the start of the interval, then the values; -1 in an empty one
    occurs_from: Int32  # [entries] there is an occurrence in [start, end) for every end from this one on
    absent_until: Int32  # [entries] there is none for any end up to this one
    lookups: Int64  # [nodes]
    cache_hits: Int64  # [nodes] the lookups that needed no search
    min_hit_rate: float  # below which a ring is abandoned after its trial


class Frames(NamedTuple):
    """The states of searches, one frame for each that is under way."""

    marks: Int64  # [frames, steps on the longest path, MARK_FIELDS]
    levels: Int64  # [frames, 1 + negations inside each other, LEVEL_FIELDS]
    status: Int64  # [frames, STATUS_FIELDS]
