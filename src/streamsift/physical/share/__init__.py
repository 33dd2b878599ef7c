"""Choose which of several queries share counters.

- `plan`: group compatible queries, and share counters if that costs less;
- `prefix_trees`: share the counters of common prefixes, in a tree;
- `streams`: what of that holds on a stream;
- `chopping`: share inner parts of patterns as pieces (chop-connect).

Queries with the same first steps share a tree. Of the others, those with COUNT and a window share pieces.
"""

from streamsift.physical.share.chopping import ChoppedQueries
from streamsift.physical.share.plan import ShareMode, SharingPlan, share
from streamsift.physical.share.prefix_trees import SharedTree, TreeNode, separate_cost, shared_cost
from streamsift.physical.share.streams import share_stream
