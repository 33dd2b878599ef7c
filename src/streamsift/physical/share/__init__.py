"""TODO"""

from streamsift.physical.share.chopping import ChoppedQueries
from streamsift.physical.share.plan import ShareMode, SharingPlan, describe_sharing, share
from streamsift.physical.share.prefix_trees import SharedTree, TreeNode

__all__ = ["ChoppedQueries", "ShareMode", "SharedTree", "SharingPlan", "TreeNode", "describe_sharing", "share"]
