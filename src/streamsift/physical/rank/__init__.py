"""TODO"""

from streamsift.physical.rank.plan import FEW_MATCHES, MOST_KINDS, MOST_PATHS, describe_ranking, ranking

__all__ = ["FEW_MATCHES", "MOST_KINDS", "MOST_PATHS", "describe_ranking", "ranking"]
