"""TODO"""

from streamsift.physical.count.strategy import (
    SEM_NS_PER_START,
    TWO_STACK_NS_PER_LEVEL,
    adjacent_pairs,
    aggregation,
    is_at_edge,
)

__all__ = ["SEM_NS_PER_START", "TWO_STACK_NS_PER_LEVEL", "adjacent_pairs", "aggregation", "is_at_edge"]
