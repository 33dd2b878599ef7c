"""TODO"""

from streamsift.physical.share.chopping import ChoppedQueries
from streamsift.physical.share.plan import ShareMode, SharingPlan, share
from streamsift.physical.share.prefix_trees import SharedTree, TreeNode, separate_cost, shared_cost

__all__ = [
    "ChoppedQueries",
    "ShareMode",
    "SharedTree",
    "SharingPlan",
    "TreeNode",
    "separate_cost",
    "share",
    "shared_cost",
]
