"""Rank the matches of sequences with a linear score as best paths of a stratified graph.

- `weights`: turn a linear score into vertex weights, and bound their rounding errors
- `graph`: build the stratified graph, with best chains on both sides of cuts that windows share
- `strata`: drop candidates without partners; build the graph of a plan and its search roots (windows, groups)
- `heap`: keep sets of paths in a binary heap
- `enumerate`: enumerate best paths one by one, lazily and resumably
- `equivalence`: rank equivalence classes of paths if too many sums lie within the rounding error
- `top_k_buffer`: keep the best paths of a window for the next one
- `thesis`: k-SSP and k-DSSP of the CPR thesis, and Yen's algorithm
- `best`: find the candidates for the k best of every group and tick
- `sorted_access`: read the best paths of one component of a merge on demand

`lazy` enumerates the paths of all windows on one graph; with UPDATE and keys, top-k buffers move from window to window
instead. If too many paths may tie or fail a comparison, equivalence classes of paths are ranked. If these are too many
as well, the caller enumerates all matches. `k-ssp` and `k-dssp` run only on request.
"""

from streamsift.runtime.paths.best import SLACK, TickMatches, not_below_kth, path_candidates
from streamsift.runtime.paths.sorted_access import BufferedPathComponent, Loaded, PathComponent, path_component
from streamsift.runtime.paths.strata import GaveUp, tick_windows, ticks_with_events
from streamsift.runtime.paths.top_k_buffer import Reserve
