"""Choose which of several queries are counted together.

- `plan`: sort queries into families, and share where it costs less;
- `prefix_trees`: share the counters of common prefixes, in a tree;
- `chopping`: share inner parts of patterns as pieces (chop-connect).

Queries that begin alike share a tree; of the others, those that count within a window share pieces.
"""

from streamsift.physical.share.chopping import ChoppedQueries
from streamsift.physical.share.plan import ShareMode, SharingPlan, share
from streamsift.physical.share.prefix_trees import SharedTree, TreeNode, separate_cost, shared_cost
