"""Find the matches of a detection plan.

- `run`: starts the search that the plan's `SearchBy` names, and writes its matches
- `adaptive`: cuts the stream into slices and chooses the cheapest join tree for each
- `joins`: runs one join tree, and keeps sub-matches (blocks) by interval
- `join_packing`, `join_kernel`: the levels of a join order, and the kernel that binds them
- `sequences`, `sequence_kernel`: packs and runs plain sequences in order of time; the kernel that extends them
- `relations`: relates steps to each other, in whatever order they are bound
- `statistics`: measures rates and selectivities of a slice
- `condense`: compares events with equal values once, as a group
- `semi_join`: drops events without a partner beforehand
- `analyze`: reports what a run built

`SearchBy.NESTED` (negations, in the order of the pattern) is the room `negation`. `SEQUENCE` finds pairs, and what the
caller wants left to right and not condensed. `TREES` finds all else, and hands the parts of a sequence whose cheapest
tree is left-deep to `sequences`. Kleene groups are added to the single events by the room `groups`.
"""

from streamsift.runtime.detect.analyze import analyze
from streamsift.runtime.detect.relations import Relations
from streamsift.runtime.detect.run import detect, find_matches, group_matches, match_places
from streamsift.runtime.detect.statistics import Measure
