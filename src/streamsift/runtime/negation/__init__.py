"""TODO"""

from streamsift.runtime.negation.search import NestedSearch

__all__ = ["NestedSearch"]
