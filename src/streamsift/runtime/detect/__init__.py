"""Find the matches of a detection plan.

- `run`: run the search that the plan's `SearchBy` names, and build result rows
- `adaptive`: split the events into slices and choose the cheapest join tree for each
- `joins`: run one join tree; cache the sub-matches of materialized subplans (blocks) by interval
- `join_packing`, `join_kernel`: pack the levels of a join order, and bind them
- `sequences`, `sequence_kernel`: pack plain sequences, and extend them in time order
- `relations`: list the relations between steps, for any order in which they are bound
- `statistics`: measure rates and selectivities of a slice
- `condense`: compare events with equal values once, as a group
- `semi_join`: drop events without a partner first
- `analyze`: report the rows that a run built

`SearchBy.NESTED` (negations, in the order of the pattern) is in `negation`. `SEQUENCE` is for pairs, and for plans that
are required to be left-deep and not condensed. `TREES` is for all others; it uses `sequences` for the parts of a
sequence whose cheapest tree is left-deep. `groups` adds Kleene groups to matches of single events.
"""

from streamsift.runtime.detect.adaptive import SearchMemory
from streamsift.runtime.detect.analyze import analyze
from streamsift.runtime.detect.relations import Relations
from streamsift.runtime.detect.run import detect, find_matches, group_matches, match_places
from streamsift.runtime.detect.statistics import Measure
