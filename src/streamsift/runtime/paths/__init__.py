"""TODO"""

from streamsift.runtime.paths.best import SLACK, Paths, cast_of, path_candidates, views_of
from streamsift.runtime.paths.board import (
    COMPLETE,
    COUNT,
    RESERVE,
    groups_inside,
    moved_board,
    new_board,
    opened_board,
    trimmed,
)
from streamsift.runtime.paths.enumerate import SIZE, new_search, read_paths
from streamsift.runtime.paths.sets import Roots, Rule
from streamsift.runtime.paths.strata import EMPTY, Strata, strata, tick_roots, ticks_with_events
from streamsift.runtime.paths.weights import ROUNDING
