"""Choose how the k best matches of each alternative are found.

- `plan`: take the first strategy that can rank an alternative, and say why not the others;
- `components`: decompose a score into components that are ranked apart and merged.

Weighted sums over sequences are ranked as best paths, scores of several components by a top-k merge, monotone scores by
a rank join, and anything else by enumeration.
"""

from streamsift.physical.rank.plan import FEW_MATCHES, MAX_KINDS, MAX_PATHS, ranking
