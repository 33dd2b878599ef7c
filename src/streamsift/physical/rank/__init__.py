"""TODO"""

from streamsift.physical.rank.plan import FEW_MATCHES, MAX_KINDS, MAX_PATHS, ranking

__all__ = ["FEW_MATCHES", "MAX_KINDS", "MAX_PATHS", "ranking"]
